// Package fridge holds the data plane of the fridge algorithm.
package fridge

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type fridge_counter -type match_kind -type match_side_kind -type fridge_group_kind Fridge fridge.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
