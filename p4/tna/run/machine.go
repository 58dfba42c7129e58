package run

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// machine is the state of one packet's pass.
type machine struct {
	cells   []cell
	pass    uint64 // a number of its own; a register remembers the last one that touched it
	parsing bool   // a statement behind the packet's end is not executed
	taint   int    // above 0: an undefined value chose what runs now
	fault   error
	row     *Row // the table's row whose action runs
	data    []byte
	at      int // bits read
	short   uint64
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

// newMachine is one that runs what a builder has compiled.
func newMachine(b *builder) *machine {
	return &machine{cells: make([]cell, len(b.initial)), forks: forks{where: make([]int32, len(b.initial))}}
}

// begin a pass: over data, with cells as they are at first.
func (m *machine) begin(b *builder, data []byte) {
	copy(m.cells, b.initial)
	m.pass++
	m.taint, m.fault, m.at, m.short, m.journal, m.data, m.out = 0, nil, 0, 0, m.journal[:0], data, m.out[:0]
}

// rest of the data behind what was parsed goes out behind what was emitted.
func (m *machine) rest() { m.out = append(m.out, m.data[min(len(m.data), (m.at+7)/8):]...) }

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
