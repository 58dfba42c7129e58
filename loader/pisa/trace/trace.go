// Package trace follows what numbers are calculated from further than a proof has to: to single words of the packet header vector. What
// was read of an element is a source of its own.
package trace

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/expr"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Sources that are no word of the vector, no map and no array.
const (
	Now     = "now"
	Random  = "random"
	Packet  = "packet"
	Context = "context"
	Kernel  = "kernel"

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

// Trace names sources by members of sets. A nil trace, as a proof has it, names nothing.
type Trace struct {
	numbers map[string]int
	vector  int32
	words   []word
	flags   map[*expr.Node]bool // tcp_flags as the program found them
	found   map[int32]*touched  // by array
	failed  error
}

type word struct {
	name     string
	off, end int
}

type touched struct {
	read, write               bool
	condition, index, written declared.Set
}

// New begins a trace of programs of a collection.
func New(e *declared.Collection) *Trace {
	t := &Trace{numbers: map[string]int{}, vector: e.Vector.Array}
	if t.vector < 0 {
		return t
	}
	s, ok := btf.As[*btf.Struct](e.Arrays[t.vector].Spec.Value)
	if !ok {
		return t
	}
	for _, member := range s.Members {
		if size, err := btf.Sizeof(member.Type); err == nil {
			off := int(member.Offset.Bytes())
			t.words = append(t.words, word{member.Name, off, off + size})
		}
	}
	return t
}

// Begin forgets what an earlier run has found.
func (t *Trace) Begin() {
	if t != nil {
		t.found, t.flags = map[int32]*touched{}, map[*expr.Node]bool{}
	}
}

// Touch is one access to an element: its pointer, what is written if something is, and what being here depends on. first: it
// is the packet's first one to this array.
func (t *Trace) Touch(ptr value.Value, read, write, first bool, written, control value.Taint) {
	if t == nil {
		return
	}
	f := t.found[ptr.Obj]
	if f == nil {
		f = &touched{}
		t.found[ptr.Obj] = f
	}
	f.read, f.write = f.read || read, f.write || write
	if write {
		f.written = f.written.Or(written.Named).Or(control.Named)
	}
	if first {
		f.condition = f.condition.Or(control.Named)
		f.index = f.index.Or(ptr.T.Named).Or(control.Named)
	}
}

// Of a source, by its name.
func (t *Trace) Of(name string) (out value.Taint) {
	if t == nil {
		return out
	}
	n, ok := t.numbers[name]
	if !ok {
		if n = len(t.numbers); n == declared.MostNames {
			t.failed = fmt.Errorf("trace: more than %d sources: %w", declared.MostNames, rule.ErrTooComplex)
			return out
		}
		t.numbers[name] = n
	}
	out.Named = declared.Number(n)
	return out
}

// Map is the source of what lies in a map that is no array and no scratch memory, at one of these offsets.
func (t *Trace) Map(a *declared.Array, lo, hi int) value.Taint {
	switch {
	case a.Name == hashTables && lo/hashRowSize == hi/hashRowSize:
		return t.Of(fmt.Sprint(hashPrefix, lo/hashRowSize))
	case a.Kind == declared.Random:
		return t.Of(Random)
	case a.Kind == declared.Table || a.Kind == declared.Prefix || a.Kind == declared.Untagged:
		return t.Of(tablePrefix + a.Name)
	}
	return value.Taint{}
}

// Word is the taint of words of scratch memory as the program finds them.
func (t *Trace) Word(obj int32, off, size int) (out value.Taint) {
	if t == nil || obj != t.vector {
		return out
	}
	for _, w := range t.words {
		switch {
		case w.off >= off+size || off >= w.end:
		case w.name == flagsName:
			out = out.With(t.flagBits(0xff))
		default:
			out = out.With(t.Of(w.name))
		}
	}
	return out
}

// First notes the number that a word of scratch memory holds when the program begins.
func (t *Trace) First(n *expr.Node, obj int32, off, size int) {
	if t == nil || obj != t.vector {
		return
	}
	if slices.Contains(t.words, word{flagsName, off, off + size}) {
		t.flags[n] = true
	}
}

func (t *Trace) flagBits(mask uint64) (out value.Taint) {
	for bit := range 8 {
		if mask>>bit&1 != 0 {
			out = out.With(t.Of(fmt.Sprint(flagsName, " ", bit)))
		}
	}
	return out
}

// Masked is what a number depends on that was made of what depends on of. Of flags that were shifted and masked by constants the bits that
// are left.
func (t *Trace) Masked(n *expr.Node, of value.Taint) value.Taint {
	if t == nil {
		return of
	}
	if mask, _, ok := t.bitsOf(n); ok {
		of.Named = of.Named.Without(t.flagBits(^mask).Named)
	}
	return of
}

// bitsOf flags a number shows, and how far they are shifted to the right.
func (t *Trace) bitsOf(n *expr.Node) (mask uint64, shift uint, ok bool) {
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

// Found is what the program does with every array that it touches, by number.
func (t *Trace) Found() (map[int32]Access, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	out := map[int32]Access{}
	for obj, f := range t.found {
		out[obj] = Access{Read: f.read, Write: f.write, Condition: t.sources(f.condition), Index: t.sources(f.index), Written: t.sources(f.written)}
	}
	return out, nil
}

func (t *Trace) sources(of declared.Set) Sources {
	out := Sources{}
	for name, n := range t.numbers {
		if of.Meets(declared.Number(n)) {
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
