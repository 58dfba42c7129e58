// Package carpe holds the data plane of the carpe algorithm.
package carpe

//go:generate ../../.ci/bpf2go -type carpe_counter -type carpe_kind -type carpe_event -type carpe_group Carpe carpe.bpf.c
