// Package precision registers the twin of PRECISION.
package precision

import (
	"github.com/xdpmon/xdpmon/p4/admission"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// forms: bugs are planted in the last one; the others differ from it in the key.
func forms() []twin.Form {
	all := []twin.Form{{}}
	for _, key := range []string{"srcdst", "src", "dst", "service", "sport", "dport", "proto"} {
		all = append(all, twin.Form{Name: key, Generated: true, Brief: true, Set: map[string]string{"key": key, "entries": "256", "initial": "8"}})
	}
	return append(all, twin.Form{Name: "small", Generated: true, Set: map[string]string{"entries": "256", "initial": "8"}})
}

func init() {
	twin.Register(&twin.Twin{
		Name: "precision", Algorithm: "precision",
		Window:      &twin.Flip{Table: "precision.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers:   true,
		Coins:       twin.HighBits,
		Unreachable: admission.Unreachable(),
		Forms:       forms(),
		Counts: []twin.Count{
			admission.Count("precision", 3, "matched"),
			admission.Count("precision", 4, "admitted"),
			admission.Count("precision", 5, "written"),
			admission.Count("precision", 0, "matched", "admitted", "passed_over"),
			admission.Count("precision", 1, "matched", "admitted", "passed_over"),
		},
		Also:        []twin.Count{admission.Count("precision", 2, "no_key")},
		Start:       admission.Sizes("precision"),
		Drive:       admission.Full("precision"),
		Host:        admission.Saturated("precision"),
		Native:      admission.Native,
		Emits:       admission.Second(nil),
		Differences: []twin.Difference{twin.Echoes},
	})
}
