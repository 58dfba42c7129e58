package reorder

// record is one flow's record, as read or reported when it is removed from memory.
type record struct {
	prefix    uint64
	signature uint32
	n, o      uint64 // packets compared with their predecessor, out-of-order ones among them
}

// flow of a prefix.
type flow struct {
	prefix    uint64
	signature uint32
}

// flows are the reports of a window, those of one flow added up.
type flows map[flow]*sum

func (f flows) add(r record) {
	at := flow{r.prefix, r.signature}
	s := f[at]
	if s == nil {
		s = &sum{}
		f[at] = s
	}
	s.n, s.o, s.reports = s.n+r.n, s.o+r.o, s.reports+1
}

// sum holds the counts of a prefix or of a flow.
type sum struct {
	n, o    uint64
	reports uint64
	flows   map[uint32]struct{} // of a prefix
}

// tally is the control plane's part of section 3: it adds up the reports of each prefix and decides.
type tally struct {
	config  *config
	byName  map[uint64]*sum
	reports uint64
	n, o    uint64 // of all records
}

func newTally(c *config) *tally { return &tally{config: c, byName: map[uint64]*sum{}} }

// add a flow's reports.
func (t *tally) add(at flow, of sum) {
	s := t.byName[at.prefix]
	if s == nil {
		s = &sum{flows: map[uint32]struct{}{}}
		t.byName[at.prefix] = s
	}
	s.n, s.o, s.reports = s.n+of.n, s.o+of.o, s.reports+of.reports
	s.flows[at.signature] = struct{}{}
	t.reports, t.n, t.o = t.reports+of.reports, t.n+of.n, t.o+of.o
}

// worth reports whether a record that is read at the end of a window would have been reported by the data plane.
func (c *config) worth(r record, way bool) bool {
	switch {
	case r.n == 0:
		return false
	case c.all:
		return true
	case way:
		return float64(r.o) > c.share*float64(r.n)
	}
	return r.o >= uint64(c.enough)
}

// heavy decides whether a prefix is reported: sections 3.2.1 and 3.2.3.
func (t *tally) heavy(s *sum) bool {
	if s.n < t.config.alpha || s.o == 0 {
		return false
	}
	return !t.config.all || float64(s.o) > t.config.c*t.config.epsilon*float64(s.n)
}

// output is the set of prefixes that are reported.
func (t *tally) output() map[uint64]*sum {
	out := map[uint64]*sum{}
	for name, s := range t.byName {
		if t.heavy(s) {
			out[name] = s
		}
	}
	return out
}
