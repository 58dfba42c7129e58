package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

var externs map[string]lang.NewObject

func init() { // the map refers to functions that refer to it
	externs = map[string]lang.NewObject{
		"CRCPolynomial": newPolynomial, "Hash": newHash, "Random": newRandom, "Register": newRegister,
		"RegisterAction": newRegisterAction, "DirectCounter": newDirectCounter, "Counter": newCounter, "Meter": newMeter,
		"Digest": newDigest, "Resubmit": newResubmit, "Mirror": newMirror, "RegisterParam": newParam, "Lpf": newLpf,
		"MathUnit": newMathUnit, "Checksum": newChecksum, "value_set": lang.NewValueSet,
	}
}

// random is Random: the switch's coins.
type random struct {
	sw   *Switch
	name string
	typ  *lang.Type
}

func newRandom(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 0)
	r := &random{sw: switchOf(s), name: s.Path + i.Name, typ: s.ScalarType(i.Type.Args[0])}
	if r.typ.Width > mostRandom {
		syntax.Throw(i.Pos, "a random number of %d bits: the chip has %d", r.typ.Width, mostRandom)
	}
	return r
}

func (r *random) Call(_ *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "get")
	if len(e.Args) != 0 {
		syntax.Throw(e.Pos, "get has no arguments")
	}
	bits := lang.Mask(r.typ.Width)
	return lang.Expr{At: e.Pos, Type: r.typ, Eval: func(m *lang.Machine) (uint64, uint64) {
		return r.sw.Coins(r.name, r.typ.Width) & bits, 0
	}}
}

// directCounter counts at the matched row of its table.
type directCounter struct{ table *lang.Table }

func newDirectCounter(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 1)
	wantPackets(i.Args[0])
	return &directCounter{}
}

func wantPackets(e syntax.Expr) {
	if f, ok := e.(*syntax.Field); !ok || f.Name != "PACKETS" {
		syntax.Throw(e.At(), "the model counts PACKETS only")
	}
}

func (c *directCounter) Join(t *lang.Table) bool {
	if c.table != nil {
		return false
	}
	c.table = t
	return true
}

func (c *directCounter) Call(_ *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "count")
	at := e.Pos
	return lang.Does(at, func(m *lang.Machine) {
		m.Effect(at, "a counter")
		if m.Row == nil {
			m.Fail(at, "a direct counter counts outside of its table")
			return
		}
		m.Row.Packets++
	})
}

// Counter is an indexed counter.
type Counter struct {
	Name    string
	Packets []uint64
	index   *lang.Type
}

func newCounter(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 2, 2)
	wantPackets(i.Args[1])
	c := &Counter{Name: s.Path + i.Name, index: s.ScalarType(i.Type.Args[1]), Packets: make([]uint64, s.Positive(i.Args[0], 1<<24))}
	switchOf(s).Counters = append(switchOf(s).Counters, c)
	return c
}

// Call compiles a method.
func (c *Counter) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "count")
	at, f := e.Pos, oneIndex(s, e, c.index).Eval
	return lang.Does(at, func(m *lang.Machine) {
		m.Effect(at, "a counter")
		i, u := f(m)
		if u != 0 || i >= uint64(len(c.Packets)) {
			m.Fail(at, "index %d of a counter of %d (undefined bits %#x)", i, len(c.Packets), u)
			return
		}
		c.Packets[i]++
	})
}

// oneIndex is the only argument of a call, of exactly the declared type, as the compiler requires.
func oneIndex(s *lang.Scope, e *syntax.Call, t *lang.Type) lang.Expr {
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "one index is expected")
	}
	s.Simple(e.Args[0])
	return s.Value(e.Args[0]).As(t)
}

// Meter colours packets: green until the control plane sets a rate. Green is 0, red 3.
type Meter struct {
	Name   string
	Rate   float64 // packets a second; 0: everything is green
	Burst  float64 // packets
	index  *lang.Type
	tokens []float64
	last   []uint64 // ns
	pass   uint64   // last pass that executed it
}

func newMeter(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 2)
	wantPackets(i.Args[1])
	n := s.Positive(i.Args[0], 1<<20)
	m := &Meter{Name: s.Path + i.Name, index: s.ScalarType(i.Type.Args[0]), tokens: make([]float64, n), last: make([]uint64, n)}
	switchOf(s).Meters = append(switchOf(s).Meters, m)
	return m
}

// Call compiles a method.
func (c *Meter) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "execute")
	at, f, sw := e.Pos, oneIndex(s, e, c.index).Eval, switchOf(s)
	return lang.Expr{At: at, Type: lang.BitsType(8), Eval: func(m *lang.Machine) (uint64, uint64) {
		m.Effect(at, "a meter")
		if c.pass == m.Pass {
			m.Fail(at, "a second access to meter %s", c.Name)
		}
		c.pass = m.Pass
		i, u := f(m)
		if u != 0 || i >= uint64(len(c.tokens)) {
			m.Fail(at, "index %d of a meter of %d (undefined bits %#x)", i, len(c.tokens), u)
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
	typ    *lang.Type
	fields []string
}

func newDigest(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 0)
	t := s.TypeOf(i.Type.Args[0])
	if t.Class != lang.ClassStruct {
		syntax.Throw(i.Pos, "a digest of %s", t)
	}
	d := &digest{name: s.Path + i.Name, typ: t}
	switchOf(s).Learns = append(switchOf(s).Learns, d.name)
	for _, f := range t.Fields {
		if !f.Type.Scalar() {
			syntax.Throw(i.Pos, "a digest with %s in it is outside of the model", f.Type)
		}
		d.fields = append(d.fields, f.Name)
	}
	if n := (t.Bits() + 7) / 8; n > mostDigest {
		syntax.Throw(i.Pos, "a digest of %d bytes: the chip has %d", n, mostDigest)
	}
	return d
}

func (d *digest) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "pack")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "pack has one argument")
	}
	x := s.Expr(e.Args[0])
	if x.Place == nil || !lang.Same(x.Type, d.typ) {
		syntax.Throw(e.Pos, "%s where %s is expected", x.Type, d.typ)
	}
	at, slot, n, sw := e.Pos, x.Place.Slot, x.Type.Slots(), switchOf(s)
	return lang.Does(at, func(m *lang.Machine) {
		m.Effect(at, "a digest")
		values := make([]uint64, n)
		for i, c := range m.Cells[slot : slot+n] {
			if values[i] = c.Val; c.Undef != 0 {
				m.Fail(at, "field %s of a digest is undefined", d.fields[i])
			}
		}
		sw.result.Digests = append(sw.result.Digests, Digest{Name: d.name, Fields: d.fields, Values: values})
	})
}

// resubmit sends the packet through the ingress again, with a header of 64 bits.
type resubmit struct{}

func newResubmit(_ *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 0, 0)
	return &resubmit{}
}

func (*resubmit) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "emit")
	if len(e.Args) != 1 {
		syntax.Throw(e.Pos, "emit has one argument in the model")
	}
	x := s.Expr(e.Args[0])
	if x.Place == nil || x.Type.Class != lang.ClassHeader || x.Type.Bits() != 64 {
		syntax.Throw(e.Pos, "what is resubmitted is a header of 64 bits, not %s", x.Type)
	}
	at, p, sw := e.Pos, x.Place, switchOf(s)
	return lang.Does(at, func(m *lang.Machine) {
		m.Effect(at, "a second pass")
		if m.Cells[p.Slot].Val == 0 {
			m.Fail(at, "the header that is resubmitted is not valid")
		}
		sw.result.again = append(sw.result.again[:0], lang.Emitted(m, at, p)...)
		sw.result.header(Resubmitted, 0, lang.MadeOf(m, p))
	})
}

// mirror sends a copy of the packet as it arrived, with a header, to the port of a session.
type mirror struct{}

func newMirror(_ *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 0, 0)
	return &mirror{}
}

func (*mirror) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "emit")
	if len(e.Args) != 2 || len(e.Types) != 1 {
		syntax.Throw(e.Pos, "a mirror emits a session and a header, and names the header's type")
	}
	session := s.Value(e.Args[0]).As(s.TypeOf(&syntax.Type{Pos: e.Pos, Name: "MirrorId_t"}))
	x := s.Expr(e.Args[1])
	if t := s.TypeOf(e.Types[0]); x.Place == nil || x.Type.Class != lang.ClassHeader || !lang.Same(x.Type, t) {
		syntax.Throw(e.Pos, "%s where header %s is expected", x.Type, t)
	}
	at, p, f, sw := e.Pos, x.Place, session.Eval, switchOf(s)
	return lang.Does(at, func(m *lang.Machine) {
		m.Effect(at, "a clone")
		to, u := f(m)
		if u != 0 || m.Cells[p.Slot].Val == 0 {
			m.Fail(at, "a clone's session is undefined, or its header is not valid")
		}
		sw.result.clones = append(sw.result.clones, clone{session: to, front: lang.Emitted(m, at, p)})
		sw.result.header(Cloned, to, lang.MadeOf(m, p))
	})
}

// Param is a RegisterParam: a constant of register actions that the control plane sets.
type Param struct {
	Name  string
	Value uint64
	typ   *lang.Type
}

func newParam(s *lang.Scope, i *syntax.Instance) any {
	lang.Arguments(i, 1, 1)
	p := &Param{Name: s.Path + i.Name, typ: s.ScalarType(i.Type.Args[0])}
	p.Value = initial(s.Value(i.Args[0]), p.typ)
	switchOf(s).Params = append(switchOf(s).Params, p)
	return p
}

// Call compiles a method.
func (p *Param) Call(s *lang.Scope, e *syntax.Call, method string) lang.Expr {
	lang.WantMethod(e, method, "read")
	if aluOf(s) == nil || len(e.Args) != 0 {
		syntax.Throw(e.Pos, "a RegisterParam is read in register actions only")
	}
	return lang.Expr{At: e.Pos, Type: p.typ, Eval: func(*lang.Machine) (uint64, uint64) { return p.Value, 0 }}
}
