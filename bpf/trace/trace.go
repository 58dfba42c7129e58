// Package trace holds the entry program at the start of transmission.
package trace

//go:generate ../../.ci/bpf2go -type trace_count -type trace_key -type trace_interface Trace trace.bpf.c
