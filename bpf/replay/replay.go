// Package replay holds the driver that replays captures through the entry programs.
package replay

//go:generate ../../.ci/bpf2go Replay replay.bpf.c
