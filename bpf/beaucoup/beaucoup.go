// Package beaucoup holds the data plane of BeauCoup.
package beaucoup

//go:generate ../../.ci/bpf2go -type beaucoup_counter -type beaucoup_word -type beaucoup_attribute -type beaucoup_query -type beaucoup_event Beaucoup beaucoup.bpf.c
