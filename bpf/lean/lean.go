// Package lean holds the data plane of the lean algorithms.
package lean

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type lean_stat -type lean_counter -type lean_report -type loss_id_kind -type ooo_counter -type retrans_counter Lean lean.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
