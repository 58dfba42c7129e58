package beaucoup

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

func rulesOf(t *testing.T, set map[string]string) (r compile.Rules, err error) {
	t.Helper()
	d := descriptor()
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	text, err := descriptor().P4Rules(values)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// The rules of the set that the program is made of are the entries that it starts with.
func TestRulesAreTheEntries(t *testing.T) {
	r, err := rulesOf(t, map[string]string{"set": "many"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "p4", "beaucoup", "tables.p4"))
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{}
	for _, part := range strings.Split(string(text), "    table ")[1:] {
		name, body, _ := strings.Cut(part, " {")
		tables[name] = body
	}
	counts := map[string]int{}
	for _, c := range r.Coupons {
		name := strings.TrimPrefix(c.Table, "Ingress.beaucoup.coupons.")
		entry := fmt.Sprintf("(16w%#x &&& 16w%#x, ", c.Hash.Value, c.Hash.Mask)
		action := fmt.Sprintf("): draw%s(%d, %d);", strings.TrimPrefix(name, "coupons"), c.Query, c.Coupon)
		if !strings.Contains(tables[name], entry) || !strings.Contains(tables[name], action) {
			t.Errorf("%s has no %s...%s", name, entry, action)
		}
		counts[name]++
	}
	for name, n := range counts {
		if have := strings.Count(tables[name], ": draw"); have != n {
			t.Errorf("%s has %d entries, there are %d rules", name, have, n)
		}
	}
	if len(counts) != 11 || len(r.Queries) < 26 || strings.Count(tables["queries"], ": ask") != len(r.Queries) {
		t.Errorf("%d tables, %d rules of queries", len(counts), len(r.Queries))
	}
}

// Other queries over the same fields take the tables that hash them, whatever their filters, and their coupons do not
// overlap; queries over other fields are refused by name.
func TestRulesOfOtherQueries(t *testing.T) {
	if _, err := rulesOf(t, map[string]string{"queries": "a: count distinct dst/24 by src > 300 in 5s"}); !errors.Is(err, compile.ErrField) {
		t.Errorf("a query over fields that are not compiled in: %v", err)
	}
	r, err := rulesOf(t, map[string]string{"queries": "a: count distinct dst by src/16 > 300 in 5s; c: count distinct dport by src > 50 in 10s if udp; " +
		"d: count distinct timestamp by src+dst > 3000 in 1m if tcp.rst; e: count distinct src by src+dst > 3000 in 1m; f: count distinct src by dst+dport > 300 in 1m"})
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string][1 << compile.P4HashBits]bool{}
	for _, c := range r.Coupons {
		space := taken[c.Table]
		width := int(uint32(1<<compile.P4HashBits) - c.Hash.Mask)
		if bits.OnesCount(uint(width)) != 1 || int(c.Hash.Value)%width != 0 {
			t.Fatalf("%+v is no prefix", c)
		}
		for h := range width {
			if space[int(c.Hash.Value)+h] {
				t.Fatalf("%+v overlaps", c)
			}
			space[int(c.Hash.Value)+h] = true
		}
		taken[c.Table] = space
	}
	if len(taken) != 4 {
		t.Errorf("four attributes are in %d tables", len(taken))
	}
	for name, text := range map[string]string{"dns.qname": "q: count distinct dns.qname by src > 5 in 1s", "dst+proto": "q: count distinct dst+proto by src > 5 in 1s",
		"vlan": "q: count distinct dst by vlan > 5 in 1s"} {
		if _, err := rulesOf(t, map[string]string{"queries": text}); err == nil || !strings.Contains(err.Error(), "q") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Coupons are written to the table of the switch's program that hashes their fields, at any position.
func TestRulesGoWhereTheFieldsAre(t *testing.T) {
	set := map[string]string{"queries": "a: count distinct src+dst by dport > 300 in 5s; b: count distinct sport by src > 50 in 10s"}
	r, err := rulesOf(t, set)
	if err != nil {
		t.Fatal(err)
	}
	d := descriptor()
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	i, err := configured(v, algo.Env{Setup: algo.Setup{Replay: true}})
	if err != nil {
		t.Fatal(err)
	}
	queries, err := readCompiled(v)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compile.Compile(queries, i.options)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Coupons {
		var table int
		if _, err := fmt.Sscanf(c.Table, "Ingress.beaucoup.coupons.coupons%d", &table); err != nil {
			t.Fatal(c.Table, err)
		}
		if got, want := compiled.Attributes[table].Text, []string{"src+dst", "sport"}[c.Query]; got != want {
			t.Fatalf("query %d: coupons of %s in the table of %s", c.Query, want, got)
		}
	}
}

// A query of one family has entries of that family only.
func TestRulesOfFamilies(t *testing.T) {
	r, err := rulesOf(t, map[string]string{"queries": "a: count distinct dst by src/16 > 300 in 5s; b: count distinct src by dst > 300 in 5s if ipv6; c: count distinct dport by dst > 300 in 5s"})
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]string{}
	for _, q := range r.Queries {
		actions[q.Text[:1]] += q.Action
	}
	if actions["a"] != "ask4" || actions["b"] != "ask6" || actions["c"] != "ask4ask6" {
		t.Errorf("actions %v", actions)
	}
	families := map[int]compile.Ternary{}
	for _, c := range r.Coupons {
		families[c.Query] = c.IPv4
	}
	if families[0] != (compile.Ternary{Value: 1, Mask: 1}) || families[1] != (compile.Ternary{Mask: 1}) || families[2] != (compile.Ternary{}) {
		t.Errorf("families %v", families)
	}
}
