package beaucoup

import (
	"fmt"
	"testing"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// An alert names the query that it is of, although others have had the same identifier since: there are 128 of them, and
// the queries are exchanged 200 times before the window ends.
func TestAlertsNameTheirQuery(t *testing.T) {
	r := start(t, map[string]string{"queries": "first: count distinct dst by src > 20 in 10m", "budget": "1", "export": "true"}, true, 4)
	feedAll(t, r.inst, &scans{keys: 5, each: 100, gap: 1000})
	for n := range 200 {
		queries, err := compile.ParseQueries(fmt.Sprintf("other%d: count distinct sport by dst > 60000 in 10m", n))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Update(queries); err != nil {
			t.Fatal(err)
		}
	}
	body, _, _ := r.window(t, traffic.Start+1_000_000)
	if n := len(alertsOf(t, &body, "first")); n != 5 {
		t.Errorf("%d keys of the first query, want 5", n)
	}
	if n := len(vectors(t, &body, "first")); n != 5 {
		t.Errorf("coupons of %d keys of the first query, want 5", n)
	}
	for _, row := range body.Tables[0].Rows {
		if row[0] != "first" {
			t.Errorf("false alert: %v", row)
		}
	}
}
