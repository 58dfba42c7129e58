package compile

import (
	"testing"
)

// Queries that stay keep their tables, whatever is added: their collectors go on.
func TestDivisionStays(t *testing.T) {
	queries, err := ParseQueries(ManyQueries)
	if err != nil {
		t.Fatal(err)
	}
	o := CompileOptions{Budget: 1. / 3, Word: 32, Ties: true, Tables: 3}
	tableOf := func(p *Program) map[string]int {
		list := map[string]int{}
		for i := range p.Attributes {
			list[p.Attributes[i].Text] = p.Attributes[i].table
			if uint32(i) < p.firstOf(p.Attributes[i].table) || uint32(i) >= p.firstOf(p.Attributes[i].table+1) {
				t.Errorf("attribute %d of table %d is not among those from %d on", i, p.Attributes[i].table, p.firstOf(p.Attributes[i].table))
			}
		}
		return list
	}
	few, err := Compile(queries[:9], o)
	if err != nil {
		t.Fatal(err)
	}
	o.Keep = few
	all, err := Compile(queries, o)
	if err != nil {
		t.Fatal(err)
	}
	before, now := tableOf(few), tableOf(all)
	for text, table := range before {
		if now[text] != table {
			t.Errorf("distinct %s was in table %d, and is in %d", text, table, now[text])
		}
	}
	if len(now) != 11 || len(before) > 6 {
		t.Errorf("%d attributes, %d before", len(now), len(before))
	}
}

// With three tables hardly any key of the shipped queries has a field of its own that draws into its table; the division costs no more than the best of all.
func TestDivide(t *testing.T) {
	queries, err := ParseQueries(ManyQueries)
	if err != nil {
		t.Fatal(err)
	}
	for tables, most := range map[int]float64{1: 1.9, 2: .7, 3: .3} {
		p, err := Compile(queries, CompileOptions{Budget: 1. / 3, Word: 32, Ties: true, Tables: tables})
		if err != nil {
			t.Fatal(err)
		}
		own, rates := 0.0, p.rates()
		for i := range p.Queries {
			q := &p.Queries[i]
			for b := range p.Attributes {
				if b != q.Group && p.Attributes[b].table == p.Attributes[q.Group].table && p.Attributes[b].own(&q.Query) {
					own += rates[b]
				}
			}
		}
		t.Logf("%d tables: chance of a field of its own, sum over the queries: %.3f", tables, own)
		if own > most {
			t.Errorf("%d tables: chance of a field of its own %.3f, want %.2f or less", tables, own, most)
		}
		for i := range p.Attributes {
			if s := p.Attributes[i].Survival; tables == 3 && s < .95 || s > 1 {
				t.Errorf("%d tables: %.3f of the coupons of distinct %s survive", tables, s, p.Attributes[i].Text)
			}
		}
	}
}
