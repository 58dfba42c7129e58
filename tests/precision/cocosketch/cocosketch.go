// Package cocosketch holds the data plane of CocoSketch, for comparison with precision.
package cocosketch

//go:generate ../../../.ci/bpf2go Cocosketch cocosketch.bpf.c
