// Package trace holds the entry program at the start of transmission.
package trace

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type trace_count -type trace_key -type trace_interface Trace trace.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
