package machine

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// world is a program's input: the packet, configuration and registers, and data that earlier packets have left in other memory.
type world struct {
	env     *declared.Collection
	maps    map[string]*simMap
	context *simMemory
	packet  *simMemory
	buffer  *simMemory // the socket buffer, of a trace point
	now     uint64

	garbage    *rand.Rand // of stacks and records
	full       *rand.Rand // of rings
	chance     *rand.Rand // the kernel's random numbers
	emptySlots bool
	emptyQueue bool

	passes int
	throws int        // of the kernel's random numbers
	asked  int        // for a second pass, whether there was a program in the slot or not
	found  chainWords // when the pass began
}

// chainWords are the vector's words of the chain.
type chainWords struct{ pass, next uint8 }

// left are the kinds of memory whose data of earlier packets must not change the result.
type left struct{ stacks, scratch, carry, counts, rings, budget bool }

func randomLeft(r *rand.Rand) left {
	some := func() bool { return r.IntN(4) > 0 }
	return left{some(), some(), some(), some(), r.IntN(2) == 0, r.IntN(3) == 0}
}

const (
	packetBytes = 64
	headroom    = 32
)

// always are numbers that are the same for all packets of a program: steps from them must not depend on the packet.
func always(n uint64) *rand.Rand { return rand.New(rand.NewPCG(1, n)) }

// newWorld is one packet in one history. Both histories have the same seed; shifted makes the generators start from
// another state.
func newWorld(e *declared.Collection, seed, history, shifted uint64, differ left) world {
	r, h := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(history, 2))
	of := func(differs bool, n uint64) *rand.Rand {
		if differs {
			return rand.New(rand.NewPCG(history, n))
		}
		return rand.New(rand.NewPCG(seed, n))
	}
	w := world{env: e, maps: make(map[string]*simMap), now: 1 + uint64(r.Uint32N(1000)), emptySlots: r.IntN(4) == 0,
		garbage: of(differ.stacks, 3), full: of(differ.rings, 4), chance: always(5)}
	for _, a := range e.Arrays {
		if w.maps[a.Map] != nil { // one of several arrays in the map
			continue
		}
		m := newSimMap(a.Map, a)
		w.maps[a.Map] = m
		fill := r
		switch a.Kind {
		case declared.Scratch:
			fill = of(differ.scratch && a.Name != declared.VectorName, 6)
		case declared.Counters, declared.Tally:
			fill = of(differ.counts, 7)
		case declared.Random:
			fill = always(10 + shifted)
		case declared.Table, declared.Prefix, declared.Constant, declared.Untagged:
			fill = always(9)
		case declared.Budget:
			if fill = always(8); differ.budget {
				fill = of(true, 8)
			}
		}
		for _, element := range m.elements {
			element.spoil(fill)
		}
	}
	w.packet = newMemory("packet", headroom+packetBytes, r)
	w.packet.from, w.packet.to = headroom, headroom+8+r.IntN(packetBytes-8)
	for i := range headroom {
		w.packet.data[i] = byte(h.Uint32N(4))
	}
	w.context = newMemory("context", 192, r)
	w.buffer = newMemory("buffer", 64, r)
	w.beginVector(r, of(differ.carry, 9))
	return w
}

// beginVector sets the words that the entry program sets, and leaves earlier packets' data in carry.
func (w *world) beginVector(r, carry *rand.Rand) {
	v := &w.env.Vector
	mem := w.maps[declared.VectorName].elements[0]
	mem.data[v.Next] = 3
	mem.data[v.Bank] = byte(r.IntN(2))
	mem.data[v.Pass] = byte(r.IntN(2) * 2 * r.IntN(2))
	for i := range v.Carry.Size {
		mem.data[v.Carry.Off+i] = byte(carry.Uint32N(4))
	}
}

func (w *world) vector() chainWords {
	v, mem := &w.env.Vector, w.maps[declared.VectorName].elements[0]
	return chainWords{mem.data[v.Pass], mem.data[v.Next]}
}

// result is the state after a packet.
type result struct {
	outcome
	asked  int
	broken string
	trace  uint64
	memory []byte // registers, packet and the words that the next program may read
	counts []byte // what was added to counters
	state  []byte // of the generator
	throws int    // of the kernel's
	budget []byte
}

// packetThrough runs a packet through a program, twice if it is granted a second pass.
func packetThrough(s *simulator) (out result) {
	counters := s.maps["counts"]
	before := append([]byte(nil), counters.elements[0].data...)
	before = append(before, counters.elements[1].data...)
	header := s.header()
	for {
		s.found = s.vector()
		out.outcome = s.pass()
		if out.how != "pass" || s.passes > 1 {
			break
		}
	}
	out.asked, out.broken, out.trace, out.throws = s.asked, s.broken, s.trace, s.throws
	for _, a := range s.env.Arrays {
		if a.Kind == declared.Register {
			for _, e := range s.maps[a.Map].elements {
				out.memory = append(out.memory, e.data...)
			}
		}
	}
	out.memory = append(out.memory, s.packet.data[s.packet.from:s.packet.to]...)
	for _, word := range s.env.Vector.Writable {
		if out.how == "chain" && word != s.env.Vector.Carry {
			out.memory = append(out.memory, s.maps[declared.VectorName].elements[0].data[word.Off:word.Off+word.Size]...)
		}
	}
	after := append(append([]byte(nil), counters.elements[0].data...), counters.elements[1].data...)
	out.counts = difference(before, after)
	out.state = append(out.state, s.maps["generator"].elements[0].data...)
	for _, e := range s.maps["recirc_budget"].elements {
		out.budget = append(out.budget, e.data...)
	}
	if out.broken == "" && !bytes.Equal(header, s.header()) {
		out.broken = "a word of the vector outlives the packet"
	}
	return out
}

// header is the part of the vector that the entry program does not set for each packet.
func (w *world) header() []byte {
	out := append([]byte(nil), w.maps[declared.VectorName].elements[0].data...)
	for _, word := range w.env.Vector.Writable {
		clear(out[word.Off : word.Off+word.Size])
	}
	return out
}

// difference of counters, in words of 8 bytes.
func difference(before, after []byte) []byte {
	out := make([]byte, len(after))
	for at := 0; at < len(after); at += 8 {
		borrow := 0
		for i := at; i < at+8; i++ {
			d := int(after[i]) - int(before[i]) - borrow
			borrow = 0
			if d < 0 {
				d, borrow = d+256, 1
			}
			out[i] = byte(d)
		}
	}
	return out
}

// differs names the first difference between the results of one packet in two histories.
func (a result) differs(b result, l left) string {
	switch {
	case a.asked != b.asked && l.budget: // the budget may differ between histories, and decides the second pass
		return ""
	case a.asked != b.asked:
		return fmt.Sprintf("%d passes and %d", a.asked, b.asked)
	case a.outcome != b.outcome:
		return fmt.Sprintf("ends %v and %v", a.outcome, b.outcome)
	case !bytes.Equal(a.memory, b.memory):
		return "registers, packet or vector differ"
	case !bytes.Equal(a.state, b.state):
		return "the generator's state differs"
	case !bytes.Equal(a.budget, b.budget) && !l.budget:
		return "the budget differs"
	case !bytes.Equal(a.counts, b.counts) && !l.rings && !l.budget:
		return "counters differ"
	}
	return ""
}

// simulate runs the program of a collection on one packet in one history; false when the verifier would refuse it.
func simulate(e *declared.Collection, p *ebpf.ProgramSpec, seed, history, shifted uint64, l left) (out result, ok bool) {
	s := &simulator{world: newWorld(e, seed, history, shifted, l), insns: p.Instructions, labels: make(map[string]int), hook: p.Type}
	s.emptyQueue = len(s.insns)%2 == 0 // configuration: for all packets of a program
	for i, ins := range s.insns {
		if name := ins.Symbol(); name != "" {
			s.labels[name] = i
		}
	}
	defer func() {
		if why := recover(); why != nil {
			if _, ok = why.(invalid); ok {
				ok = false
				return
			}
			panic(why)
		}
	}()
	return packetThrough(s), true
}
