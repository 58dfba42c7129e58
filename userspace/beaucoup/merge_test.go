package beaucoup

import (
	"errors"
	"strings"
	"testing"
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
	if want := (Collector{M: 8, N: 6, P: 0.125}).Draws(); rows[0][2] != want {
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
