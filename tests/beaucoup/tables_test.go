package beaucoup

import (
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// A key whose own field draws for another query loses half of its coupons in one table, and none in two: it is found as if it were alone.
func TestTablesTakeNoCouponsFromEachOther(t *testing.T) {
	const keys = 150
	run := func(tables, places string) (found, err, bias, lost float64) {
		set := map[string]string{"tables": tables, "places": places, "budget": "2/3", "queries": "a: count distinct dst by src > 100 in 10m; b: count distinct src by dst > 100 in 10m"}
		l := replayed(t, traffic.Frames(&scans{keys: keys, each: 300, gap: 1000}), session.Config{Seed: testutil.Seed(t)}, set)[0]
		return number(t, &l.Report, "alerts_raised"), number(t, l.Truth, "mean_relative_error"), number(t, l.Truth, "bias"), float64(l.Lost["ties"] + l.Lost["crowds"])
	}
	found, err, bias, lost := run("1", "1")
	t.Logf("one table: %g of 150 found, error %.3f, bias %.3f, %g ties", found, err, bias, lost)
	if lost < 500 || err < .25 {
		t.Fatalf("one table: error %.3f, %g ties: this test sees no field of a key that draws", err, lost)
	}
	for _, form := range [][2]string{{"2", "1"}, {"3", "2"}} {
		found, err, bias, lost := run(form[0], form[1])
		t.Logf("%s tables, %s places: %g of 150 found, error %.3f, bias %.3f, %g ties", form[0], form[1], found, err, bias, lost)
		if found < keys*97/100 || err > .23 || bias < -.07 || bias > .07 || lost != 0 {
			t.Errorf("%s tables, %s places: %g of 150 found, error %.3f, bias %.3f, %g ties", form[0], form[1], found, err, bias, lost)
		}
	}
}

// A second place finds keys whose place is taken, in the same memory: of 500 keys in 1024 places more than a fifth collide, of those in two places of 512 one in twenty.
func TestSecondPlace(t *testing.T) {
	run := func(places string) (found, unconfirmed, collided float64) {
		set := map[string]string{"places": places, "entries": "1024", "evict": "1", "budget": "1", "queries": "a: count distinct dst by src > 86 in 10m"}
		l := replayed(t, traffic.Frames(&scans{keys: 500, each: 400, gap: 1000}), session.Config{Seed: testutil.Seed(t)}, set)[0]
		return number(t, &l.Report, "alerts_raised"), number(t, l.Truth, "unconfirmed"), float64(l.Lost["collided"])
	}
	one, _, lostOne := run("1")
	two, unconfirmed, lostTwo := run("2")
	t.Logf("one place: %g of 500 found, %g coupons collided; two: %g, %g", one, lostOne, two, lostTwo)
	if one > 430 || two < 450 || unconfirmed > 0 || lostTwo > lostOne/2 {
		t.Errorf("one place: %g of 500 found, %g coupons collided; two: %g, %g; %g alerts are not confirmed", one, lostOne, two, lostTwo, unconfirmed)
	}
}
