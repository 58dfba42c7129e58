// Package precision holds the data plane of the precision algorithm.
package precision

//go:generate ../../.ci/bpf2go -type precision_counter -type ways_admission_kind -type key_field Precision precision.bpf.c
