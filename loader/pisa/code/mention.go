package code

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// Mentions are the registers and tallies that instructions refer to from here to the end of their function, those of called
// functions among them: mentions[i] for instruction i.
type Mentions []declared.Set

// NewMentions iterates backward over all functions until nothing is added: functions call each other, and loops go back.
func NewMentions(p *Program, arrays []*declared.Array) Mentions {
	own := make(Mentions, len(p.Insns))
	for i := range p.Insns {
		if at := p.Insns[i].Array; at >= 0 && arrays[at].Staged() {
			own[i] = arrays[at].Group
		}
	}
	out := slices.Clone(own)
	for changed := true; changed; {
		changed = false
		for i := len(p.Insns) - 1; i >= 0; i-- {
			now := out[i]
			if in := &p.Insns[i]; in.IsFunctionReference() {
				now = now.Or(out[in.Target]) // a function that is called, or whose address is taken
			}
			next, _ := p.successors(i)
			for _, to := range next {
				now = now.Or(out[to])
			}
			changed = changed || now != out[i]
			out[i] = now
		}
	}
	return out
}
