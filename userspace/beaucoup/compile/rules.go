package compile

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Rules are the entries of the twin's tables, which change while the switch runs: the tables of coupons, one an attribute, and
// the table of queries. Write the coupons of new queries last, and remove those of old ones first.
type Rules struct {
	Coupons []CouponRule `json:"coupons"`
	Queries []QueryRule  `json:"queries"`
}

// Ternary matches values that equal it in the mask's bits.
type Ternary struct {
	Value uint32 `json:"value"`
	Mask  uint32 `json:"mask"`
	bits  int
}

// p4 writes it as a key of an entry.
func (t Ternary) p4() string {
	if t.Mask == 0 {
		return "_"
	}
	return fmt.Sprintf("%dw%#x &&& %dw%#x", t.bits, t.Value, t.bits, t.Mask)
}

// CouponRule is an entry of Ingress.beaucoup.coupons.couponsN with the action drawN(query, coupon).
type CouponRule struct {
	Table  string  `json:"table"`
	Hash   Ternary `json:"hash"`
	Kind   Ternary `json:"kind"` // 3 TCP, 1 UDP, 0 neither
	Flags  Ternary `json:"tcp_flags"`
	IPv4   Ternary `json:"ipv4"`
	Ports  Ternary `json:"ports"` // of tables that have this key
	Query  int     `json:"query"`
	Coupon int     `json:"coupon"`
	family int     // 0 both, 1 IPv4, 2 IPv6
}

// QueryRule is an entry of Ingress.beaucoup.queries.queries with the action ask4 or ask6(masks..., before, window).
type QueryRule struct {
	Table  string   `json:"table"`
	Action string   `json:"action"`
	Query  int      `json:"query"`
	IPv4   bool     `json:"ipv4"`
	Kind   Ternary  `json:"kind"`
	Masks  []uint32 `json:"masks"`  // ask4: src, dst, ports, protocol; ask6: four words of each address, ports, protocol
	Before int      `json:"before"` // coupons before the one that alerts
	Window uint32   `json:"window"` // ticks
	Text   string   `json:"text"`
	family int
}

// The kinds of transport header, as p4/include/parser.p4 sets them: bit 0 there are ports, bit 1 TCP.
const (
	kindUDP = 1
	kindTCP = 3
)

func kindOf(valid packet.Valid) Ternary {
	switch {
	case valid&packet.TCP != 0:
		return Ternary{kindTCP, kindTCP, 8}
	case valid&packet.UDP != 0:
		return Ternary{kindUDP, kindTCP, 8}
	case valid&packet.Ports != 0:
		return Ternary{kindUDP, kindUDP, 8}
	}
	return Ternary{bits: 8}
}

// couponRules are one entry a coupon: its range of the hash is a prefix.
func (p *Program) couponRules(i int) (rules []CouponRule) {
	a := &p.Attributes[i]
	r := CouponRule{Table: fmt.Sprintf("Ingress.beaucoup.coupons.coupons%d", i), Kind: kindOf(a.valid),
		Flags: Ternary{uint32(a.filter.Value >> shiftFlags & 0xff), uint32(a.filter.Mask >> shiftFlags & 0xff), 8},
		Ports: Ternary{uint32(a.filter.Value >> 32), uint32(a.filter.Mask >> 32), 32}}
	switch a.filter.family() {
	case 4:
		r.family, r.IPv4 = 1, Ternary{1, 1, 1}
	case 6:
		r.family, r.IPv4 = 2, Ternary{0, 1, 1}
	}
	for _, k := range a.queries {
		c := &p.Queries[k]
		width, first := int(math.Ldexp(c.Collector.P, P4HashBits)), int(math.Ldexp(c.Start, P4HashBits))
		r.Query = c.ID
		for r.Coupon = 0; r.Coupon < c.Collector.M; r.Coupon++ {
			r.Hash = Ternary{uint32(first + r.Coupon*width), uint32(1<<P4HashBits - width), P4HashBits}
			rules = append(rules, r)
		}
	}
	return rules
}

// queryRules are an entry a query and family of addresses.
func (p *Program) queryRules() (rules []QueryRule) {
	for i := range p.Queries {
		c := &p.Queries[i]
		m, family := c.Key.Mask, c.Filter.family()
		ports, proto := uint32(m[WordPorts]>>ShiftDport), uint32(m[WordPorts]>>ShiftProto&0xff)
		r := QueryRule{Table: "Ingress.beaucoup.queries.queries", Query: c.ID, Kind: kindOf(c.Key.Valid), Before: c.Collector.N - 1,
			Window: Ticks(c.Window), Text: c.Text()}
		if family != 6 {
			r.Action, r.IPv4, r.family = "ask4", true, 1
			r.Masks = []uint32{uint32(m[WordSrcLow]), uint32(m[WordDstLow]), ports, proto}
			rules = append(rules, r)
		}
		if family != 4 {
			r.Action, r.IPv4, r.family = "ask6", false, 2
			r.Masks = []uint32{uint32(m[wordSrcHigh] >> 32), uint32(m[wordSrcHigh]), uint32(m[WordSrcLow] >> 32), uint32(m[WordSrcLow]),
				uint32(m[wordDstHigh] >> 32), uint32(m[wordDstHigh]), uint32(m[WordDstLow] >> 32), uint32(m[WordDstLow]), ports, proto}
			rules = append(rules, r)
		}
	}
	return rules
}

// compiledIn are the tables of a switch's program that are not yet assigned to an attribute.
type compiledIn struct {
	attributes []attribute
	taken      []bool
}

// takes finds and assigns the table that hashes an attribute's fields.
func (c *compiledIn) takes(a *attribute) (table int, err error) {
	for n := range c.attributes {
		if !c.taken[n] && c.attributes[n].serves(a) {
			c.taken[n] = true
			return n, nil
		}
	}
	return 0, fmt.Errorf("write rules: %w: distinct %s is not compiled in; generate and compile the switch's program with the query", ErrField, a.Text)
}

// serves reports whether a table can hold another attribute's coupons. Protocol, flags and family are keys of every table; ports
// only of tables whose first queries select by them. A hash of both families equals that of IPv4 if the packet has no IPv6
// header.
func (a *attribute) serves(other *attribute) bool {
	family := a.filter.family()
	return a.p4Fields() == other.p4FieldsOf(family) && (family == 0 || family == other.filter.family()) &&
		(other.filter.Mask>>32 == 0 || a.filter.Mask>>32 != 0)
}

// Rules are the entries for a program's queries on a switch whose own program has other queries compiled in.
func (p *Program) Rules(on *Program) (*Rules, error) {
	compiled := &compiledIn{on.Attributes, make([]bool, len(on.Attributes))}
	rules := &Rules{Queries: p.queryRules()}
	for n := range p.Attributes {
		table, err := compiled.takes(&p.Attributes[n])
		if err != nil {
			return nil, err
		}
		for _, r := range p.couponRules(n) {
			r.Table = fmt.Sprintf("Ingress.beaucoup.coupons.coupons%d", table)
			rules.Coupons = append(rules.Coupons, r)
		}
	}
	return rules, nil
}
