package bench

import (
	"fmt"
	"strings"
)

// queried are forms of beaucoup whose costs show what a query and what an attribute costs: all of them draw a coupon in three
// packets, of attributes that every flow has another one of.
func queried() (list []Subject, err error) {
	for _, c := range []struct {
		name, what string
		set        map[string]string
	}{
		{"beaucoup_1", "one query, one attribute, a coupon in three packets", map[string]string{"queries": flowQueries(1)}},
		{"beaucoup_128", "128 queries of that attribute, a coupon in three packets", map[string]string{"queries": flowQueries(128)}},
		{"beaucoup_26", "26 queries, eleven attributes", map[string]string{"set": "many"}},
		{"beaucoup_26_tables", "26 queries, three tables of collectors and a second place", map[string]string{"set": "many", "tables": "3", "places": "2"}},
		{"beaucoup_1_tables", "one query in three tables with a second place, a coupon in three packets", map[string]string{"queries": flowQueries(1), "tables": "3", "places": "2"}},
		{"beaucoup_1_once", "one query, a coupon in three packets, no count after the alert", map[string]string{"queries": flowQueries(1), "total": "false"}},
		{"beaucoup_keyed", "one query, one attribute, hashed by SipHash", map[string]string{"queries": flowQueries(1), "keyed": "true"}},
	} {
		s, err := Configured("beaucoup", c.set)
		if err != nil {
			return nil, err
		}
		s.Name, s.object, s.What = c.name, "beaucoup", c.what
		list = append(list, s)
	}
	return list, nil
}

// flowQueries count flows by different keys. One alone has a threshold that takes its whole budget.
func flowQueries(n int) string {
	keys := []string{"src+dst", "src", "dst", "src+dport", "dst+sport", "src+dst+proto", "src+sport", "src+sport+dst"}
	var queries []string
	for i := range n {
		queries = append(queries, fmt.Sprintf("q%d: count distinct src+dst+sport+dport by %s > %d in 30s", i, keys[i%len(keys)], 60+10*i))
	}
	return strings.Join(queries, "; ")
}
