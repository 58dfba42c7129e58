// Package hashpipe holds the data plane of HashPipe, which breaks the memory rules: for comparison with precision only.
package hashpipe

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 Hashpipe hashpipe.bpf.c -- -I../../../bpf/include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
