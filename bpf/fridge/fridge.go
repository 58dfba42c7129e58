// Package fridge holds the data plane of the fridge algorithm.
package fridge

//go:generate ../../.ci/bpf2go -type fridge_counter -type match_kind -type match_side_kind -type fridge_group_kind -type fridge_change_counter -type fridge_sampling_counter -type fridge_sample -type fridge_sample_flag Fridge fridge.bpf.c
