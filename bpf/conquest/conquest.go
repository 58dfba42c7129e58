// Package conquest holds the data plane of ConQuest.
package conquest

//go:generate ../../.ci/bpf2go -type conquest_counter -type conquest_event -type conquest_event_kind -type conquest_source_kind -type conquest_reading_kind -type conquest_action_kind -type conquest_chance_kind Conquest conquest.bpf.c
