package pisa

import (
	"container/heap"
	"fmt"
	"slices"
)

// stepLimit bounds the instructions that the proof of one program interprets. Large ones take some ten thousand.
const stepLimit = 1_000_000

// machine interprets one program.
type machine struct {
	env     *env
	prog    *program
	nodes   *nodes
	entry   bool // the program that begins a chain
	scratch []int32

	mentions mentions

	initial   map[initialKey]*node // words of scratch memory as the program finds them
	junctions map[string]*junction
	context   *node // the pointer that the program is called with
	hook      hook
	queue     queue
	forks     []*state
	steps     int
	limit     int
	watch     func(*state) // of tests: sees every state before its instruction; nil
	nulls     uint32

	updates  map[updateKey][]int32
	flows    map[site]*flow
	wants    []carryRead       // what second passes read of carry
	leaves   uint32            // what every first pass has written of it
	passes   bool              // there is a first pass that asks for a second one
	uses     []use             // by array
	sites    map[int32][]int32 // instructions that touch an array first, by array
	found    []Violation
	failures int
}

type initialKey struct {
	obj       int32
	off, size int
}

// use is what a program does with a map.
type use struct{ read, write, atomic bool }

// junction holds the one state that stands for all that have met at an instruction with the same shape.
type junction struct {
	state  *state
	rank   []int32
	queued bool
	serial int
}

// prove interprets the program until no state is new. What a branch's sides write is needed where they
// meet; the run is repeated when that was learned too late.
func (m *machine) prove() error {
	m.flows = make(map[site]*flow)
	m.scratchMaps()
	for {
		if err := m.run(); err != nil {
			return err
		}
		if !m.lateFlow() {
			return nil
		}
	}
}

func (m *machine) run() error {
	m.nodes = newNodes()
	m.initial = make(map[initialKey]*node)
	m.junctions = make(map[string]*junction)
	m.updates = make(map[updateKey][]int32)
	m.uses = make([]use, len(m.env.arrays))
	m.sites = make(map[int32][]int32)
	m.wants, m.leaves, m.passes = nil, 0, false
	m.found = nil
	m.queue = nil
	m.walk(m.start())
	for len(m.queue) > 0 && m.steps <= m.limit {
		j := heap.Pop(&m.queue).(*junction)
		j.queued = false
		m.walk(j.state.clone())
	}
	if m.steps > m.limit {
		return fmt.Errorf("after %d instructions: %w", m.limit, ErrTooComplex)
	}
	m.checkCarry()
	return nil
}

func (m *machine) scratchMaps() {
	for i, a := range m.env.arrays {
		if a.kind == Scratch {
			m.scratch = append(m.scratch, int32(i))
		}
	}
}

func (m *machine) start() *state {
	s := &state{top: -1, frames: make([]frame, 1), scratch: make([]memory, len(m.scratch))}
	m.context = m.nodes.leaf(span{1, anything.hi})
	s.regs[1] = value{form: formNumber, base: inContext, n: m.context}
	s.regs[10] = m.frameTop(0)
	return s
}

func (m *machine) frameTop(depth int) value {
	return value{form: formStack, obj: int32(depth), n: m.nodes.number(0)}
}

// walk follows a state until it ends or meets others.
func (m *machine) walk(s *state) {
	m.forks = append(m.forks[:0], s)
	for first := true; len(m.forks) > 0; first = false {
		s := m.forks[len(m.forks)-1]
		m.forks = m.forks[:len(m.forks)-1]
		if !first && m.prog.merge[s.pc] {
			m.arrive(s)
			continue
		}
		for m.steps <= m.limit {
			m.steps++
			if len(s.ended) > 0 {
				m.applyEnded(s)
			}
			if m.watch != nil {
				m.watch(s)
			}
			if !m.step(s) {
				break
			}
			if m.prog.merge[s.pc] {
				m.arrive(s)
				break
			}
		}
	}
}

// arrive joins a state with those that are equal but for its numbers.
func (m *machine) arrive(s *state) {
	s.prune(m.prog)
	m.forget(s)
	key := m.shape(s)
	j, ok := m.junctions[key]
	if !ok {
		j = &junction{state: s, rank: m.rank(s), serial: len(m.junctions)}
		m.junctions[key] = j
	} else if !m.join(j, s) {
		return
	}
	if !j.queued {
		j.queued = true
		heap.Push(&m.queue, j)
	}
}

// rank orders states so that what leads to an instruction is interpreted before it.
func (m *machine) rank(s *state) []int32 {
	out := make([]int32, 0, len(s.frames))
	for _, f := range s.frames[1:] {
		call := f.back
		if !f.loop {
			call--
		}
		out = append(out, m.order(call))
	}
	return append(out, m.order(s.pc))
}

func (m *machine) order(pc int) int32 {
	g := m.prog.funcs[m.prog.insns[pc].fn].graph
	return g.order[pc-g.start]
}

func (m *machine) used(obj int32, read, write bool) {
	u := &m.uses[obj]
	u.read = u.read || read
	u.write = u.write || write
}

// queue is a heap of junctions whose state has changed.
type queue []*junction

func (q queue) Len() int { return len(q) }
func (q queue) Less(a, b int) bool {
	if c := slices.Compare(q[a].rank, q[b].rank); c != 0 {
		return c < 0
	}
	return q[a].serial < q[b].serial
}
func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*junction)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
