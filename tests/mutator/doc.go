// Package mutator makes traffic inside of the kernel for measurements and for races: a program that rewrites the packet
// of a test run and tail-calls the program under test, hundreds of thousands to tens of millions of times a second
// on each core, with an exact count of what was sent.
package mutator

//go:generate ../../.ci/bpf2go -type traffic -type kind -type mutator_state Mutator mutator.bpf.c
