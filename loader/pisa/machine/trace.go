package machine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Sources that are no word of the vector, no map and no array.
const (
	nowName     = "now"
	randomName  = "random"
	packetName  = "packet"
	contextName = "context"
	kernelName  = "kernel"
	flagsName   = "tcp_flags"
	tablePrefix = "table "
	hashPrefix  = "hash "
	hashTables  = "hash_crc_tables"
	hashRowSize = 4 * 4 * 256 // bytes of a row of hash_crc_tables: slicing by four
)

// Sources are what a number is calculated from: words of the packet header vector, arrays by name, tables ("table NAME"), rows of hashes
// ("hash N"), and single bits of tcp_flags ("tcp_flags N").
type Sources map[string]bool

// Access is what a program does with one array.
type Access struct {
	Read, Write bool
	Condition   Sources // what decides whether a packet touches an element
	Index       Sources // what the element's number is calculated from, and Condition
	Written     Sources // what is written is calculated from, and what decides whether it is
}

// trace follows what numbers are calculated from further than a proof has to: to single words of the packet. What was read of an element
// is a source of its own.
type trace struct {
	numbers map[string]int
	words   []word                // of the vector
	flags   map[*expr.Node]bool   // tcp_flags as the program found them
	found   map[int32]*foundTouch // by array
	failed  error
}

type word struct {
	name     string
	off, end int
}

type foundTouch struct {
	read, write               bool
	condition, index, written declared.Set
}

func (t *trace) begin(m *Machine) {
	if t == nil {
		return
	}
	t.found, t.flags = map[int32]*foundTouch{}, map[*expr.Node]bool{}
	if t.words != nil || m.env.Vector.Array < 0 {
		return
	}
	s, ok := btf.As[*btf.Struct](m.env.Arrays[m.env.Vector.Array].Spec.Value)
	if !ok {
		return
	}
	for _, member := range s.Members {
		if size, err := btf.Sizeof(member.Type); err == nil {
			off := int(member.Offset.Bytes())
			t.words = append(t.words, word{member.Name, off, off + size})
		}
	}
}

// touch notes one access to an element.
func (t *trace) touch(s *state.State, ptr value.Value, by touch) {
	if t == nil {
		return
	}
	f := t.found[ptr.Obj]
	if f == nil {
		f = &foundTouch{}
		t.found[ptr.Obj] = f
	}
	f.read, f.write = f.read || by.read, f.write || by.write
	if by.write {
		f.written = f.written.Or(by.value.Named).Or(s.Control.Named)
	}
	if a := s.AccessTo(ptr.Obj); a == nil || !a.Touched {
		f.condition = f.condition.Or(s.Control.Named)
		f.index = f.index.Or(ptr.T.Named).Or(s.Control.Named)
	}
}

// named is the taint of sources; nothing in a proof.
func (m *Machine) named(names ...string) (t value.Taint) {
	if m.trace == nil {
		return t
	}
	for _, name := range names {
		n, ok := m.trace.numbers[name]
		if !ok {
			if n = len(m.trace.numbers); n == declared.MostNames {
				m.trace.failed = fmt.Errorf("trace: more than %d sources: %w", declared.MostNames, rule.ErrTooComplex)
				return t
			}
			m.trace.numbers[name] = n
		}
		t.Named = t.Named.Or(declared.Number(n))
	}
	return t
}

func (m *Machine) namedArray(obj int32) value.Taint { return m.named(m.env.Arrays[obj].Name) }

// namedMap is the source of what lies in a map that is no array and no scratch memory.
func (m *Machine) namedMap(s *state.State, ptr value.Value) value.Taint {
	a := m.env.Arrays[ptr.Obj]
	switch {
	case m.trace == nil:
	case a.Name == hashTables:
		lo, hi := s.Reach(ptr)
		if lo/hashRowSize != hi/hashRowSize {
			return m.named(tablePrefix + a.Name)
		}
		return m.named(fmt.Sprint(hashPrefix, lo/hashRowSize))
	case a.Kind == declared.Random:
		return m.named(randomName)
	case a.Kind == declared.Table || a.Kind == declared.Prefix || a.Kind == declared.Untagged:
		return m.named(tablePrefix + a.Name)
	}
	return value.Taint{}
}

// firstWord is a word of scratch memory as the program finds it.
func (m *Machine) firstWord(obj int32, off, size int) value.Value {
	n := m.wordOf(obj, off, size)
	v := value.Number(n, value.FromPacket)
	if m.trace == nil {
		return v
	}
	v.T = v.T.With(m.namedWord(obj, off, size))
	if names := m.trace.at(off, off+size); size == 1 && obj == m.env.Vector.Array && slices.Equal(names, []string{flagsName}) {
		m.trace.flags[n] = true
	}
	return v
}

func (t *trace) at(off, end int) (names []string) {
	for _, w := range t.words {
		if w.off < end && off < w.end {
			names = append(names, w.name)
		}
	}
	return names
}

// namedWord is the taint of the vector's words in a range.
func (m *Machine) namedWord(obj int32, off, size int) (t value.Taint) {
	if m.trace == nil || obj != m.env.Vector.Array {
		return t
	}
	for _, name := range m.trace.at(off, off+size) {
		if name == flagsName {
			t = t.With(m.flagBits(0xff))
		} else {
			t = t.With(m.named(name))
		}
	}
	return t
}

func (m *Machine) flagBits(mask uint64) (t value.Taint) {
	for bit := range 8 {
		if mask>>bit&1 != 0 {
			t = t.With(m.named(fmt.Sprint(flagsName, " ", bit)))
		}
	}
	return t
}

// maskedTaint is what a number depends on that was made of t. Of flags that were shifted and masked by constants the bits that are left.
func (m *Machine) maskedTaint(n *expr.Node, t value.Taint) value.Taint {
	if m.trace == nil {
		return t
	}
	if mask, _, ok := m.trace.bitsOf(n); ok {
		t.Named = t.Named.Without(m.flagBits(^mask).Named)
	}
	return t
}

// bitsOf flags a number shows, and how far they are shifted to the right.
func (t *trace) bitsOf(n *expr.Node) (mask uint64, shift uint, ok bool) {
	switch {
	case t.flags[n]:
		return 0xff, 0, true
	case n.A == nil || n.B == nil || n.B.Op != expr.Const || n.Op != expr.And && n.Op != expr.Shr:
		return 0, 0, false
	}
	if mask, shift, ok = t.bitsOf(n.A); !ok {
		return 0, 0, false
	}
	if n.Op == expr.Shr {
		shift += uint(n.B.K & 63)
		return mask >> shift << shift, shift, true
	}
	return mask & (n.B.K << shift), shift, true
}

// Trace interprets a proven program and returns what it does with every array that it touches, by name.
func (m *Machine) Trace() (map[string]Access, error) {
	m.trace = &trace{numbers: map[string]int{}}
	m.steps = 0
	if err := m.prove(); err != nil {
		return nil, err
	}
	if m.trace.failed != nil {
		return nil, m.trace.failed
	}
	out := map[string]Access{}
	for obj, f := range m.trace.found {
		out[m.env.Arrays[obj].Name] = Access{Read: f.read, Write: f.write, Condition: m.trace.sources(f.condition),
			Index: m.trace.sources(f.index), Written: m.trace.sources(f.written)}
	}
	return out, nil
}

func (t *trace) sources(of declared.Set) Sources {
	out := Sources{}
	for _, name := range slices.Sorted(maps.Keys(t.numbers)) {
		if of.Meets(declared.Number(t.numbers[name])) {
			out[name] = true
		}
	}
	return out
}

// With is what two programs do together.
func (a Access) With(o Access) Access {
	return Access{Read: a.Read || o.Read, Write: a.Write || o.Write, Condition: a.Condition.with(o.Condition),
		Index: a.Index.with(o.Index), Written: a.Written.with(o.Written)}
}

func (s Sources) with(o Sources) Sources {
	out := Sources{}
	maps.Copy(out, s)
	maps.Copy(out, o)
	return out
}

// Names of the sources, sorted.
func (s Sources) Names() []string { return append([]string{}, slices.Sorted(maps.Keys(s))...) }
