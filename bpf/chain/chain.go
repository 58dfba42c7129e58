// Package chain holds the entry programs: parser, packet header vector, chain.
package chain

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type parse_reason -type chain_count -type carry_form -type phv Chain chain.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
