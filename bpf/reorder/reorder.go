// Package reorder holds the data plane of the reorder algorithm.
package reorder

//go:generate ../../.ci/bpf2go -type reorder_counter -type reorder_definition_kind -type reorder_method_kind -type reorder_report Reorder reorder.bpf.c
