// Package verdict holds the program that carries out what the enforcers of a chain decided.
package verdict

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type verdict_count Verdict verdict.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
