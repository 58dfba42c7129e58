package compile

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

func (p *Program) p4Coupons() string {
	var b strings.Builder
	b.WriteString("control BeaucoupCoupons(in headers_t hdr, in question_t q, in bit<48> stamp, in bit<1> coin,\n                        out bit<8> query, out bit<8> coupon, out bit<8> drawn) {\n")
	for i := range p.Attributes {
		fmt.Fprintf(&b, "    bit<16> h%d = 0;\n    bit<1> hit%d = 0;\n    bit<8> query%d = 0;\n    bit<8> coupon%d = 0;\n    HASH_ROW(hash%d, HASH_ROW_%d);\n", i, i, i, i, i, i%4)
	}
	for i := range p.Attributes {
		p.p4Attribute(&b, i)
	}
	p.p4Ties(&b)
	b.WriteString("    apply {\n        query = 0;\n        coupon = 0;\n        drawn = 0;\n")
	for i := range p.Attributes {
		fmt.Fprintf(&b, "        compute%d();\n", i)
	}
	for i := range p.Attributes {
		fmt.Fprintf(&b, "        coupons%d.apply();\n", i)
	}
	b.WriteString("        ties.apply();\n    }\n}\n\n")
	return b.String()
}

func (p *Program) p4Attribute(b *strings.Builder, i int) {
	a := &p.Attributes[i]
	fmt.Fprintf(b, "\n    /* distinct %s */\n    action compute%d() { h%d = (bit<16>)hash%d.get({ %s }); }\n", a.Text, i, i, i, a.p4Fields())
	fmt.Fprintf(b, "    action draw%d(bit<8> q_, bit<8> c_) {\n        hit%d = 1;\n        query%d = q_;\n        coupon%d = c_;\n    }\n\n", i, i, i, i)
	fmt.Fprintf(b, "    table coupons%d {\n        key = {\n            h%d : ternary;\n            q.kind : ternary;\n            hdr.tcp.flags : ternary;\n            hdr.ipv4.isValid() : ternary;\n", i, i)
	ports := a.filter.Mask>>32 != 0
	if ports {
		b.WriteString("            q.ports : ternary;\n")
	}
	fmt.Fprintf(b, "        }\n        actions = {\n            draw%d;\n        }\n        entries = {\n", i)
	rules := p.couponRules(i)
	for _, r := range rules {
		fmt.Fprintf(b, "            (%s, %s, %s, %s", r.Hash.p4(), r.Kind.p4(), r.Flags.p4(), [...]string{"_", "true", "false"}[r.family])
		if ports {
			fmt.Fprintf(b, ", %s", r.Ports.p4())
		}
		fmt.Fprintf(b, "): draw%d(%d, %d);\n", i, r.Query, r.Coupon)
	}
	size := p4Coupons
	for size < len(rules) {
		size *= 2
	}
	fmt.Fprintf(b, "        }\n        size = %d;\n    }\n", size)
}

// p4Ties are the rules of section 4.4.1: one attribute that draws, or a coin between two.
func (p *Program) p4Ties(b *strings.Builder) {
	n := len(p.Attributes)
	b.WriteString("\n")
	for i := range n {
		fmt.Fprintf(b, "    action take%d() {\n        query = query%d;\n        coupon = coupon%d;\n        drawn = 1;\n    }\n", i, i, i)
	}
	b.WriteString("\n    table ties {\n        key = {\n")
	for i := range n {
		fmt.Fprintf(b, "            hit%d : ternary;\n", i)
	}
	b.WriteString("            coin : ternary;\n        }\n        actions = {\n")
	for i := range n {
		fmt.Fprintf(b, "            take%d;\n", i)
	}
	b.WriteString("        }\n        const entries = {\n")
	rules := 0
	rule := func(hits []int, coin string, take int) {
		row := make([]string, n)
		for i := range row {
			row[i] = "0"
		}
		for _, h := range hits {
			row[h] = "1"
		}
		fmt.Fprintf(b, "            (%s, %s): take%d();\n", strings.Join(row, ", "), coin, take)
		rules++
	}
	for i := range n {
		rule([]int{i}, "_", i)
		for k := range i {
			rule([]int{k, i}, "1", k)
			rule([]int{k, i}, "0", i)
		}
	}
	fmt.Fprintf(b, "        }\n        size = %d;\n    }\n\n", rules)
}

func (p *Program) p4Queries() string {
	var b strings.Builder
	b.WriteString(`control BeaucoupQueries(in headers_t hdr, in question_t q, in bit<8> query, inout beaucoup_key_t whose, inout bit<8> before,
                        inout bit<32> window, inout bit<8> asked) {
    action ask4(bit<32> src_, bit<32> dst_, bit<32> ports_, bit<8> protocol_, bit<8> before_, bit<32> window_) {
        whose.src3 = hdr.ipv4.src & src_;
        whose.dst3 = hdr.ipv4.dst & dst_;
        whose.ports = q.ports & ports_;
        whose.protocol = hdr.ipv4.protocol & protocol_;
        before = before_;
        window = window_;
        asked = 1;
    }

    action ask6(bit<32> src0_, bit<32> src1_, bit<32> src2_, bit<32> src3_, bit<32> dst0_, bit<32> dst1_, bit<32> dst2_,
                bit<32> dst3_, bit<32> ports_, bit<8> protocol_, bit<8> before_, bit<32> window_) {
        whose.src0 = hdr.ipv6.src0 & src0_;
        whose.src1 = hdr.ipv6.src1 & src1_;
        whose.src2 = hdr.ipv6.src2 & src2_;
        whose.src3 = hdr.ipv6.src3 & src3_;
        whose.dst0 = hdr.ipv6.dst0 & dst0_;
        whose.dst1 = hdr.ipv6.dst1 & dst1_;
        whose.dst2 = hdr.ipv6.dst2 & dst2_;
        whose.dst3 = hdr.ipv6.dst3 & dst3_;
        whose.ports = q.ports & ports_;
        whose.protocol = hdr.ipv6.next & protocol_;
        before = before_;
        window = window_;
        asked = 1;
    }

    table queries {
        key = {
            query              : ternary;
            hdr.ipv4.isValid() : ternary;
            q.kind             : ternary;
        }
        actions = {
            ask4;
            ask6;
        }
        entries = {
`)
	for _, r := range p.queryRules() {
		words := make([]string, len(r.Masks))
		for n, m := range r.Masks {
			words[n] = fmt.Sprintf("%#x", m)
		}
		fmt.Fprintf(&b, "            (%d, %t, %s): ask%d(%s, %d, %d); // %s\n", r.Query, r.family == 1, r.Kind.p4(), 2+2*r.family, strings.Join(words, ", "), r.Before, r.Window, r.Text)
	}
	fmt.Fprintf(&b, "        }\n        size = %d;\n    }\n\n", 2*MaxQueries)
	b.WriteString("    apply {\n        queries.apply();\n    }\n}\n\n")
	return b.String()
}

func p4Onehot() string {
	var b strings.Builder
	b.WriteString("control BeaucoupOnehot(in bit<8> coupon, out bit<32> onehot) {\n    action bit_of(bit<32> b) { onehot = b; }\n\n" +
		"    table bits {\n        key = {\n            coupon : exact;\n        }\n        actions = {\n            bit_of;\n        }\n        const entries = {\n")
	for c := range 32 {
		fmt.Fprintf(&b, "            %d: bit_of(%#x);\n", c, uint32(1)<<c)
	}
	b.WriteString("        }\n        size = 32;\n    }\n\n    apply {\n        onehot = 0;\n        bits.apply();\n    }\n}\n\n")
	return b.String()
}

func p4Ones() string {
	var b strings.Builder
	b.WriteString("control BeaucoupOnes(in bit<8> b, out bit<4> ones) {\n    action count(bit<4> n) { ones = n; }\n\n" +
		"    table bits {\n        key = {\n            b : exact;\n        }\n        actions = {\n            count;\n        }\n        const entries = {\n")
	for x := range 256 {
		fmt.Fprintf(&b, "            %d: count(%d);\n", x, bits.OnesCount8(uint8(x)))
	}
	b.WriteString("        }\n        size = 256;\n    }\n\n    apply {\n        ones = 0;\n        bits.apply();\n    }\n}\n")
	return b.String()
}

// p4Complete subtracts the first byte's count from the missing coupons and matches all combinations of counts in the other three
// bytes: adding the counts would take three more stages.
func p4Complete() string {
	var b strings.Builder
	b.WriteString("\ncontrol BeaucoupLeft(in bit<8> b, in bit<8> before, out bit<8> left) {\n    action count(bit<8> less) { left = before + less; }\n\n" +
		"    table bits {\n        key = {\n            b : exact;\n        }\n        actions = {\n            count;\n        }\n        const entries = {\n")
	for x := range 256 {
		fmt.Fprintf(&b, "            %d: count(%#x);\n", x, uint8(-bits.OnesCount8(uint8(x))))
	}
	b.WriteString("        }\n        size = 256;\n    }\n\n    apply {\n        left = 0;\n        bits.apply();\n    }\n}\n\n" +
		"control BeaucoupComplete(in bit<8> left, in bit<4> a, in bit<4> b, in bit<4> c, inout bit<1> copy) {\n" +
		"    action alert() { copy = 1; }\n\n    table sums {\n        key = {\n            left : exact;\n            a : exact;\n" +
		"            b : exact;\n            c : exact;\n        }\n        actions = {\n            alert;\n        }\n        const entries = {\n")
	for i := range 9 * 9 * 9 {
		x, y, z := i/81, i/9%9, i%9
		fmt.Fprintf(&b, "            (%d, %d, %d, %d): alert();\n", x+y+z, x, y, z)
	}
	b.WriteString("        }\n        size = 1024;\n    }\n\n    apply {\n        sums.apply();\n    }\n}\n")
	return b.String()
}

// family is the IP version that a filter selects: 4, 6, or 0 for both.
func (f *Filter) family() uint64 { return (f.Value & f.Mask) >> shiftFamily & 0xf }

// fieldList is the list of a hash's input fields. Masked bits are zeros, which cost a switch nothing, so that a field has the
// same position in every hash: crc_attribute in bpf/beaucoup/beaucoup.bpf.c.
type fieldList struct {
	fields []string
	zeros  int // zero bits after the fields
}

func (l *fieldList) zero(bits int) { l.zeros += bits }

func (l *fieldList) add(name string) {
	l.flush()
	l.fields = append(l.fields, name)
}

func (l *fieldList) flush() {
	for ; l.zeros > 0; l.zeros -= min(l.zeros, 64) {
		l.fields = append(l.fields, fmt.Sprintf("%dw0", min(l.zeros, 64)))
	}
}

func (l *fieldList) text() string {
	l.flush()
	return strings.Join(l.fields, ", ")
}

// word adds the bits of a 32-bit field that a mask selects; a prefix ends with zeros.
func (l *fieldList) word(name string, mask uint32) {
	if mask == 0 {
		l.zero(32)
		return
	}
	n := bits.TrailingZeros32(mask)
	l.add(fmt.Sprintf("%s[31:%d]", name, n))
	l.zero(n)
}

// either adds fields or zeros.
func (l *fieldList) either(there bool, name string, bits int) {
	if there {
		l.add(name)
	} else {
		l.zero(bits)
	}
}

// address adds an address of each version. A header that the packet does not have is all zeros (@pa_no_overlay in top.p4), so
// that one hash serves both families.
func (l *fieldList) address(name string, high, low, family uint64) {
	four, six := uint32(low), []uint32{uint32(high >> 32), uint32(high), uint32(low >> 32), uint32(low)}
	switch family {
	case 4:
		six = make([]uint32, 4)
	case 6:
		four = 0
	}
	l.word("hdr.ipv4."+name, four)
	for n, mask := range six {
		l.word(fmt.Sprintf("hdr.ipv6.%s%d", name, n), mask)
	}
}

// p4Fields lists the input fields of an attribute's hash: on a running switch queries can be replaced, but only with these
// fields.
func (a *attribute) p4Fields() string { return a.p4FieldsOf(a.filter.family()) }

func (a *attribute) p4FieldsOf(family uint64) string {
	l, m := &fieldList{}, a.Mask[WordPorts]
	l.address("src", a.Mask[wordSrcHigh], a.Mask[WordSrcLow], family)
	l.address("dst", a.Mask[wordDstHigh], a.Mask[WordDstLow], family)
	l.either(m>>ShiftSport&0xffff != 0, "q.ports[31:16]", 16)
	l.either(m>>ShiftDport&0xffff != 0, "q.ports[15:0]", 16)
	l.either(m>>ShiftProto&0xff != 0, "hdr.ipv4.protocol, hdr.ipv6.next", 16)
	l.either(m>>shiftFlags&0xff != 0, "hdr.tcp.flags", 8)
	l.zero(8)
	l.either(a.Mask[WordPacket] != 0, "stamp, hdr.ipv4.id", 64) // two packets of a nanosecond differ in the identifier
	return l.text()
}

const (
	P4HashBits = 16   // of an attribute's hash are matched
	p4Coupons  = 1024 // entries of an attribute's table, or the power of two that the first set takes
)

// TablesP4 are the controls of the twin's tables.p4.
func (p *Program) TablesP4() string {
	return p.p4Coupons() + p.p4Queries() + p4Onehot() + p4Ones() + p4Complete()
}

var errP4 = errors.New("the P4 twin has addresses, ports, protocol, TCP flags (not as a key) and timestamp, probabilities of at least 2^-16")

// CheckP4 refuses queries with features that the twin does not have, by name.
func (p *Program) CheckP4() error {
	for k := range p.Queries {
		c := &p.Queries[k]
		used := c.Attribute.Mask[WordPorts] | c.Key.Mask[WordPorts] | c.Filter.Mask
		if c.Attribute.need|c.Key.need != 0 || c.exponent > P4HashBits || used&0xfff != 0 || (c.Attribute.Valid|c.Key.Valid|c.Filter.Valid)&packet.ICMP != 0 ||
			c.Key.Mask[WordPorts]>>shiftFlags&0xff != 0 {
			return fmt.Errorf("set beaucoup.queries: query %s: %w", c.Name, errP4)
		}
	}
	return nil
}
