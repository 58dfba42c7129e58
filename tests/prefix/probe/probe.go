// Package probe is a program that looks up in a prefix table what its packet asks for.
package probe

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type question Probe probe.bpf.c -- -I../../../bpf/include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
