package run

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// node is an expression of 32 bits as the test evaluates it, and as P4 writes it.
type node struct {
	text string
	eval func(a, b uint32) uint32
}

// randomNode is made of two packet fields, numbers, and the operations that the chip has.
func randomNode(r *rand.Rand, depth int) node {
	if depth == 0 {
		return randomLeaf(r)
	}
	x, y := randomNode(r, depth-1), randomNode(r, depth-1)
	n := 1 + r.IntN(31)
	hi := r.IntN(32)
	lo := r.IntN(hi + 1)
	binary := func(op string, f func(v, w uint32) uint32) node {
		return node{"(" + x.text + " " + op + " " + y.text + ")", func(a, b uint32) uint32 { return f(x.eval(a, b), y.eval(a, b)) }}
	}
	unary := func(text string, f func(v uint32) uint32) node {
		return node{text, func(a, b uint32) uint32 { return f(x.eval(a, b)) }}
	}
	switch r.IntN(14) {
	case 0:
		return binary("+", func(v, w uint32) uint32 { return v + w })
	case 1:
		return binary("-", func(v, w uint32) uint32 { return v - w })
	case 2:
		return binary("&", func(v, w uint32) uint32 { return v & w })
	case 3:
		return binary("|", func(v, w uint32) uint32 { return v | w })
	case 4:
		return binary("^", func(v, w uint32) uint32 { return v ^ w })
	case 5:
		return binary("|+|", func(v, w uint32) uint32 { return uint32(min(uint64(v)+uint64(w), 1<<32-1)) })
	case 6:
		return binary("|-|", func(v, w uint32) uint32 { return v - min(v, w) })
	case 7:
		return unary("(~"+x.text+")", func(v uint32) uint32 { return ^v })
	case 8:
		return unary(fmt.Sprintf("(%s << %d)", x.text, n), func(v uint32) uint32 { return v << n })
	case 9:
		return unary(fmt.Sprintf("(%s >> %d)", x.text, n), func(v uint32) uint32 { return v >> n })
	case 10:
		return unary(fmt.Sprintf("((bit<32>)(%s[%d:%d]))", x.text, hi, lo), func(v uint32) uint32 {
			return v >> lo & uint32(1<<(hi-lo+1)-1)
		})
	case 11:
		return unary(fmt.Sprintf("(%s[%d:0] ++ %s[31:%d])", x.text, n-1, x.text, n), func(v uint32) uint32 { return v<<(32-n) | v>>n })
	case 12:
		return randomChoice(r, x, y)
	}
	return unary(fmt.Sprintf("((bit<32>)((int<32>)%s >> %d))", x.text, n), func(v uint32) uint32 { return uint32(int32(v) >> n) })
}

func randomLeaf(r *rand.Rand) node {
	switch r.IntN(4) {
	case 0:
		return node{"hdr.h.a", func(a, _ uint32) uint32 { return a }}
	case 1:
		return node{"hdr.h.b", func(_, b uint32) uint32 { return b }}
	}
	v := uint32(r.Uint64() >> (32 + r.IntN(32)))
	return node{fmt.Sprintf("32w%#x", v), func(uint32, uint32) uint32 { return v }}
}

// randomChoice compares, with a sign or without.
func randomChoice(r *rand.Rand, x, y node) node {
	op := []string{"<", "<=", ">", ">=", "==", "!="}[r.IntN(6)]
	signed := r.IntN(2) == 0
	left, right := x.text, y.text
	if signed {
		left, right = "(int<32>)"+x.text, "(int<32>)"+y.text
	}
	return node{fmt.Sprintf("(%s %s %s ? %s : %s)", left, op, right, y.text, x.text), func(a, b uint32) uint32 {
		v, w := int64(x.eval(a, b)), int64(y.eval(a, b))
		if signed {
			v, w = int64(int32(v)), int64(int32(w))
		}
		if (map[string]bool{"<": v < w, "<=": v <= w, ">": v > w, ">=": v >= w, "==": v == w, "!=": v != w})[op] {
			return uint32(y.eval(a, b))
		}
		return uint32(x.eval(a, b))
	}}
}

// row of a random table over both fields' low bytes: a is matched exactly, by a mask or by a range from va to ma, b by a mask.
type randomRow struct{ va, ma, vb, mb, result uint8 }

// kinds of the first key.
var kinds = []string{"exact", "ternary", "range"}

func (r *randomRow) text(kind string) string {
	a := fmt.Sprintf("%d &&& %d", r.va, r.ma)
	switch kind {
	case "exact":
		a = fmt.Sprint(r.va)
	case "range":
		a = fmt.Sprintf("%d .. %d", r.va, r.ma)
	}
	return fmt.Sprintf("(%s, %d &&& %d): say(%d);\n", a, r.vb, r.mb, r.result)
}

func (r *randomRow) fits(kind string, a, b uint8) bool {
	yes := (a^r.va)&r.ma == 0
	switch kind {
	case "exact":
		yes = a == r.va
	case "range":
		yes = a >= r.va && a <= r.ma
	}
	return yes && (b^r.vb)&r.mb == 0
}

// randomAction updates a register by one comparison.
type randomAction struct {
	compare, yes, no string
	by               uint32
}

func (c *randomAction) run(v, a uint32) uint32 {
	test := map[string]bool{"<": v < a, ">=": v >= a, "==": v == a, "!=": v != a}[c.compare]
	op := c.no
	if test {
		op = c.yes
	}
	switch op {
	case "v + hdr.h.b":
		return v + c.by
	case "v - hdr.h.b":
		return v - c.by
	case "v |+| hdr.h.b":
		return uint32(min(uint64(v)+uint64(c.by), 1<<32-1))
	case "v |-| hdr.h.b":
		return v - min(v, c.by)
	case "hdr.h.a":
		return a
	}
	return v
}

// randomProgram is an expression, a table and a register action, with their expected results.
type randomProgram struct {
	tree   node
	kind   string
	rows   []randomRow
	action randomAction
}

func newRandomProgram(r *rand.Rand) *randomProgram {
	updates := []string{"v + hdr.h.b", "v - hdr.h.b", "v |+| hdr.h.b", "v |-| hdr.h.b", "hdr.h.a", "v"}
	p := &randomProgram{tree: randomNode(r, 1+r.IntN(4)), action: randomAction{compare: []string{"<", ">=", "==", "!="}[r.IntN(4)],
		yes: updates[r.IntN(6)], no: updates[r.IntN(6)]}, kind: kinds[r.IntN(len(kinds))]}
	for range r.IntN(12) {
		row := randomRow{uint8(r.Uint32()), uint8(r.Uint32() & r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32() & r.Uint32()), uint8(r.Uint32())}
		if p.kind == "range" {
			row.ma = max(row.va, row.ma)
		}
		p.rows = append(p.rows, row)
	}
	return p
}

func (p *randomProgram) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Register<bit<32>, bit<4>>(16, 0) r;\nRegisterAction<bit<32>, bit<4>, bit<32>>(r) act = {\n"+
		"void apply(inout bit<32> v, out bit<32> o) { if (v %s hdr.h.a) { v = %s; } else { v = %s; } o = v; } };\n", p.action.compare, p.action.yes, p.action.no)
	b.WriteString("action say(bit<8> n) { md.y = n; }\ntable t { key = { hdr.h.a[7:0] : " + p.kind + "; hdr.h.b[7:0] : ternary; } actions = { say; }\nconst entries = {\n")
	for _, row := range p.rows {
		b.WriteString(row.text(p.kind))
	}
	b.WriteString("}\ndefault_action = say(7); }\n")
	return small(b.String(), "md.x = "+p.tree.text+";\nt.apply();\nhdr.h.b = act.execute(hdr.h.c[3:0]);\nhdr.h.a = md.x;\nhdr.h.c[7:0] = md.y;")
}

// lookup is the first row that matches.
func (p *randomProgram) lookup(a, b uint8) uint8 {
	for _, row := range p.rows {
		if row.fits(p.kind, a, b) {
			return row.result
		}
	}
	return 7
}

// check runs random packets through the program and through its evaluation in Go.
func (p *randomProgram) check(t *testing.T, r *rand.Rand, packets int) {
	sw, err := buildLoose(p.text())
	if err != nil {
		t.Fatalf("%v in\n%s", err, p.text())
	}
	var state [16]uint32
	var result Result
	for range packets {
		a, b, c := uint32(r.Uint64()>>(32+r.IntN(32))), uint32(r.Uint64()>>(32+r.IntN(32))), uint16(r.Uint32())
		packet := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, a), b)
		packet = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(packet, c), 0)
		if err := sw.Process(Packet{Data: packet, Port: 1}, &result); err != nil {
			t.Fatalf("%v in\n%s", err, p.text())
		}
		p.action.by = b
		slot := &state[c&15]
		*slot = p.action.run(*slot, a)
		want := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, p.tree.eval(a, b)), *slot)
		want = append(want, byte(c>>8), p.lookup(uint8(a), uint8(b)), 0, 0)
		if string(want) != string(result.Data) {
			t.Fatalf("a %#x, b %#x, c %#x: %x from the model, want %x:\n%s", a, b, c, result.Data, want, p.text())
		}
	}
}

// TestLongRandomPrograms compares random expressions, tables, register actions and hashes with their evaluation in Go, and the results for undefined
// values with their evaluation, for
// XDPMON_FUZZTIME (make fuzz), and some hundred of them without.
func TestLongRandomPrograms(t *testing.T) {
	const few = 150
	seed := uint64(1)
	until := time.Time{}
	if text := os.Getenv("XDPMON_FUZZTIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		until, seed = time.Now().Add(d), uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	n := 0
	for ; n < few || time.Now().Before(until); n++ {
		newRandomProgram(r).check(t, r, 40)
		randomUnits(r).check(t, r, 40)
		newUndecided(r).check(t)
	}
	t.Logf("%d programs", n)
}

// buildLoose is for expressions of any depth, which no action of the chip has.
func buildLoose(text string) (*Switch, error) {
	program, err := Read(fstest.MapFS{"top.p4": {Data: []byte(text)}}, "top.p4", Tofino1, nil)
	if err != nil {
		return nil, err
	}
	sw := newSwitch(Tofino1)
	sw.Loose = true
	return compile(program, sw)
}
