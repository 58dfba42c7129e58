// Package countmin is a Count-Min Sketch of packets by flow, for tests of what hosts count together.
package countmin

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 Countmin countmin.bpf.c -- -I../../../bpf/include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
