package run

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// unit is a random action of a pair's stateful ALU, a hash, and tables that the control plane fills, with the expected results.
type units struct {
	tests   [2]aluTest
	join    string // of both tests, for the first word
	updates [4]aluUpdate
	output  string
	poly    uint32
	first   uint32
	last    uint32
	width   int
	fields  []hashField
	lpm     []prefixRow
	ranges  []rangeRow
}

type (
	aluTest struct {
		word, op, with string
		number         uint32
		signed         bool
	}
	aluUpdate struct{ op, word, with string }
	hashField struct {
		name   string
		hi, lo int
	}
	prefixRow struct {
		value  uint32
		length int
		result uint8
	}
	rangeRow struct {
		low, high uint16
		result    uint8
	}
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomTest(r *rand.Rand) aluTest {
	t := aluTest{word: pick(r, "hi", "lo"), op: pick(r, "<", "<=", ">", ">=", "==", "!="), with: pick(r, "a", "b", ""), signed: r.IntN(4) == 0}
	t.number = uint32(r.Uint64() >> (32 + r.IntN(32)))
	if t.signed {
		t.number &= 1<<31 - 1
	}
	return t
}

func (t *aluTest) text() string {
	left, right := "v."+t.word, fmt.Sprintf("32w%d", t.number)
	if t.with != "" {
		right = "hdr.h." + t.with
	}
	if t.signed {
		left = "(int<32>)" + left
		if right = "(int<32>)" + right; t.with == "" {
			right = fmt.Sprintf("32s%d", t.number)
		}
	}
	return left + " " + t.op + " " + right
}

func (t *aluTest) holds(s *aluState) bool {
	x, y := int64(s.word(t.word)), int64(t.number)
	if t.with != "" {
		y = int64(s.word(t.with))
	}
	if t.signed {
		x, y = int64(int32(x)), int64(int32(y))
	}
	return map[string]bool{"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[t.op]
}

// aluState is an element and a packet.
type aluState struct{ hi, lo, a, b uint32 }

func (s *aluState) word(name string) uint32 {
	return map[string]uint32{"hi": s.hi, "lo": s.lo, "a": s.a, "b": s.b}[name]
}

func randomUpdate(r *rand.Rand) aluUpdate {
	return aluUpdate{pick(r, "+", "-", "|+|", "|-|", "&", "|", "^", "min", "max", "word", "with"), pick(r, "hi", "lo"), pick(r, "a", "b")}
}

func (u *aluUpdate) text() string {
	word, with := "v."+u.word, "hdr.h."+u.with
	switch u.op {
	case "word":
		return word
	case "with":
		return with
	case "min", "max":
		return u.op + "(" + word + ", " + with + ")"
	}
	return word + " " + u.op + " " + with
}

func (u *aluUpdate) of(s *aluState) uint32 {
	x, y := s.word(u.word), s.word(u.with)
	switch u.op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "|+|":
		return uint32(min(uint64(x)+uint64(y), 1<<32-1))
	case "|-|":
		return x - min(x, y)
	case "&":
		return x & y
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "min":
		return min(x, y)
	case "max":
		return max(x, y)
	case "with":
		return y
	}
	return x
}

func randomUnits(r *rand.Rand) *units {
	u := &units{tests: [2]aluTest{randomTest(r), randomTest(r)}, join: pick(r, "&&", "||", ""), output: pick(r, "hi", "lo", "predicate", "fixed"),
		poly: r.Uint32() | 1, first: r.Uint32(), last: r.Uint32(), width: 1 + r.IntN(32)}
	for i := range u.updates {
		u.updates[i] = randomUpdate(r)
	}
	for total := 0; total == 0 || total%8 != 0 || total < 40 && r.IntN(3) > 0; {
		f := hashField{name: pick(r, "a", "b"), hi: r.IntN(32)}
		f.lo = r.IntN(f.hi + 1)
		if left := 8 - total%8; total%8 != 0 && r.IntN(2) == 0 {
			f.hi = min(31, f.lo+left-1)
		}
		u.fields, total = append(u.fields, f), total+f.hi-f.lo+1
	}
	for range 1 + r.IntN(12) {
		n := r.IntN(33)
		u.lpm = append(u.lpm, prefixRow{r.Uint32() & 0x0f0f0f0f &^ uint32(1<<(32-n)-1), n, uint8(r.Uint32())})
		low := uint16(r.Uint32())
		u.ranges = append(u.ranges, rangeRow{low, low + uint16(r.IntN(1<<16-int(low))), uint8(r.Uint32())})
	}
	return u
}

func (u *units) text() string {
	var b strings.Builder
	b.WriteString("Register<pair_t, bit<4>>(16, {0, 0}) r;\nRegisterAction<pair_t, bit<4>, bit<32>>(r) act = { void apply(inout pair_t v, out bit<32> o) {\n")
	condition := u.tests[0].text()
	if u.join != "" {
		condition += " " + u.join + " " + u.tests[1].text()
	}
	fmt.Fprintf(&b, "if (%s) { v.hi = %s; } else { v.hi = %s; }\nif (%s) { v.lo = %s; } else { v.lo = %s; }\n", condition, u.updates[0].text(), u.updates[1].text(),
		u.tests[1].text(), u.updates[2].text(), u.updates[3].text())
	switch u.output {
	case "predicate":
		fmt.Fprintf(&b, "o = this.predicate(%s, %s);\n", u.tests[0].text(), u.tests[1].text())
	case "fixed":
		b.WriteString("o = 8;\n")
	default:
		fmt.Fprintf(&b, "o = v.%s;\n", u.output)
	}
	b.WriteString("} };\n")
	fmt.Fprintf(&b, "CRCPolynomial<bit<32>>(32w%d, true, false, false, 32w%d, 32w%d) p;\nHash<bit<%d>>(HashAlgorithm_t.CUSTOM, p) h;\n", u.poly, u.first, u.last, u.width)
	b.WriteString("action one(bit<8> n) { md.y = n; }\ntable t { key = { hdr.h.a : lpm; } actions = { one; } default_action = one(1); size = 32; }\n" +
		"action two(bit<8> n) { hdr.h.d[7:0] = n; }\ntable g { key = { hdr.h.b[15:0] : range; } actions = { two; } default_action = two(2); size = 32; }\n")
	var list []string
	for _, f := range u.fields {
		list = append(list, fmt.Sprintf("hdr.h.%s[%d:%d]", f.name, f.hi, f.lo))
	}
	return small(b.String(), "t.apply();\ng.apply();\nhdr.h.d[15:8] = md.y;\nmd.x = (bit<32>)h.get({ "+strings.Join(list, ", ")+" });\nhdr.h.b = act.execute(hdr.h.c[3:0]);\nhdr.h.a = md.x;")
}

// crc of the fields, one bit after the other.
func (u *units) crc(s *aluState) uint32 {
	var stream []uint32
	for _, f := range u.fields {
		for i := f.hi; i >= f.lo; i-- {
			stream = append(stream, s.word(f.name)>>i&1)
		}
	}
	crc, reflected := u.first, bits.Reverse32(u.poly)
	for at := 0; at < len(stream); at += 8 {
		for i := range 8 { // reversed: the last bit of a byte first
			out := crc & 1
			if crc >>= 1; out != stream[at+7-i] {
				crc ^= reflected
			}
		}
	}
	return (crc ^ u.last) & uint32(1<<u.width-1)
}

func (u *units) longest(a uint32) uint8 {
	result, best := uint8(1), -1
	for _, p := range u.lpm {
		if p.length > best && (a^p.value)>>(32-p.length) == 0 {
			result, best = p.result, p.length
		}
	}
	return result
}

func (u *units) within(b uint16) uint8 {
	for _, g := range u.ranges {
		if b >= g.low && b <= g.high {
			return g.result
		}
	}
	return 2
}

// step changes the element and returns the output.
func (u *units) step(s *aluState) (out uint32) {
	one, two := u.tests[0].holds(s), u.tests[1].holds(s)
	first := one
	switch u.join {
	case "&&":
		first = one && two
	case "||":
		first = one || two
	}
	choose := func(yes bool, a, b *aluUpdate) uint32 {
		if yes {
			return a.of(s)
		}
		return b.of(s)
	}
	hi, lo := choose(first, &u.updates[0], &u.updates[1]), choose(two, &u.updates[2], &u.updates[3])
	s.hi, s.lo = hi, lo
	switch u.output {
	case "hi":
		return hi
	case "lo":
		return lo
	case "fixed":
		return 8
	}
	return 1 << (number(one) + 2*number(two))
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (u *units) fill(t *testing.T, sw *Switch) {
	for _, p := range u.lpm {
		under := uint64(^uint32(1<<(32-p.length) - 1))
		if err := sw.Table("t").Add([]Match{{Value: uint64(p.value), Mask: under}}, "one", uint64(p.result)); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range u.ranges {
		if err := sw.Table("g").Add([]Match{{Value: uint64(g.low), High: uint64(g.high), Range: true}}, "two", uint64(g.result)); err != nil {
			t.Fatal(err)
		}
	}
}

func (u *units) check(t *testing.T, r *rand.Rand, packets int) {
	sw, err := build(u.text())
	if err != nil {
		t.Fatalf("%v in\n%s", err, u.text())
	}
	u.fill(t, sw)
	var elements [16]aluState
	var result Result
	near := []uint32{u.tests[0].number, u.tests[1].number, 0, 1<<31 - 1, 1 << 31}
	for range packets {
		value := func() uint32 {
			if r.IntN(3) == 0 {
				return pick(r, near...) + uint32(r.IntN(3)) - 1
			}
			return uint32(r.Uint64() >> (32 + r.IntN(32)))
		}
		a, b, c := value(), value(), uint16(r.Uint32())
		if r.IntN(4) == 0 {
			a = pick(r, u.lpm...).value | uint32(r.IntN(256))
		}
		if err := sw.Process(Packet{Data: frame(a, b, c, 2), Port: 1}, &result); err != nil {
			t.Fatalf("%v in\n%s", err, u.text())
		}
		s := &elements[c&15]
		s.a, s.b = a, b
		hash := u.crc(s)
		out := u.step(s)
		want := frame(hash, out, c, uint16(u.longest(a))<<8|uint16(u.within(uint16(b))))
		if string(want) != string(result.Data) {
			t.Fatalf("a %#x, b %#x, c %#x: %x from the model, want %x, with prefixes %v, ranges %v:\n%s", a, b, c, result.Data, want, u.lpm, u.ranges, u.text())
		}
		near = append(near[:5], binary.BigEndian.Uint32(result.Data[4:]), s.hi, s.lo)
	}
}
