// Package hashpipe holds the data plane of HashPipe, which breaks the memory rules: for comparison with precision only.
package hashpipe

//go:generate ../../../.ci/bpf2go Hashpipe hashpipe.bpf.c
