// Package lean holds the data plane of the lean algorithms.
package lean

//go:generate ../../.ci/bpf2go -type lean_stat -type lean_counter -type lean_report -type lean_rate_report -type loss_id_kind -type ooo_counter -type retrans_counter Lean lean.bpf.c
