// Package probe is a program that looks up in a prefix table what its packet asks for.
package probe

//go:generate ../../../.ci/bpf2go -type question Probe probe.bpf.c
