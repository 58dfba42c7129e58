// Package replay holds the driver that replays captures through the entry programs.
package replay

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 Replay replay.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
