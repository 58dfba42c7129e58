// Package compile translates queries to collectors, coupons in the space of each attribute's hash, and the tables of the eBPF program and of the P4
// twin (Chen, Landau-Feibish, Braverman, Rexford: "BeauCoup: Answering Many Network Traffic Queries, One Memory Update at a Time", SIGCOMM 2020,
// section 4).
package compile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Bounds of the program's tables.
const (
	MaxAttributes = 16
	couponSteps   = 65536
	maxExponent   = 24 // p = 2^-24 at least
	// flagShare is the share of packets that a filter on TCP flags is assumed to pass, for the correction of ties: connection
	// attempts are rare among other packets.
	flagShare = 0.1
)

// ErrCompile is wrapped when a set of queries does not fit into the program's tables.
var ErrCompile = errors.New("the queries do not fit")

// CompileOptions are the bounds and options of a compilation.
type CompileOptions struct {
	Budget float64 // coupons a packet, all queries together: Gamma / c of the paper
	Word   int     // coupons of a collector at most: 32, or 64 in two words
	// Tables of collectors, each of which takes one coupon a packet; 0 is 1.
	Tables int
	// Keep is an earlier program: queries with the same text keep their collector, identifier and range of the hash, so that
	// collected coupons stay valid.
	Keep *Program
	// Ties switches the correction for coupons that are lost in ties on.
	Ties bool

	multiples []float64 // of powers of two that are allowed as probabilities, too
}

// attribute is one hash of a packet and the queries that share it.
type attribute struct {
	Mask     Words
	filter   Filter // Text is empty: equal filters are one attribute
	valid    packet.Valid
	share    float64 // of the packets, assumed
	Text     string
	queries  []int
	Grain    int // steps are 2^-grain
	base     int
	limit    int
	table    int // of collectors
	Survival float64
}

// Compiled is a query with its collector.
type Compiled struct {
	Query
	ID        int
	Collector Collector // with P before ties
	exponent  int
	Group     int     // its attribute, in Program.Attributes
	Start     float64 // in the space of the attribute's hash, from 0 to 1
	placed    bool
}

// Effective is the collector with the probability after ties.
func (p *Program) Effective(c *Compiled) Collector {
	e := c.Collector
	if p.ties {
		e.P *= p.Attributes[c.Group].Survival
	}
	return e
}

// Program is a compiled set of queries.
type Program struct {
	Queries    []Compiled
	Attributes []attribute
	Steps      int
	ties       bool
	budget     float64
	tables     int    // of collectors
	word       int    // coupons of a collector at most
	longest    uint32 // longest window of earlier programs, in ticks: their collectors may still exist
}

// Compile finds a collector for each query and lays out its coupons (section 4.3.2).
func Compile(queries []Query, o CompileOptions) (*Program, error) {
	if o.Word > 32 {
		o.multiples = oddMultiples
	}
	p, err := compile(queries, o)
	if errors.Is(err, ErrCompile) && o.multiples != nil { // such probabilities take more steps of the hash
		o.multiples = nil
		return compile(queries, o)
	}
	return p, err
}

func compile(queries []Query, o CompileOptions) (*Program, error) {
	p := &Program{ties: o.Ties, budget: o.Budget, word: o.Word}
	if err := p.group(queries, o.Keep); err != nil {
		return nil, err
	}
	p.tables = 1
	for n := range 6 { // collectors determine the share of ties, and ties the collectors
		p.survive()
		p.choose(o)
		if n == 0 {
			p.divide(o)
		}
	}
	p.survive()
	p.count(o)
	if err := p.place(); err != nil {
		return nil, err
	}
	if o.Keep != nil {
		p.longest = o.Keep.Horizon() - clockSlack
	}
	return p, nil
}

// group finds the distinct attributes and assigns identifiers to queries.
func (p *Program) group(queries []Query, keep *Program) error {
	used := [MaxQueries]bool{}
	for _, q := range queries {
		c := Compiled{Query: q, ID: -1}
		if old := keep.Find(q.Text()); old != nil {
			c.ID, c.Collector, c.exponent, c.Start, c.placed = old.ID, old.Collector, old.exponent, old.Start, true
			used[c.ID] = true
		}
		c.Group = p.attributeOf(&q)
		p.Attributes[c.Group].queries = append(p.Attributes[c.Group].queries, len(p.Queries))
		p.Queries = append(p.Queries, c)
	}
	if len(p.Attributes) > MaxAttributes {
		return fmt.Errorf("compile queries: %w: they have %d different attributes (fields and filter), %d fit", ErrCompile,
			len(p.Attributes), MaxAttributes)
	}
	if keep != nil { // an identifier of the earlier program still has collectors: prefer others
		for _, old := range keep.Queries {
			used[old.ID] = true
		}
	}
	for i := range p.Queries {
		if p.Queries[i].ID < 0 {
			p.Queries[i].ID = p.free(&used)
		}
	}
	return nil
}

func (p *Program) free(used *[MaxQueries]bool) int {
	id := slices.Index(used[:], false)
	if id < 0 {
		id = 0
		for slices.ContainsFunc(p.Queries, func(c Compiled) bool { return c.ID == id }) {
			id++
		}
	}
	used[id] = true
	return id
}

// Find is the query with this text, or nil.
func (p *Program) Find(text string) *Compiled {
	if p == nil {
		return nil
	}
	for i := range p.Queries {
		if p.Queries[i].Text() == text {
			return &p.Queries[i]
		}
	}
	return nil
}

func (p *Program) attributeOf(q *Query) int {
	a := attribute{Mask: q.Attribute.Mask, filter: q.Filter, valid: q.Attribute.Valid | q.Filter.Valid, share: 1,
		Text: q.Attribute.Text}
	if q.Filter.Text != "" {
		a.Text += " if " + q.Filter.Text
	}
	a.filter.Text = ""
	if a.filter.Mask>>shiftFlags&0xff != 0 {
		a.share = flagShare
	}
	for i, have := range p.Attributes {
		if have.Mask == a.Mask && have.filter == a.filter && have.valid == a.valid {
			return i
		}
	}
	p.Attributes = append(p.Attributes, a)
	return len(p.Attributes) - 1
}

// survive computes the share of every attribute's coupons that is not lost to ties.
func (p *Program) survive() {
	shares := survivals(p.rates())
	if p.tables > 1 {
		shares = p.tied(p.rates())
	}
	for i, s := range shares {
		p.Attributes[i].Survival = s
	}
}

// rates are the coupons that each attribute draws a packet, of all packets.
func (p *Program) rates() []float64 {
	x := make([]float64, len(p.Attributes))
	for i, a := range p.Attributes {
		for _, q := range a.queries {
			x[i] += a.share * p.Queries[q].Rate()
		}
		x[i] = min(x[i], 1)
	}
	return x
}

// Rate is the coupons that a query draws a packet.
func (c *Compiled) Rate() float64 { return float64(c.Collector.M) * c.Collector.P }

// choose gives every query its fair share of the budget, and then repeatedly gives unused budget to the query with the largest
// error, mostly one with a small threshold (section 4.6).
func (p *Program) choose(o CompileOptions) {
	p.chooseAll(o.Budget/float64(len(p.Queries)), o)
	p.giveRest(o)
}

// chooseAll finds collectors that each draw at most limit coupons a packet.
func (p *Program) chooseAll(limit float64, o CompileOptions) {
	for i := range p.Queries {
		if c := &p.Queries[i]; !c.placed {
			c.Collector, c.exponent = best(float64(c.Threshold), limit, p.survival(c, o), o.Word, o.multiples...)
		}
	}
}

// giveRest gives the remaining budget to the query with the largest error, in the smallest portions that reduce it, until none is
// left.
func (p *Program) giveRest(o CompileOptions) {
	done := make([]bool, len(p.Queries))
	for left := o.Budget - p.rate(); left > o.Budget/100; left = o.Budget - p.rate() {
		worst, most := -1, 0.0
		for i := range p.Queries {
			if e := p.score(&p.Queries[i], o); !done[i] && !p.Queries[i].placed && e > most {
				worst, most = i, e
			}
		}
		if worst < 0 {
			return
		}
		done[worst] = !p.improve(&p.Queries[worst], left, o)
	}
}

// improve gives a query an eighth of the remaining budget, or more if that does not reduce its error; false if nothing does.
func (p *Program) improve(c *Compiled, left float64, o CompileOptions) bool {
	old, oldExponent, before := c.Collector, c.exponent, p.score(c, o)
	for part := 1.0 / 8; part <= 1; part *= 2 {
		limit := old.P*float64(old.M) + part*left
		c.Collector, c.exponent = best(float64(c.Threshold), limit, p.survival(c, o), o.Word, o.multiples...)
		if p.score(c, o) < worthwhile*before {
			return true
		}
	}
	c.Collector, c.exponent = old, oldExponent
	return false
}

// worthwhile is the factor by which a query's error must fall for it to get more of the budget.
const worthwhile = 0.99

// count chooses n again, which does not change ties: alternating p.survive and p.choose may not converge.
func (p *Program) count(o CompileOptions) {
	for i := range p.Queries {
		if c := &p.Queries[i]; !c.placed {
			c.Collector.N = count(c.Collector.M, c.Collector.P*p.survival(c, o), float64(c.Threshold))
		}
	}
}

// score of a query's collector after ties.
func (p *Program) score(c *Compiled, o CompileOptions) float64 {
	e := c.Collector
	e.P *= p.survival(c, o)
	mean, variance := e.Moments()
	return score(mean, variance, float64(c.Threshold))
}

// survival is the share of a query's coupons that ties leave.
func (p *Program) survival(c *Compiled, o CompileOptions) float64 {
	if o.Ties {
		return p.Attributes[c.Group].Survival
	}
	return 1
}

// rate is the coupons that all queries draw a packet.
func (p *Program) rate() (sum float64) {
	for i := range p.Queries {
		sum += p.Queries[i].Rate()
	}
	return sum
}

// place lays out the coupons of every attribute in the gaps between those of queries that stay.
func (p *Program) place() error {
	for i := range p.Attributes {
		a := &p.Attributes[i]
		if err := p.placeIn(a); err != nil {
			return err
		}
		a.base = p.Steps
		p.Steps += a.limit
	}
	if p.Steps > couponSteps {
		return fmt.Errorf("compile queries: %w: their coupons need %d steps of the hash, %d fit: lower beaucoup.budget or ask "+
			"for small and large thresholds of different attributes", ErrCompile, p.Steps, couponSteps)
	}
	return nil
}

func (p *Program) placeIn(a *attribute) error {
	var taken [][2]float64
	order := slices.Clone(a.queries)
	slices.SortStableFunc(order, func(x, y int) int { return p.Queries[x].exponent - p.Queries[y].exponent })
	for _, q := range order {
		if c := &p.Queries[q]; c.placed {
			taken = append(taken, [2]float64{c.Start, c.Start + c.Rate()})
		}
	}
	end := 0.0
	for _, q := range order {
		c := &p.Queries[q]
		if !c.placed {
			c.Start = gap(taken, c.Collector.P, c.Rate())
			taken = append(taken, [2]float64{c.Start, c.Start + c.Rate()})
		}
		end = max(end, c.Start+c.Rate())
		a.Grain = max(a.Grain, c.exponent, 1)
	}
	if end > 1 {
		return fmt.Errorf("compile queries: %w: those that count distinct %s draw %.2f coupons a packet, 1 is the most: "+
			"lower beaucoup.budget", ErrCompile, a.Text, end)
	}
	a.limit = int(math.Ldexp(end, a.Grain))
	return nil
}

// gap is the first multiple of step from which on length is free.
func gap(taken [][2]float64, step, length float64) float64 {
	at := 0.0
	for again := true; again; {
		again = false
		for _, t := range taken {
			if at < t[1] && t[0] < at+length {
				at, again = math.Ceil(t[1]/step)*step, true
			}
		}
	}
	return at
}

// coupons is the part of the table of coupons that the program uses: 0, or 1 << 16 | query << 8 | coupon.
func (p *Program) coupons() []uint32 {
	table := make([]uint32, p.Steps)
	for i := range p.Queries {
		c := &p.Queries[i]
		a := p.Attributes[c.Group]
		each := int(math.Ldexp(c.Collector.P, a.Grain))
		first := a.base + int(math.Ldexp(c.Start, a.Grain))
		for coupon := range c.Collector.M {
			for step := range each {
				table[first+coupon*each+step] = 1<<16 | uint32(c.ID)<<8 | uint32(coupon)
			}
		}
	}
	return table
}

// Definition is the canonical text of an attribute: equal attributes have equal hashes, on all hosts.
func (a *attribute) Definition() string {
	return fmt.Sprintf("%x %x %x %x", a.Mask, a.filter.Mask, a.filter.Value, a.valid)
}

// Needs are the fields that the parser must provide.
func (p *Program) Needs() (n maps.Need) {
	for _, q := range p.Queries {
		n |= q.Attribute.need | q.Key.need
	}
	return n
}

// ByID finds a query.
func (p *Program) ByID(id int) *Compiled {
	for i := range p.Queries {
		if p.Queries[i].ID == id {
			return &p.Queries[i]
		}
	}
	return nil
}

// Salt derives a secret for a purpose (what): hosts with the same seed, epoch and queries have the same salts.
func Salt(seed, epoch uint64, what ...string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", seed, epoch, strings.Join(what, "|"))
	x := h.Sum64()
	for range 2 {
		x ^= x >> 32
		x *= 0xd6e8feb86659fd93
	}
	return x ^ x>>32
}
