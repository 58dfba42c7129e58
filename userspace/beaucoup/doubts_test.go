package beaucoup

import (
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// Doubtful alerts of a query are reported with the lowest confidence, those of queries that are not running are not.
func TestDoubts(t *testing.T) {
	queries, err := compile.ParseQueries("a: count distinct dst by src > 300 in 5s; b: count distinct src by dst > 300 in 5s")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(queries, compile.CompileOptions{Budget: 0.01, Word: 32})
	if err != nil {
		t.Fatal(err)
	}
	a, b := &p.Queries[0], &p.Queries[1]
	e := &estimator{queries: []*compile.Compiled{a, b}, active: map[*compile.Compiled]bool{a: true, b: true},
		last: []Alert{{Query: a, Confidence: 0.9}, {Query: a, Confidence: 0.7}, {Query: a, Confidence: sure}, {Query: b, Confidence: 1}}}
	notes := e.doubts()
	if len(notes) != 1 || !strings.Contains(notes[0], "2 alerts of a are doubtful") || !strings.Contains(notes[0], "confidence 70 %") {
		t.Errorf("doubts %q", notes)
	}
	e.active[a] = false
	if notes := e.doubts(); len(notes) != 0 {
		t.Errorf("doubts of a query that does not run: %q", notes)
	}
}

// Half of the coupons for an alert is rounded up.
func TestHalf(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 2, 20: 10, 31: 16} {
		if got := (compile.Collector{N: n}).Half(); got != want {
			t.Errorf("half of %d coupons: %d, want %d", n, got, want)
		}
	}
}
