// Package cocosketch holds the data plane of CocoSketch, for comparison with precision.
package cocosketch

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 Cocosketch cocosketch.bpf.c -- -I../../../bpf/include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
