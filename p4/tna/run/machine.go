package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// machine is the state of one packet's pass.
type machine struct {
	val, undef []uint64 // slots: values, and their undefined bits
	sw         *Switch
	pass       uint64 // a number of its own; a register remembers the last one that touched it
	parsing    bool   // a statement behind the packet's end is not executed
	taint      int    // above 0: an undefined value chose what runs now
	fault      error
	row        *Row // the table's row whose action runs
	data       []byte
	at         int // bits read
	short      uint64
	depth      int // of joins
	copies     [][2]kept
	draws      int // of random numbers in this pass
	time       uint64
	result     *Result
	out        []byte
}

// step is a compiled statement.
type step func(m *machine)

func (m *machine) fail(at syntax.Pos, format string, args ...any) {
	if m.fault == nil {
		m.fault = syntax.Errorf(at, format, args...)
	}
}

// effect is called where something outside of the packet's own state changes.
func (m *machine) effect(at syntax.Pos, what string) {
	if m.taint > 0 {
		m.fail(at, "an undefined value decides over %s", what)
	}
}

// begin sets everything back for another pass.
func (sw *Switch) begin(m *machine) {
	copy(m.val, sw.initial)
	copy(m.undef, sw.undefined)
	sw.passes++
	m.pass, m.taint, m.fault, m.at, m.short, m.draws = sw.passes, 0, nil, 0, 0, 0
}

// kept is a copy of the slots.
type kept struct{ val, undef []uint64 }

func (k *kept) take(m *machine) {
	k.val, k.undef = append(k.val[:0], m.val...), append(k.undef[:0], m.undef...)
}

func (k *kept) give(m *machine) {
	copy(m.val, k.val)
	copy(m.undef, k.undef)
}

// join runs all that an undefined value could have chosen, each from the same state. What they agree on stands; every bit in
// which they differ is undefined.
func (m *machine) join(alternatives ...step) {
	if m.depth++; m.depth > len(m.copies) {
		m.copies = append(m.copies, [2]kept{})
	}
	m.copies[m.depth-1][0].take(m)
	var after *kept
	m.taint++
	for n, run := range alternatives {
		if n > 0 {
			m.copies[m.depth-1][0].give(m)
		}
		run(m)
		after = &m.copies[m.depth-1][1] // a deeper join may have grown the slice
		if n == 0 {
			after.take(m)
			continue
		}
		for i, v := range m.val {
			after.undef[i] |= m.undef[i] | after.val[i] ^ v
		}
	}
	after.give(m)
	m.taint--
	m.depth--
}

func sequence(steps []step) step {
	switch len(steps) {
	case 0:
		return func(*machine) {}
	case 1:
		return steps[0]
	case 2:
		a, b := steps[0], steps[1]
		return func(m *machine) { a(m); b(m) }
	}
	return func(m *machine) {
		for _, s := range steps {
			s(m)
		}
	}
}
