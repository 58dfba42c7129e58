// Package chain holds the entry programs: parser, packet header vector, chain.
package chain

//go:generate ../../.ci/bpf2go -type parse_reason -type chain_count -type carry_form -type phv Chain chain.bpf.c
