package compile

import (
	"testing"
)

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
			t.Log(p.Attributes[i].table, p.Attributes[i].Text, p.Attributes[i].Survival)
		}
	}
}
