package conquest

import (
	"context"
	"io"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// sighted is one side of a device: packets at the times that they passed there.
type sighted struct {
	packets []packet.Packet
	at      int
	packer  builder.Packer
}

func (s *sighted) Next(f *packet.Frame) error {
	if s.at == len(s.packets) {
		return io.EOF
	}
	s.at++
	return s.packer.Frame(&s.packets[s.at-1], f)
}
func (s *sighted) Progress() (int64, int64)   { return 0, 0 }
func (s *sighted) Skipped() map[string]uint64 { return nil }
func (s *sighted) Close() error               { return nil }

// device sends traffic through a model queue and returns what is seen before it and after it. Of the packets drop states which are not
// seen before it (an untapped link).
func device(t *testing.T, packets int, l Link, untapped func(i int) bool) (before, after *sighted, dropped, hidden int) {
	t.Helper()
	m, err := traffic.NewBursty(traffic.BurstyOptions{Packets: packets, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	model := conquest.NewModel(l.Rate, l.Buffer)
	before, after = &sighted{}, &sighted{}
	var p packet.Packet
	for i := 0; m.Next(&p); i++ {
		if untapped(i) {
			hidden++
		} else {
			before.packets = append(before.packets, p)
		}
		w := model.Pass(p.Time, p.Len)
		if w.Dropped {
			dropped++
			continue
		}
		p.Time = w.Departure + 1 // no packet leaves before it arrives
		after.packets = append(after.packets, p)
	}
	return before, after, dropped, hidden
}

func reported(t *testing.T, set map[string]string, source capture.Source) report.Line {
	t.Helper()
	d, err := algo.Lookup(conquest.Name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	var lines []report.Line
	cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Truth: true, Seed: 1,
		Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
	if err := session.ReplaySource(context.Background(), cfg, "device", source, nil); err != nil {
		t.Fatal(err)
	}
	return lines[len(lines)-1]
}

func number(t *testing.T, b report.Body, name string) float64 {
	t.Helper()
	for _, v := range b.Values {
		if v.Name == name {
			f, _ := report.Number(v.Value)
			return f
		}
	}
	t.Fatalf("the report has no %s", name)
	return 0
}

// TestTap: a queue between two captures. Delays, culprits and everything that is not seen on one side are as in the traffic.
func TestTap(t *testing.T) {
	testutil.NeedRoot(t)
	link := Link{Rate: 10e9, Buffer: 2 << 20, Tau: 200_000}
	before, after, dropped, hidden := device(t, 100_000, link, func(i int) bool { return i%50 == 7 })
	line := reported(t, map[string]string{"source": "tap", "tau": "200us", "interval": "500us", "longest": "1700us"},
		capture.Merge(capture.Sides(before, after)...))
	est, truth := line.Report, *line.Truth
	if dropped == 0 || hidden == 0 {
		t.Fatalf("%d dropped, %d hidden", dropped, hidden)
	}
	if got := number(t, est, "departures"); got != float64(len(after.packets)) {
		t.Errorf("%g departures of %d", got, len(after.packets))
	}
	for _, name := range []string{"mean_delay_ns", "congested", "of_culprits", "peak_delay_ns"} {
		got, want := number(t, est, name), number(t, truth, name)
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s: %g, the truth is %g", name, got, want)
		}
	}
	lost := line.Lost["blocked"] + line.Lost["repeated"]
	if n := int(line.Lost["unmatched"]); n > hidden+int(lost) || n < hidden-dropped || lost > 1500 {
		t.Errorf("%d unmatched; %d were hidden, %d dropped, %v lost", n, hidden, dropped, line.Lost)
	}
	e := *line.Error
	if recall, precision := number(t, e, "culprits.recall"), number(t, e, "culprits.precision"); recall < 0.9 || precision < 0.9 {
		t.Errorf("culprits: recall %.2f, precision %.2f", recall, precision)
	}
	t.Logf("%d packets before, %d after, %d dropped, %d hidden; lost %v; %g bursts, %g in truth", len(before.packets), len(after.packets), dropped, hidden, line.Lost,
		number(t, est, "bursts"), number(t, truth, "bursts"))
}
