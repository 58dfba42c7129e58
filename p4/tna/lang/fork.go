package lang

// If a decision is undefined, all possible alternatives run from the same state: fork, each alternative followed by
// collect, then merge. What they agree on is kept; every bit in which they differ is undefined.

// forks is the state of alternatives.
type forks struct {
	journal []change // writes since the outermost fork, oldest first
	begun   []begun
	where   []int32 // while outcomes are collected: a cell's index among them, from 1 on
	written []outcome
}

// change is the earlier content of a cell.
type change struct {
	slot int
	was  Cell
}

// begun alternatives.
type begun struct {
	journal, written, could int // start of the two lists, and the number of alternatives
}

// outcome is a cell's content after some of the alternatives.
type outcome struct {
	slot  int
	to    Cell
	could int
}

func (m *Machine) fork() {
	m.Taint++
	m.begun = append(m.begun, begun{journal: len(m.journal), written: len(m.written)})
}

// collect records what an alternative wrote, and undoes it.
func (m *Machine) collect() {
	b := &m.begun[len(m.begun)-1]
	b.could++
	all := m.written[b.written:]
	for i := range all {
		m.where[all[i].slot] = int32(i + 1)
	}
	for _, c := range m.journal[b.journal:] {
		at := m.where[c.slot]
		if at == 0 {
			m.written = append(m.written, outcome{slot: c.slot, to: c.was, could: b.could - 1})
			at = int32(len(m.written) - b.written)
			m.where[c.slot] = at
		}
		if o := &m.written[b.written+int(at)-1]; o.could < b.could {
			o.could = b.could
			if now := m.Cells[c.slot]; b.could == 1 {
				o.to = now
			} else {
				o.to.Undef |= now.Undef | (o.to.Val ^ now.Val)
			}
		}
	}
	for i := len(m.journal) - 1; i >= b.journal; i-- {
		m.Cells[m.journal[i].slot] = m.journal[i].was
	}
	m.journal = m.journal[:b.journal]
	// what earlier alternatives wrote and this one did not is unchanged
	for i := range m.written[b.written:] {
		o := &m.written[b.written+i]
		m.where[o.slot] = 0
		if o.could < b.could {
			o.could = b.could
			was := m.Cells[o.slot]
			o.to.Undef |= was.Undef | (o.to.Val ^ was.Val)
		}
	}
}

func (m *Machine) merge() {
	b := m.begun[len(m.begun)-1]
	m.begun = m.begun[:len(m.begun)-1]
	m.Taint--
	for _, o := range m.written[b.written:] {
		m.Set(o.slot, o.to.Val, o.to.Undef)
	}
	m.written = m.written[:b.written]
}

// Join runs alternatives.
func (m *Machine) Join(alternatives ...Step) {
	m.fork()
	for _, run := range alternatives {
		run(m)
		m.collect()
	}
	m.merge()
}
