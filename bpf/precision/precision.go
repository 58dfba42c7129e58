// Package precision holds the data plane of the precision algorithm.
package precision

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type precision_counter -type ways_admission_kind -type key_field Precision precision.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
