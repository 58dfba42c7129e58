package compile

import "slices"

// A table of collectors takes one coupon a packet. Attributes whose coupons tie belong into different tables (Chen, section 4.6). Most of what ties
// take is due to a key's own fields: if the key of a query contains the fields of another query's attribute, that attribute is the same in all
// packets of the key, and if it draws, it draws in every packet.

// other is the weight of attributes that draw independently, against a key's own: those take a part of each key's coupons, which the choice of n
// corrects; these take half of some keys' coupons and none of others'.
const other = 0.05

// divide assigns attributes to tables so that the fewest coupons are lost to ties. Attributes of an earlier program keep their tables.
func (p *Program) divide(o CompileOptions) {
	p.tables = max(1, o.Tables)
	if p.tables == 1 {
		return
	}
	ties, fixed := p.tieWeights(), make([]bool, len(p.Attributes))
	for i := range p.Attributes {
		a := &p.Attributes[i]
		a.table = -1
		if o.Keep != nil {
			if n := o.Keep.attribute(a); n >= 0 && o.Keep.tables == p.tables {
				a.table, fixed[i] = o.Keep.Attributes[n].table, true
			}
		}
	}
	for again := true; again; {
		again = false
		for i := range p.Attributes {
			if !fixed[i] && p.move(i, ties) {
				again = true
			}
		}
		again = p.swap(ties, fixed) || again
	}
	p.sort()
}

// sort puts the attributes of a table together: the program draws for one table after the other.
func (p *Program) sort() {
	order := make([]int, len(p.Attributes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.Attributes[a].table - p.Attributes[b].table })
	sorted := make([]attribute, len(order))
	for to, from := range order {
		sorted[to] = p.Attributes[from]
		for _, q := range sorted[to].queries {
			p.Queries[q].Group = to
		}
	}
	p.Attributes = sorted
}

// firstOf is the first attribute of a table or of a later one.
func (p *Program) firstOf(table int) (n uint32) {
	for n < uint32(len(p.Attributes)) && p.Attributes[n].table < table {
		n++
	}
	return n
}

// attribute is the index of an attribute with the same hash; -1 without.
func (p *Program) attribute(a *attribute) int {
	for n := range p.Attributes {
		if p.Attributes[n].Definition() == a.Definition() {
			return n
		}
	}
	return -1
}

// tieWeights are what two attributes in one table cost: for each query of one, how often the other draws.
func (p *Program) tieWeights() [][]float64 {
	weights := make([][]float64, len(p.Attributes))
	for i := range weights {
		weights[i] = make([]float64, len(p.Attributes))
	}
	rates := p.rates()
	for i := range p.Queries {
		q := &p.Queries[i]
		for b := range p.Attributes {
			if b == q.Group {
				continue
			}
			w := rates[b]
			if !p.Attributes[b].own(&q.Query) {
				w *= other
			}
			weights[q.Group][b] += w
			weights[b][q.Group] += w
		}
	}
	return weights
}

// own reports whether an attribute is the same in all packets of a query's key.
func (a *attribute) own(q *Query) bool {
	for i, mask := range a.Mask {
		if mask&^q.Key.Mask[i] != 0 {
			return false
		}
	}
	both := a.filter.Mask & q.Filter.Mask
	return a.filter.Mask&^(q.Filter.Mask|q.Key.Mask[WordPorts]) == 0 && a.filter.Value&both == q.Filter.Value&both
}

// cost of an attribute in a table; without leaves one out.
func (p *Program) cost(i, table, without int, ties [][]float64) (sum float64) {
	for b := range p.Attributes {
		if b != i && b != without && p.Attributes[b].table == table {
			sum += ties[i][b]
		}
	}
	return sum
}

// least is by how much a change must reduce the cost, so that rounding makes none.
const least = 1e-9

// move puts an attribute into the table where it costs the least.
func (p *Program) move(i int, ties [][]float64) bool {
	a := &p.Attributes[i]
	best, cost := a.table, 0.0
	if best >= 0 {
		cost = p.cost(i, best, -1, ties)
	}
	for t := range p.tables {
		if c := p.cost(i, t, -1, ties); best < 0 || c < cost-least {
			best, cost = t, c
		}
	}
	moved := best != a.table
	a.table = best
	return moved
}

// swap exchanges two attributes of different tables if that costs less.
func (p *Program) swap(ties [][]float64, fixed []bool) bool {
	for i := range p.Attributes {
		for j := range i {
			x, y := &p.Attributes[i], &p.Attributes[j]
			if fixed[i] || fixed[j] || x.table == y.table {
				continue
			}
			now := p.cost(i, x.table, -1, ties) + p.cost(j, y.table, -1, ties)
			if p.cost(i, y.table, j, ties)+p.cost(j, x.table, i, ties) < now-least {
				x.table, y.table = y.table, x.table
				return true
			}
		}
	}
	return false
}

// tied are the shares of drawn coupons that are collected, by attribute, where a table takes one coupon a packet, at random among those drawn.
func (p *Program) tied(x []float64) []float64 {
	s := make([]float64, len(x))
	for i := range p.Attributes {
		drawn := []float64{1} // chance that so many others of its table draw
		for b := range p.Attributes {
			if b == i || p.Attributes[b].table != p.Attributes[i].table {
				continue
			}
			drawn = append(drawn, 0)
			for k := len(drawn) - 1; k > 0; k-- {
				drawn[k] = drawn[k]*(1-x[b]) + drawn[k-1]*x[b]
			}
			drawn[0] *= 1 - x[b]
		}
		for k, chance := range drawn {
			s[i] += chance / float64(k+1)
		}
	}
	return s
}
