// Package hhh holds the data plane of the hhh algorithm.
package hhh

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type hhh_counter Hhh hhh.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
