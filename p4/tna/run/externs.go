package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

var externs map[string]newObject

func init() { // the map refers to functions that refer to it
	externs = map[string]newObject{
		"CRCPolynomial": newPolynomial, "Hash": newHash, "Random": newRandom, "Register": newRegister,
		"RegisterAction": newRegisterAction, "DirectCounter": newDirectCounter, "Counter": newCounter, "Meter": newMeter,
		"Digest": newDigest, "Resubmit": newResubmit, "Mirror": newMirror, "RegisterParam": newParam, "Lpf": newLpf,
		"MathUnit": newMathUnit, "Checksum": newChecksum, "value_set": newValueSet,
	}
}

// arguments checks how many there are of types and values.
func arguments(i *syntax.Instance, types int, values ...int) {
	if len(i.Type.Args) != types {
		syntax.Throw(i.Pos, "%s has %d types, not %d", i.Type.Name, types, len(i.Type.Args))
	}
	for _, n := range values {
		if n == len(i.Args) {
			return
		}
	}
	syntax.Throw(i.Pos, "%s is not built with %d arguments", i.Type.Name, len(i.Args))
}

func (s *scope) scalarType(t *syntax.Type) *typ {
	found := s.typeOf(t)
	if found.class != classBits {
		syntax.Throw(t.Pos, "%s where bits are wanted", found)
	}
	return found
}

// random is Random: the switch's coins.
type random struct {
	sw   *Switch
	name string
	typ  *typ
}

func newRandom(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 0)
	return &random{sw: switchOf(s), name: s.path + i.Name, typ: s.scalarType(i.Type.Args[0])}
}

func (r *random) call(_ *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "get")
	if len(e.Args) != 0 {
		syntax.Throw(e.Pos, "get has no arguments")
	}
	bits := mask(r.typ.width)
	return expr{at: e.Pos, typ: r.typ, eval: func(m *machine) (uint64, uint64) {
		return r.sw.Coins(r.name, r.typ.width) & bits, 0
	}}
}

// directCounter counts at the row of its table that was found.
type directCounter struct{ table *Table }

func newDirectCounter(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 1)
	s.wantPackets(i.Args[0])
	return &directCounter{}
}

func (s *scope) wantPackets(e syntax.Expr) {
	if f, ok := e.(*syntax.Field); !ok || f.Name != "PACKETS" {
		syntax.Throw(e.At(), "the model counts PACKETS only")
	}
}

func (c *directCounter) join(t *Table) bool {
	if c.table != nil {
		return false
	}
	c.table = t
	return true
}

func (c *directCounter) call(_ *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "count")
	at := e.Pos
	return does(at, func(m *machine) {
		m.effect(at, "a counter")
		if m.row == nil {
			m.fail(at, "a direct counter counts outside of its table")
			return
		}
		m.row.Packets++
	})
}

// Counter is an indexed counter.
type Counter struct {
	Name    string
	Packets []uint64
	index   *typ
}

func newCounter(s *scope, i *syntax.Instance) any {
	arguments(i, 2, 2)
	s.wantPackets(i.Args[1])
	c := &Counter{Name: s.path + i.Name, index: s.scalarType(i.Type.Args[1]), Packets: make([]uint64, s.positive(i.Args[0], 1<<24))}
	switchOf(s).Counters = append(switchOf(s).Counters, c)
	return c
}

func (c *Counter) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "count")
	at, f := e.Pos, s.oneIndex(e, c.index).eval
	return does(at, func(m *machine) {
		m.effect(at, "a counter")
		i, u := f(m)
		if u != 0 || i >= uint64(len(c.Packets)) {
			m.fail(at, "index %d of a counter of %d (undefined bits %#x)", i, len(c.Packets), u)
			return
		}
		c.Packets[i]++
	})
}

// oneIndex is the only argument of a call, exactly of the declared type, as the compiler wants it.
func (s *scope) oneIndex(e *syntax.Call, t *typ) expr {
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "one index is wanted")
	}
	return s.value(e.Args[0]).as(t)
}

// Meter marks packets: green until the control plane sets a rate. Green is 0, red 3.
type Meter struct {
	Name   string
	Rate   float64 // packets a second; 0: everything is green
	Burst  float64 // packets
	index  *typ
	tokens []float64
	last   []uint64 // ns
	pass   uint64   // that executed it
}

func newMeter(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 2)
	s.wantPackets(i.Args[1])
	n := s.positive(i.Args[0], 1<<20)
	m := &Meter{Name: s.path + i.Name, index: s.scalarType(i.Type.Args[0]), tokens: make([]float64, n), last: make([]uint64, n)}
	switchOf(s).Meters = append(switchOf(s).Meters, m)
	return m
}

func (c *Meter) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "execute")
	at, f, sw := e.Pos, s.oneIndex(e, c.index).eval, switchOf(s)
	return expr{at: at, typ: bitsType(8), eval: func(m *machine) (uint64, uint64) {
		m.effect(at, "a meter")
		if c.pass == m.pass {
			m.fail(at, "a second access to meter %s", c.Name)
		}
		c.pass = m.pass
		i, u := f(m)
		if u != 0 || i >= uint64(len(c.tokens)) {
			m.fail(at, "index %d of a meter of %d (undefined bits %#x)", i, len(c.tokens), u)
			return 0, 0
		}
		return c.colour(i, sw.time), 0
	}}
}

func (c *Meter) colour(i, now uint64) uint64 {
	if c.Rate == 0 {
		return 0
	}
	if c.last[i] == 0 {
		c.tokens[i] = c.Burst
	} else {
		c.tokens[i] = min(c.Burst, c.tokens[i]+float64(now-c.last[i])*c.Rate/1e9)
	}
	c.last[i] = now
	if c.tokens[i] < 1 {
		return 3
	}
	c.tokens[i]--
	return 0
}

// digest sends a struct to the control plane.
type digest struct {
	name   string
	typ    *typ
	fields []string
}

func newDigest(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 0)
	t := s.typeOf(i.Type.Args[0])
	if t.class != classStruct {
		syntax.Throw(i.Pos, "a digest of %s", t)
	}
	d := &digest{name: s.path + i.Name, typ: t}
	for _, f := range t.fields {
		if !f.typ.scalar() {
			syntax.Throw(i.Pos, "a digest with %s in it is outside of the model", f.typ)
		}
		d.fields = append(d.fields, f.name)
	}
	return d
}

func (d *digest) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "pack")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "pack has one argument")
	}
	x := s.expr(e.Args[0])
	if x.place == nil || !same(x.typ, d.typ) {
		syntax.Throw(e.Pos, "%s where %s is wanted", x.typ, d.typ)
	}
	at, slot, n, sw := e.Pos, x.place.slot, x.typ.slots(), switchOf(s)
	return does(at, func(m *machine) {
		m.effect(at, "a digest")
		values := make([]uint64, n)
		for i, c := range m.cells[slot : slot+n] {
			if values[i] = c.val; c.undef != 0 {
				m.fail(at, "field %s of a digest is undefined", d.fields[i])
			}
		}
		sw.result.Digests = append(sw.result.Digests, Digest{Name: d.name, Fields: d.fields, Values: values})
	})
}

// resubmit sends the packet through the ingress again, with 64 bits in front.
type resubmit struct{}

func newResubmit(_ *scope, i *syntax.Instance) any {
	arguments(i, 0, 0)
	return &resubmit{}
}

func (*resubmit) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "emit")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "emit has one argument in the model")
	}
	x := s.expr(e.Args[0])
	if x.place == nil || x.typ.class != classHeader || x.typ.bits() != 64 {
		syntax.Throw(e.Pos, "what is resubmitted is a header of 64 bits, not %s", x.typ)
	}
	at, p, sw := e.Pos, x.place, switchOf(s)
	return does(at, func(m *machine) {
		m.effect(at, "a second pass")
		if m.cells[p.slot].val == 0 {
			m.fail(at, "the header that is resubmitted is not valid")
		}
		sw.result.again = append(sw.result.again[:0], emitted(m, at, p)...)
	})
}

// mirror sends a copy of the packet as it arrived, with a header in front, to the port of a session.
type mirror struct{}

func newMirror(_ *scope, i *syntax.Instance) any {
	arguments(i, 0, 0)
	return &mirror{}
}

func (*mirror) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "emit")
	if len(e.Args) != 2 || len(e.Types) != 1 {
		syntax.Throw(e.Pos, "a mirror emits a session and a header, and names the header's type")
	}
	session := s.value(e.Args[0]).as(s.typeOf(&syntax.Type{Pos: e.Pos, Name: "MirrorId_t"}))
	x := s.expr(e.Args[1])
	if t := s.typeOf(e.Types[0]); x.place == nil || x.typ.class != classHeader || !same(x.typ, t) {
		syntax.Throw(e.Pos, "%s where header %s is wanted", x.typ, t)
	}
	at, p, f, sw := e.Pos, x.place, session.eval, switchOf(s)
	return does(at, func(m *machine) {
		m.effect(at, "a clone")
		to, u := f(m)
		if u != 0 || m.cells[p.slot].val == 0 {
			m.fail(at, "a clone's session is undefined, or its header is not valid")
		}
		sw.result.clones = append(sw.result.clones, clone{session: to, front: emitted(m, at, p)})
	})
}

// Param is a RegisterParam: a constant of register actions that the control plane sets.
type Param struct {
	Name  string
	Value uint64
	typ   *typ
}

func newParam(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 1)
	p := &Param{Name: s.path + i.Name, typ: s.scalarType(i.Type.Args[0])}
	p.Value = initial(s.value(i.Args[0]), p.typ)
	switchOf(s).Params = append(switchOf(s).Params, p)
	return p
}

func (p *Param) call(s *scope, e *syntax.Call, method string) expr {
	wantMethod(e, method, "read")
	if aluOf(s) == nil || len(e.Args) != 0 {
		syntax.Throw(e.Pos, "a RegisterParam is read in register actions only")
	}
	return expr{at: e.Pos, typ: p.typ, eval: func(*machine) (uint64, uint64) { return p.Value, 0 }}
}
