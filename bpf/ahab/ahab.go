// Package ahab holds the data plane of the ahab algorithm.
package ahab

//go:generate ../../.ci/bpf2go -type ahab_counter -type ahab_deed -type ahab_user -type ahab_moves -type ahab_slice -type ahab_lease_t -type ahab_sample Ahab ahab.bpf.c
