// Package rttarray registers the twin of rtt-array.
package rttarray

import (
	"github.com/xdpmon/xdpmon/p4/handshakes"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "rttarray", Algorithm: "rtt-array",
		Window:     &twin.Flip{Table: "array.window", Action: "use_bank", Banks: [2][]uint64{{0}, {896}}},
		Host:       samples,
		Native:     corrected,
		Drive:      func(d twin.Driver, _ twin.Form) error { return handshakes.Fins(d) },
		Registers:  true,
		Saturating: []string{"rtt_hist"},
		Counts: []twin.Count{
			count(0, "inserted", "evicted", "repeated"),
			count(1, "repeated"),
			count(2, "inserted", "evicted"),
			count(4, "evicted"),
			count(6, "matched", "unmatched"),
			count(7, "matched"),
		},
		Differences: []twin.Difference{
			{Name: "a response finds the requests of its own 2^32 ticks", Max: 60, Turn: &twin.Turn{Registers: []string{"rtt_stage1"}, Every: 1 << 38}},
		},
	})
}

// sample is the contribution of a sample to the host's histogram, which is in fixed point because of its factors.
const sample = 1 << 36

// samples of a host's histogram; a fraction cannot be a number of the twin.
func samples(register string, word uint64) uint64 {
	if register != "rtt_hist" {
		return word
	}
	if word%sample != 0 {
		return ^uint64(0)
	}
	return word / sample
}

func corrected(register string, word uint64, _ func(string) uint64) uint64 {
	if register == "rtt_hist" {
		return word * sample
	}
	return word
}

func count(index int, actions ...string) twin.Count {
	return twin.Count{Table: "array.outcome.outcomes", Actions: actions, Host: "rtt_counters", Index: index}
}
