// Package rttarray holds the data plane of the algorithm rtt-array.
package rttarray

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type rtt_counter -type rtt_evict_kind RttArray rttarray.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
