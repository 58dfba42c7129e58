// Package hhh registers the twin of the hierarchical heavy hitters.
package hhh

import (
	"github.com/xdpmon/xdpmon/p4/admission"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "hhh", Algorithm: "hhh",
		Window:      &twin.Flip{Table: "hhh.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers:   true,
		Coins:       twin.HighBits,
		Unreachable: admission.Unreachable(),
		Forms:       []twin.Form{{}, {Name: "small", Generated: true, Set: map[string]string{"entries": "256", "initial": "8"}}},
		Start:       admission.Sizes("hhh"),
		Drive:       admission.Full("hhh"),
		Host:        admission.Saturated("hhh"),
		Emits: admission.Second(func(s *twin.Seen, f twin.Fields) {
			f["level"] = s.PHV.Carry[0] >> 32
		}),
		Counts: []twin.Count{
			admission.Count("hhh", 4, "matched"),
			admission.Count("hhh", 5, "admitted"),
			admission.Count("hhh", 6, "written"),
			admission.Count("hhh", 2, "matched", "admitted", "passed_over"),
			admission.Count("hhh", 0, "matched", "admitted", "passed_over"),
		},
		Also: []twin.Count{admission.Count("hhh", 3, "no_key")},
	})
}
