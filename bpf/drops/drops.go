// Package drops holds the program that counts what the kernel drops, by its reasons. It is no algorithm, and has no twin: the reasons are those of this
// host's kernel. loader/drops attaches and reads it.
package drops

//go:generate ../../.ci/bpf2go -type drops_key -type drops_limit Drops drops.bpf.c
