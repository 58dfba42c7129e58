// Package verdict holds the program that carries out what the enforcers of a chain decided.
package verdict

//go:generate ../../.ci/bpf2go -type verdict_count Verdict verdict.bpf.c
