package run

import (
	"fmt"
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// undecided writes random statements over eight variables and three bits of a header that may not be there.
type undecided struct {
	r       *rand.Rand
	members strings.Builder
	tables  int
}

func (u *undecided) value() string {
	switch u.r.IntN(6) {
	case 0:
		return fmt.Sprintf("8w%d", u.r.IntN(256))
	case 1:
		return "(5w0 ++ hdr.more[0].a[2:0])"
	case 2:
		return fmt.Sprintf("(md.v%d %s md.v%d)", u.r.IntN(8), []string{"+", "-", "&", "|", "^"}[u.r.IntN(5)], u.r.IntN(8))
	case 3:
		return fmt.Sprintf("(md.v%d[3:0] ++ md.v%d[7:4])", u.r.IntN(8), u.r.IntN(8))
	}
	return fmt.Sprintf("md.v%d", u.r.IntN(8))
}

func (u *undecided) statements(depth int) string {
	var b strings.Builder
	for range 1 + u.r.IntN(3) {
		switch n := u.r.IntN(6); {
		case n < 3 || depth == 0:
			fmt.Fprintf(&b, "md.v%d = %s;\n", u.r.IntN(8), u.value())
		case n < 5:
			op := []string{"==", "!=", "<", ">="}[u.r.IntN(4)]
			fmt.Fprintf(&b, "if (%s %s %s) {\n%s} else {\n%s}\n", u.value(), op, u.value(), u.statements(depth-1), u.statements(depth-1))
		default:
			b.WriteString(u.table())
		}
	}
	return b.String()
}

// table asks for what it found, by a key that may be undefined.
func (u *undecided) table() string {
	n := u.tables
	u.tables++
	fmt.Fprintf(&u.members, "action a%d(bit<8> x) { md.v%d = x; }\naction b%d() { md.v%d = md.v%d; }\n", n, u.r.IntN(8), n, u.r.IntN(8), u.r.IntN(8))
	fmt.Fprintf(&u.members, "table t%d { key = { hdr.more[0].a[2:0] : ternary; md.v%d : ternary; } actions = { a%d; b%d; NoAction; } const entries = {\n", n, u.r.IntN(8), n, n)
	for range u.r.IntN(5) {
		action := fmt.Sprintf("a%d(%d)", n, u.r.IntN(3))
		if u.r.IntN(3) == 0 {
			action = fmt.Sprintf("b%d()", n)
		}
		fmt.Fprintf(&u.members, "(%d &&& %d, %d &&& %d): %s;\n", u.r.IntN(8), u.r.IntN(8), u.r.IntN(256), u.r.IntN(256)&u.r.IntN(256), action)
	}
	fmt.Fprintf(&u.members, "} default_action = NoAction(); }\n")
	if u.r.IntN(2) == 0 {
		return fmt.Sprintf("if (t%d.apply().hit) { %s } else { %s }\n", n, u.statements(0), u.statements(0))
	}
	return fmt.Sprintf("switch (t%d.apply().action_run) { a%d: { %s } default: { %s } }\n", n, n, u.statements(0), u.statements(0))
}

// decided is a program of such statements.
type decided struct {
	text               string
	defined, undefined int // values, without the header
}

func newUndecided(r *rand.Rand) *decided {
	u := &undecided{r: r}
	apply := u.statements(3)
	return &decided{text: strings.Replace(small(u.members.String(), apply), "    bit<8> y;",
		"    bit<8> y;\n    bit<8> v0; bit<8> v1; bit<8> v2; bit<8> v3; bit<8> v4; bit<8> v5; bit<8> v6; bit<8> v7;", 1)}
}

// check that what is defined although the header is not there, is the same whatever the header contains.
func (d *decided) check(t *testing.T) {
	sw, err := buildLoose(d.text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, d.text)
	}
	absent := d.run(t, sw, false, 0)
	for a := range uint32(8) {
		for i, v := range d.run(t, sw, true, a) {
			if c := absent[i]; (c.Val^v.Val)&^c.Undef != 0 || v.Undef != 0 {
				t.Fatalf("v%d is %#x (undefined: %#x) without the header, %#x (%#x) where it is %d:\n%s", i, c.Val, c.Undef, v.Val, v.Undef, a, d.text)
			}
		}
	}
	for _, c := range absent {
		if c.Undef == 0 {
			d.defined++
		} else {
			d.undefined++
		}
	}
}

func (d *decided) run(t *testing.T, sw *Switch, more bool, a uint32) (found [8]lang.Cell) {
	err := sw.Process(Packet{Data: append(frame(0, 0, 0, uint16(number(more))), frame(a, 0, 0, 0)...), Port: 1}, &Result{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, d.text)
	}
	for i := range found {
		found[i] = sw.machine.Cells[sw.ingress.md.Field(syntax.Pos{}, fmt.Sprintf("v%d", i)).Slot]
	}
	return found
}

// TestUndefined: the random programs have values of both kinds.
func TestUndefined(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 16))
	defined, undefined := 0, 0
	for range 60 {
		d := newUndecided(r)
		d.check(t)
		defined, undefined = defined+d.defined, undefined+d.undefined
	}
	if defined < 50 || undefined < 50 {
		t.Errorf("%d values defined, %d undefined: the programs test little", defined, undefined)
	}
}
