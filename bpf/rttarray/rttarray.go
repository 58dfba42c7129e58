// Package rttarray holds the data plane of the algorithm rtt-array.
package rttarray

//go:generate ../../.ci/bpf2go -type rtt_counter -type rtt_evict_kind RttArray rttarray.bpf.c
