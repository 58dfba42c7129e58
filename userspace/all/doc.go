// Package all registers every algorithm: the folders of bpf with a package in userspace. It is the only list of them.
package all

//go:generate go run ./gen -root ../.. -of bpf -constants -out ../../bpf/constant/constant_gen.go
//go:generate go run ./gen -root ../.. -of userspace -with bpf/NAME/*.bpf.c -with userspace/NAME/*.go -out algorithms_gen.go
