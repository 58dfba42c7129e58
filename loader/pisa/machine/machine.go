// Package machine interprets a program on all packets at once and finds where it breaks a memory rule.
package machine

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/trace"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// StepLimit bounds the instructions that the proof of one program interprets. Large ones take some ten thousand.
const StepLimit = 1_000_000

// Machine interprets one program.
type Machine struct {
	env     *declared.Collection
	Prog    *code.Program
	nodes   *expr.Nodes
	entry   bool // the program that begins a chain
	scratch []int32

	mentions code.Mentions

	initial   map[initialKey]*expr.Node // initial words of scratch memory
	junctions map[string]*junction
	context   *expr.Node // the pointer that the program is called with
	hook      allow.Hook
	queue     queue
	forks     []*state.State
	steps     int
	limit     int
	watch     func(*state.State) // of tests: sees every state before its instruction; nil
	nulls     uint32
	trace     *trace.Trace // nil: a proof alone

	updates  map[updateKey][]int32
	flows    state.Flows
	wants    []carryRead       // bytes of carry that second passes read
	leaves   uint32            // bytes of carry that every first pass has written
	passes   bool              // some first pass requests a second one
	Uses     []Use             // by array
	sites    map[int32][]int32 // instructions that touch an array first, by array
	Found    []rule.Violation
	failures int
}

type initialKey struct {
	obj       int32
	off, size int
}

// Use is the access of a program to a map.
type Use struct{ Read, Write, Atomic bool }

// junction holds the one state that represents all states of the same shape at an instruction.
type junction struct {
	state  *state.State
	rank   []int32
	queued bool
	serial int
}

// prove interprets the program until no state is new. Where the sides of a branch meet, the run needs to know what both write; it is
// repeated when that is found only later.
func (m *Machine) prove() error {
	m.flows = make(state.Flows)
	m.scratchMaps()
	for {
		if err := m.run(); err != nil {
			return err
		}
		if !m.flows.Late() {
			return nil
		}
	}
}

func (m *Machine) run() error {
	m.nodes = expr.NewNodes()
	m.initial = make(map[initialKey]*expr.Node)
	m.junctions = make(map[string]*junction)
	m.updates = make(map[updateKey][]int32)
	m.Uses = make([]Use, len(m.env.Arrays))
	m.sites = make(map[int32][]int32)
	m.wants, m.leaves, m.passes = nil, 0, false
	m.trace.Begin()
	m.Found = nil
	m.queue = nil
	m.walk(m.start())
	for len(m.queue) > 0 && m.steps <= m.limit {
		j := heap.Pop(&m.queue).(*junction)
		j.queued = false
		m.walk(j.state.Clone())
	}
	if m.steps > m.limit {
		return fmt.Errorf("after %d instructions: %w", m.limit, rule.ErrTooComplex)
	}
	m.checkCarry()
	return nil
}

func (m *Machine) scratchMaps() {
	for i, a := range m.env.Arrays {
		if a.Kind == declared.Scratch {
			m.scratch = append(m.scratch, int32(i))
		}
	}
}

func (m *Machine) start() *state.State {
	s := &state.State{Top: -1, Frames: make([]state.Frame, 1), Scratch: make([]value.Memory, len(m.scratch))}
	m.context = m.nodes.Leaf(expr.Span{Lo: 1, Hi: expr.Anything.Hi})
	s.Regs[1] = value.Value{Form: value.FormNumber, Base: value.InContext, N: m.context}
	s.Regs[10] = m.frameTop(0)
	return s
}

func (m *Machine) frameTop(depth int) value.Value {
	return value.Value{Form: value.FormStack, Obj: int32(depth), N: m.nodes.Number(0)}
}

// walk follows a state until it ends or meets others.
func (m *Machine) walk(s *state.State) {
	m.forks = append(m.forks[:0], s)
	for first := true; len(m.forks) > 0; first = false {
		s := m.forks[len(m.forks)-1]
		m.forks = m.forks[:len(m.forks)-1]
		if !first && m.Prog.Merge[s.PC] {
			m.arrive(s)
			continue
		}
		for m.steps <= m.limit {
			m.steps++
			if len(s.Ended) > 0 {
				m.applyEnded(s)
			}
			if m.watch != nil {
				m.watch(s)
			}
			if !m.step(s) {
				break
			}
			if m.Prog.Merge[s.PC] {
				m.arrive(s)
				break
			}
		}
	}
}

// arrive joins a state with those that differ from it in numbers only.
func (m *Machine) arrive(s *state.State) {
	s.Prune(m.Prog)
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

// rank orders states so that an instruction is interpreted after all that precede it.
func (m *Machine) rank(s *state.State) []int32 {
	out := make([]int32, 0, len(s.Frames))
	for _, f := range s.Frames[1:] {
		call := f.Back
		if !f.Loop {
			call--
		}
		out = append(out, m.order(call))
	}
	return append(out, m.order(s.PC))
}

func (m *Machine) order(pc int) int32 {
	g := m.Prog.Funcs[m.Prog.Insns[pc].Fn].Graph
	return g.Order[pc-g.Start]
}

func (m *Machine) used(obj int32, read, write bool) {
	u := &m.Uses[obj]
	u.Read = u.Read || read
	u.Write = u.Write || write
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

// SiteCount is the number of source lines at which a packet's access to an array begins.
func (m *Machine) SiteCount(array int) int {
	places := make(map[string]bool)
	for _, pc := range m.sites[int32(array)] {
		places[m.Prog.Where(int(pc))] = true
	}
	return len(places)
}
