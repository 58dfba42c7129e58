// Package conquest holds the data plane of ConQuest.
package conquest

//go:generate go tool bpf2go -target bpfel -cc clang-19 -strip llvm-strip-19 -type conquest_counter -type conquest_event -type conquest_event_kind -type conquest_source_kind -type conquest_reading_kind -type conquest_action_kind -type conquest_chance_kind Conquest conquest.bpf.c -- -I../include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu -Wall -Werror -mcpu=v3
