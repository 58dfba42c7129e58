// Package hhh holds the data plane of the hhh algorithm.
package hhh

//go:generate ../../.ci/bpf2go -type hhh_counter Hhh hhh.bpf.c
