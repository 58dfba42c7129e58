package lang

import "github.com/xdpmon/xdpmon/p4/tna/syntax"

// Machine is the state of one packet's pass.
type Machine struct {
	Cells   []Cell
	Pass    uint64 // a unique number; a register stores the last one that accessed it
	parsing bool   // a statement after the packet's end is not executed
	Taint   int    // above 0: an undefined value selected the current code
	Fault   error
	Row     *Row // the table's row whose action is running
	data    []byte
	at      int // number of bits read
	Short   uint64
	Out     []byte
	Made    []Made                                // headers of Out that the parser has not extracted
	parsed  []uint64                              // the pass in which a header was extracted, by its slot
	keys    struct{ val, undef [mostKeys]uint64 } // of the current table lookup
	could   []*Row                                // rows that tables with undefined keys may match
	forks
}

// Cell is a value with its undefined bits.
type Cell struct{ Val, Undef uint64 }

// Set writes a cell. Writes selected by an undefined value can be undone.
func (m *Machine) Set(slot int, val, undef uint64) {
	if m.Taint > 0 {
		m.journal = append(m.journal, change{slot, m.Cells[slot]})
	}
	m.Cells[slot] = Cell{val, undef}
}

// copy writes cells that follow each other.
func (m *Machine) copy(slot int, from []Cell) {
	if m.Taint == 0 {
		copy(m.Cells[slot:], from)
		return
	}
	for i, c := range from {
		m.Set(slot+i, c.Val, c.Undef)
	}
}

// Step is a compiled statement.
type Step func(m *Machine)

// Fail records the first fault of a packet.
func (m *Machine) Fail(at syntax.Pos, format string, args ...any) {
	if m.Fault == nil {
		m.Fault = syntax.Errorf(at, format, args...)
	}
}

// Effect is called if something outside of the packet's own state changes.
func (m *Machine) Effect(at syntax.Pos, what string) {
	if m.Taint > 0 {
		m.Fail(at, "an undefined value decides over %s", what)
	}
}

// NewMachine makes a machine that runs a builder's program.
func NewMachine(b *Builder) *Machine {
	return &Machine{Cells: make([]Cell, len(b.initial)), parsed: make([]uint64, len(b.initial)), forks: forks{where: make([]int32, len(b.initial))}}
}

// Begin starts a pass over data, with initial cells.
func (m *Machine) Begin(b *Builder, data []byte) {
	copy(m.Cells, b.initial)
	m.Pass++
	m.Taint, m.Fault, m.at, m.Short, m.journal, m.data, m.Out, m.Made = 0, nil, 0, 0, m.journal[:0], data, m.Out[:0], m.Made[:0]
}

// Rest appends the unparsed data to what was emitted.
func (m *Machine) Rest() { m.Out = append(m.Out, m.data[min(len(m.data), (m.at+7)/8):]...) }

func sequence(steps []Step) Step {
	switch len(steps) {
	case 0:
		return func(*Machine) {}
	case 1:
		return steps[0]
	case 2:
		a, b := steps[0], steps[1]
		return func(m *Machine) { a(m); b(m) }
	}
	return func(m *Machine) {
		for _, s := range steps {
			s(m)
		}
	}
}
