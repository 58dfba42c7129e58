// Package reorder holds the data plane of the reorder algorithm.
package reorder

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type reorder_counter -type reorder_definition_kind -type reorder_method_kind -type reorder_report Reorder reorder.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
