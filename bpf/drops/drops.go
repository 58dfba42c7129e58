// Package drops holds the program that counts what the kernel drops, by its reasons.
package drops

//go:generate ../../.ci/bpf2go -type drops_key -type drops_limit Drops drops.bpf.c
