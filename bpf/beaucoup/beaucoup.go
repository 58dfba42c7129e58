// Package beaucoup holds the data plane of BeauCoup.
package beaucoup

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type beaucoup_counter -type beaucoup_word -type beaucoup_attribute -type beaucoup_query -type beaucoup_event Beaucoup beaucoup.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
