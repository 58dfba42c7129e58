// Package hhh registers the twin of the hierarchical heavy hitters.
package hhh

import (
	"maps"

	"github.com/xdpmon/xdpmon/p4/admission"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
)

// forms: bugs are planted in the last one; the others differ from it in the key.
func forms() []twin.Form {
	small := func(name string, more map[string]string) twin.Form {
		set := map[string]string{"entries": "256", "initial": "8"}
		maps.Copy(set, more)
		return twin.Form{Name: name, Generated: true, Brief: len(more) > 0, Set: set}
	}
	// Two forms have all parts of the four that only the study runs.
	study := func(f twin.Form) twin.Form {
		f.Study = true
		return f
	}
	return []twin.Form{{}, study(small("dst", map[string]string{"dimension": "dst"})), study(small("nibble", map[string]string{"level": "nibble"})),
		study(small("bit", map[string]string{"level": "bit"})),
		small("dst-nibble", map[string]string{"dimension": "dst", "level": "nibble"}), small("both", map[string]string{"dimension": "both"}),
		study(small("both-nibble", map[string]string{"dimension": "both", "level": "nibble"})), small("small", nil)}
}

func init() {
	twin.Register(&twin.Twin{
		Name: "hhh", Algorithm: "hhh",
		Window:      &twin.Flip{Table: "hhh.window", Action: "use_bank", Banks: [2][]uint64{{0}, {1}}},
		Registers:   true,
		Coins:       twin.HighBits,
		Unreachable: admission.Unreachable(),
		Forms:       forms(),
		Start:       admission.Sizes("hhh"),
		Drive:       admission.Full("hhh"),
		Host:        admission.Saturated("hhh"),
		Native:      admission.Native,
		Emits: admission.Second(func(s *twin.Seen, f twin.Fields) {
			f["level"] = s.PHV.Carry[0] >> 32
			if s.Values.Text("dimension") == "both" {
				f["level"], f["other"] = s.PHV.Carry[0]>>32&0xff, s.PHV.Carry[0]>>40
			}
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
