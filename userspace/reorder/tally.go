package reorder

// record is what one flow's record says when it leaves the memory.
type record struct {
	prefix    uint64
	signature uint32
	n, o      uint64 // packets compared with their predecessor, out-of-order ones among them
}

// sum is what is known of a prefix.
type sum struct {
	n, o    uint64
	reports uint64
	flows   map[uint32]struct{}
}

// tally is the control plane's part of section 3: it adds up the reports of each prefix and decides.
type tally struct {
	config  *config
	byName  map[uint64]*sum
	reports uint64
	n, o    uint64 // of all records
}

func newTally(c *config) *tally { return &tally{config: c, byName: map[uint64]*sum{}} }

func (t *tally) add(r record) {
	s := t.byName[r.prefix]
	if s == nil {
		s = &sum{flows: map[uint32]struct{}{}}
		t.byName[r.prefix] = s
	}
	s.n, s.o, s.reports = s.n+r.n, s.o+r.o, s.reports+1
	s.flows[r.signature] = struct{}{}
	t.reports, t.n, t.o = t.reports+1, t.n+r.n, t.o+r.o
}

// worth says whether a record that is read at the end of a window would have been reported.
func (t *tally) worth(r record, way bool) bool {
	switch {
	case r.n == 0:
		return false
	case t.config.all:
		return true
	case way:
		return float64(r.o) > t.config.share*float64(r.n)
	}
	return r.o >= uint64(t.config.enough)
}

// heavy decides whether a prefix is put out: sections 3.2.1 and 3.2.3.
func (t *tally) heavy(s *sum) bool {
	if s.n < t.config.alpha || s.o == 0 {
		return false
	}
	return !t.config.all || float64(s.o) > t.config.c*t.config.epsilon*float64(s.n)
}

// output is the set of prefixes that are put out.
func (t *tally) output() map[uint64]*sum {
	out := map[uint64]*sum{}
	for name, s := range t.byName {
		if t.heavy(s) {
			out[name] = s
		}
	}
	return out
}
