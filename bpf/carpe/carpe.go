// Package carpe holds the data plane of the carpe algorithm.
package carpe

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type carpe_counter -type carpe_kind -type carpe_event -type carpe_group Carpe carpe.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
