package beaucoup

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

const hostLine = `{"algorithm":"beaucoup","report":{"collectors":[{"query":"s","key":"src=10.0.0.1","coupons":"COUPONS","definition":"SEED","n":6,"m":8,"effective_p":0.125}]}}`

func host(coupons, seed string) string {
	return strings.NewReplacer("COUPONS", coupons, "SEED", seed).Replace(hostLine) + "\n"
}

// Two hosts with four coupons each, two of them the same, have six together.
func TestMerge(t *testing.T) {
	m := NewMerger()
	for name, text := range map[string]string{"a": host("0f", "1"), "b": host("3c", "1")} {
		if err := m.Read(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	rows := m.Report().Tables[0].Rows
	if len(rows) != 1 || rows[0][5] != int64(6) || rows[0][7] != int64(2) {
		t.Fatalf("merged to %v, want one alert with 6 coupons of 2 hosts", rows)
	}
	if want := (compile.Collector{M: 8, N: 6, P: 0.125}).Draws(); rows[0][2] != want {
		t.Errorf("count %v, want %v", rows[0][2], want)
	}
}

func TestMergeRefuses(t *testing.T) {
	for what, second := range map[string]string{"another seed": host("3c", "2"), "damage": host("xyz", "1"), "no JSON": "hello\n",
		"nothing exported": "{\"algorithm\":\"fridge\"}\n"} {
		m := NewMerger()
		if err := m.Read("a", strings.NewReader(host("0f", "1"))); err != nil {
			t.Fatal(err)
		}
		if err := m.Read("b", strings.NewReader(second)); !errors.Is(err, ErrMerge) {
			t.Errorf("%s: %v, want ErrMerge", what, err)
		}
	}
}

// Windows are put together by the wall clock: one that begins within another's is part of it, a later one is another.
func TestMergeWindows(t *testing.T) {
	at := func(coupons string, offset, start int64) string {
		run := fmt.Sprintf(`{"run":{"clock":{"unix_offset_ns":%d}}}`, offset)
		return run + "\n" + strings.Replace(host(coupons, "1"), `"effective_p":0.125`, fmt.Sprintf(`"effective_p":0.125,"window":100,"start":%d`, start), 1)
	}
	for _, c := range []struct {
		second        string
		start         int64
		alerts, hosts int
	}{{"3c", 1040, 1, 2}, {"3c", 1100, 1, 2}, {"3c", 1101, 0, 0}, {"3c", 960, 1, 2}, {"3c", 899, 0, 0}} {
		m := NewMerger()
		if err := errors.Join(m.Read("a", strings.NewReader(at("0f", 900, 100))), m.Read("b", strings.NewReader(at(c.second, 0, c.start)))); err != nil {
			t.Fatal(err)
		}
		rows := m.Report().Tables[0].Rows
		if len(rows) != c.alerts || c.alerts > 0 && (rows[0][7] != int64(c.hosts) || rows[0][8] != min(1000, c.start)) {
			t.Errorf("windows from 1000 and %d on, of 100 ns: %v", c.start, rows)
		}
	}
}
