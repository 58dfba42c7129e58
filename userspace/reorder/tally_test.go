package reorder

import "testing"

// What flows report adds up, by prefix and in all.
func TestTallyAddsUp(t *testing.T) {
	tally := newTally(configured(t, nil))
	tally.add(flow{prefix: 1, signature: 7}, sum{n: 10, o: 3, reports: 2})
	tally.add(flow{prefix: 1, signature: 8}, sum{n: 20, o: 1, reports: 1})
	tally.add(flow{prefix: 2, signature: 7}, sum{n: 5, reports: 1})
	if tally.n != 35 || tally.o != 4 || tally.reports != 4 {
		t.Errorf("%d packets, %d out of order, %d reports", tally.n, tally.o, tally.reports)
	}
	if s := tally.byName[1]; s.n != 30 || s.o != 4 || s.reports != 3 || len(s.flows) != 2 {
		t.Errorf("of the first prefix %+v", s)
	}
}
