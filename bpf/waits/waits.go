// Package waits holds the data plane of the waits algorithm.
package waits

//go:generate ../../.ci/bpf2go -type waits_counter -type waits_kind -type waits_leg -type waits_report Waits waits.bpf.c
