// Package countmin is a Count-Min Sketch of packets by flow, for tests of what hosts count together.
package countmin

//go:generate ../../.ci/bpf2go Countmin countmin.bpf.c
