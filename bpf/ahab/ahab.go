// Package ahab holds the data plane of the ahab algorithm.
package ahab

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type ahab_counter -type ahab_deed -type ahab_user -type ahab_moves -type ahab_slice -type ahab_lease_t -type ahab_sample Ahab ahab.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
