// Package window holds the program between algorithms of a chain whose windows have different lengths.
package window

//go:generate ../../.ci/bpf2go Window window.bpf.c
