package ahab

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/ahab/link"
)

// withFile opens a link with a file of slices.
func withFile(text string) (*link.Link, error) {
	dir, err := os.MkdirTemp("", "xdpmon-slices-")
	if err != nil {
		return nil, fmt.Errorf("write slices: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "slices.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write slices: %w", err)
	}
	return link.New(map[string]string{"config": path}, 1)
}

// groups of users by the second byte of their addresses, which the files of slices name.
func group(number byte, users int, from, until time.Duration, rate float64) (list []link.User) {
	for n := range users {
		list = append(list, link.User{From: from, Until: until, Rate: rate, Src: netip.AddrFrom4([4]byte{10, number, 0, byte(n + 1)})})
	}
	return list
}

const weighted = `
capacity: 100Mbit
slices:
  - name: all
    user: source
    users:
      - {prefix: 10.2.0.0/16, weight: 2}
      - {prefix: 10.4.0.0/16, weight: 4}
`

func weights(_ context.Context, p *eval.Page) error {
	end := time.Duration(eval.Pick(p, 10, 1)) * time.Second
	l, err := withFile(weighted)
	if err != nil {
		return err
	}
	defer l.Close()
	var users []link.User
	for _, weight := range []byte{1, 2, 4} {
		users = append(users, group(weight, 4, 0, time.Hour, 30e6)...)
	}
	r, err := l.Run(users, end, nil)
	if err != nil {
		return err
	}
	table := figure.Table{Columns: []string{"weight", "fair", "mean of four users", "off"}}
	worst := 0.0
	for g, weight := range []float64{1, 2, 4} {
		fair, got := link.Capacity*weight/28, 0.0
		for n := range 4 {
			got += r.Users[4*g+n].Rate(end/10, end) / 4
		}
		off := got/fair - 1
		worst = max(worst, math.Abs(off))
		table.Rows = append(table.Rows, []string{fmt.Sprint(weight), fmt.Sprintf("%.2f Mbit/s", fair/1e6), fmt.Sprintf("%.2f Mbit/s", got/1e6), fmt.Sprintf("%+.1f %%", 100*off)})
	}
	p.Log("weights: %.4f off at most", worst)
	p.Bar("weights of 1, 2 and 4, UDP", "2 %", fmt.Sprintf("%.1f %%", 100*worst), worst <= .02)
	p.Text("Four users of each weight send 30 Mbit/s each into a slice of 100 Mbit/s for %v, the first tenth left out.", end)
	p.Table(&table)
	return nil
}

const two = `
capacity: 100Mbit
slices:
  - name: one
    match: {sources: [10.1.0.0/16]}
  - name: two
    match: {sources: [10.2.0.0/16]}
`

func slices(_ context.Context, p *eval.Page) error {
	const second = time.Second
	l, err := withFile(two)
	if err != nil {
		return err
	}
	defer l.Close()
	users := append(group(1, 2, 0, time.Hour, 100e6), group(2, 2, second, 4*second, 100e6)...)
	users = append(users, group(2, 2, 2*second, 3*second, 100e6)...)
	r, err := l.Run(users, 5*second, nil)
	if err != nil {
		return err
	}
	table := figure.Table{Columns: []string{"what happens", "slice one's share", "after"}}
	longest := time.Duration(0)
	for _, e := range []struct {
		at   time.Duration
		what string
		want float64
	}{{second, "two users come to slice two", .5}, {2 * second, "two more come there", .5}, {3 * second, "they leave", .5}, {4 * second, "the others leave, too", 1}} {
		took := settled(r, e.at, e.want)
		longest = max(longest, took)
		table.Rows = append(table.Rows, []string{e.what, fmt.Sprintf("%.0f %%", 100*e.want), fmt.Sprint(took)})
	}
	p.Log("slices: shares have changed after %v", longest)
	p.Bar("two slices, users come and go: shares have changed after", "50 ms", fmt.Sprint(longest), longest <= 50*time.Millisecond)
	p.Text(`Slice one has two users of 100 Mbit/s all the time, slice two has two for three seconds and two more in the second of these. Time until what passes of slice one, over
10 ms, is within a tenth of its share and stays so on the mean of the next 100 ms. The loop that divides the link runs every 10 ms.`)
	p.Table(&table)
	return p.Figure(&figure.Figure{Panels: []figure.Panel{shares(r)}}, "slices", "what passes of both slices")
}

// passes of the first slice in bits a second.
func passes(r *link.Result, slice int, from, until time.Duration) (rate float64) {
	for n, u := range r.Users {
		if (n < 2) == (slice == 1) {
			rate += u.Rate(from, until)
		}
	}
	return rate
}

func settled(r *link.Result, at time.Duration, want float64) time.Duration {
	const look, stay = 10 * time.Millisecond, 100 * time.Millisecond
	near := func(rate float64) bool { return math.Abs(rate/link.Capacity/want-1) < .1 }
	for t := at; t < at+900*time.Millisecond-stay; t += time.Millisecond {
		if near(passes(r, 1, t, t+look)) && near(passes(r, 1, t, t+stay)) {
			return t + look - at
		}
	}
	return time.Hour
}

func shares(r *link.Result) figure.Panel {
	out := figure.Panel{X: figure.Axis{Label: "s"}, Y: figure.Axis{Label: "Mbit/s", Max: 130}, Legend: figure.TopRight}
	for slice := 1; slice <= 2; slice++ {
		s := figure.Series{Name: fmt.Sprintf("slice %d", slice)}
		for t := time.Duration(0); t < 5*time.Second; t += 20 * time.Millisecond {
			s.Points = append(s.Points, figure.Point{X: t.Seconds(), Y: passes(r, slice, t, t+20*time.Millisecond) / 1e6})
		}
		out.Series = append(out.Series, s)
	}
	return out
}
