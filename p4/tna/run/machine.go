package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// machine is the state of one packet's pass.
type machine struct {
	cells   []cell
	sw      *Switch
	pass    uint64 // a number of its own; a register remembers the last one that touched it
	parsing bool   // a statement behind the packet's end is not executed
	taint   int    // above 0: an undefined value chose what runs now
	fault   error
	row     *Row // the table's row whose action runs
	data    []byte
	at      int // bits read
	short   uint64
	draws   int // of random numbers in this pass
	time    uint64
	result  *Result
	out     []byte
	keys    struct{ val, undef [mostKeys]uint64 } // of the table that is looked up now
	could   []*Row                                // that tables whose keys are undefined could find
	forks
}

// cell is a value, and which of its bits are undefined.
type cell struct{ val, undef uint64 }

// set writes a cell. What an undefined value chose can be taken back.
func (m *machine) set(slot int, val, undef uint64) {
	if m.taint > 0 {
		m.journal = append(m.journal, change{slot, m.cells[slot]})
	}
	m.cells[slot] = cell{val, undef}
}

// copy writes cells that follow each other.
func (m *machine) copy(slot int, from []cell) {
	if m.taint == 0 {
		copy(m.cells[slot:], from)
		return
	}
	for i, c := range from {
		m.set(slot+i, c.val, c.undef)
	}
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
	copy(m.cells, sw.initial)
	sw.passes++
	m.pass, m.taint, m.fault, m.at, m.short, m.draws, m.journal = sw.passes, 0, nil, 0, 0, 0, m.journal[:0]
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
