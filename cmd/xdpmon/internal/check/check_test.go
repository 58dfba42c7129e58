package check

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/names"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// window is a line of an algorithm that measured nothing special.
func window(n, packets int, iface string) report.Line {
	return report.Line{Algorithm: "lean", Identity: report.Identity{Interfaces: []string{iface}}, Window: report.Window{Start: int64(n) * 1e9, End: int64(n+1) * 1e9}, Packets: report.Packets{Seen: uint64(packets)},
		Report: report.Body{Values: []report.Value{{Name: "loss_examined", Value: 20.}}}}
}

// printed is what a check prints, and where to; measuring is closed with its first notice.
type printed struct {
	mu             sync.Mutex
	lines, notices []string
	measuring      chan struct{}
}

func (p *printed) options(t *testing.T, o Options) Options {
	t.Helper()
	known, err := names.New(names.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.measuring = make(chan struct{})
	o.Window, o.Style, o.Known = time.Second, report.Style{Width: 500}, known
	o.Config = func([]string, []string, bool) (session.Config, error) {
		return session.Config{Algorithms: []algo.Selected{}}, nil
	}
	o.PrintLines = func(l ...string) error { p.lines = append(p.lines, l...); return nil }
	o.PrintJSON = func(v any) error { return fmt.Errorf("JSON was not asked for: %v", v) }
	o.Notice = func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.notices = append(p.notices, text); len(p.notices) == 1 {
			close(p.measuring)
		}
	}
	return o
}

func (p *printed) has(t *testing.T, texts ...string) {
	t.Helper()
	all := strings.Join(append(p.notices, p.lines...), "\n")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%q is not printed:\n%s", text, all)
		}
	}
}

// An interface that is removed is named, at once and at the end, and a check of it is no success.
func TestRemoved(t *testing.T) {
	var p printed
	passes := 0
	o := p.options(t, Options{Names: []string{"veth1", "veth2"}, For: time.Hour})
	o.Settle = func() error { return nil }
	ended := make(chan time.Time)
	o.After = func(time.Duration) <-chan time.Time { return ended }
	o.Live = func(ctx context.Context, cfg session.LiveConfig) error {
		cfg.Started([]*attach.Attachment{})
		if cfg.Changed == nil {
			<-ctx.Done()
			return nil
		}
		passes++
		<-p.measuring
		cfg.Changed("veth1", false)
		if err := cfg.Emit(window(0, 0, "veth1")); err != nil {
			return err
		}
		close(ended)
		<-ctx.Done()
		cfg.Changed("veth2", false) // detached at the end
		return nil
	}
	found, err := Run(t.Context(), o)
	if found || err == nil || !strings.Contains(err.Error(), "veth1 was removed") || passes != 1 {
		t.Errorf("found %v, error %v, %d passes", found, err, passes)
	}
	p.has(t, "veth1 was removed at", "Unknown: veth1 was removed at")
	if text := strings.Join(p.lines, "\n"); strings.Contains(text, "veth2 is removed") || strings.Contains(text, "200 TCP segments") {
		t.Errorf("%s", text)
	}
}

// A check that takes long to load its programs reports how far it is.
func TestProgress(t *testing.T) {
	var p printed
	o := p.options(t, Options{Names: []string{"veth1"}})
	c := &checker{o: o}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ready atomic.Int64
	ready.Store(3)
	go c.progress(ctx, make(chan struct{}), &ready, 8, time.Millisecond, time.Hour)
	<-p.measuring
	p.has(t, "loading programs on veth1: 3 of 8 groups are attached")
}

// What a capture has before it is cut off is read by every pass and reported; then the check fails with the reason.
func TestCutCapture(t *testing.T) {
	var p printed
	passes := 0
	o := p.options(t, Options{Names: []string{"cut.pcap"}, Captures: true})
	o.Replay = func(_ context.Context, cfg session.Config) error {
		passes++
		for n := range 8 {
			if err := cfg.Emit(window(n, 20, "cut.pcap")); err != nil {
				return err
			}
		}
		return fmt.Errorf("read cut.pcap: %w", capture.ErrTruncated)
	}
	if found, err := Run(t.Context(), o); found || err == nil || !strings.Contains(err.Error(), "cut off") || passes != len(Passes())-1 {
		t.Errorf("found %v, error %v, %d passes", found, err, passes)
	}
	p.has(t, "Nothing found on cut.pcap in 8 windows", "fewer than 200 TCP segments")
}

// grouped is a fridge's line of some networks, and of how many answers another one had the row.
func grouped(n, networks int, hidden float64) report.Line {
	l := window(n, 500, "some.pcap")
	l.Algorithm = "fridge"
	t := report.Table{Name: "groups", Columns: []report.Column{{Name: "group"}, {Name: "matched"}}}
	for k := range networks {
		t.Rows = append(t.Rows, []any{fmt.Sprintf("10.1.%d.0/24", k), 40.})
	}
	if hidden > 0 {
		t.Rows = append(t.Rows, []any{"others", hidden})
	}
	l.Report = report.Body{Tables: []report.Table{t}}
	return l
}

// A capture in which a few networks share a row is read with other seeds until none does; with very many, or a seed that was asked for, once.
func TestRowsOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		networks int
		hidden   map[uint64]float64 // by seed
		seeded   bool
		want     int // reads a pass
	}{
		"none hidden":       {6, nil, false, 1},
		"with another seed": {6, map[uint64]float64{0: 100}, false, 2},
		"with every seed":   {6, map[uint64]float64{0: 100, 2: 40, 3: 70, 4: 90}, false, 4},
		"next to none":      {6, map[uint64]float64{0: 2}, false, 1},
		"many networks":     {40, map[uint64]float64{0: 100}, false, 1},
		"seed asked for":    {6, map[uint64]float64{0: 100}, true, 1},
	} {
		var p printed
		reads := 0
		o := p.options(t, Options{Names: []string{"some.pcap"}, Captures: true, Seeded: c.seeded})
		o.Replay = func(_ context.Context, cfg session.Config) error {
			reads++
			return cfg.Emit(grouped(0, c.networks, c.hidden[cfg.Seed]))
		}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if passes := len(Passes()) - 1; reads != c.want*passes {
			t.Errorf("%s: %d reads of %d passes, want %d each", name, reads, passes, c.want)
		}
	}
}

// A capture without packets is named as such, and is not "nothing found".
func TestEmptyCapture(t *testing.T) {
	var p printed
	o := p.options(t, Options{Names: []string{"empty.pcap"}, Captures: true})
	o.Replay = func(context.Context, session.Config) error { return session.ErrNoPackets }
	if found, err := Run(t.Context(), o); found || err != nil {
		t.Fatal(err)
	}
	p.has(t, "No packets in empty.pcap: nothing can be judged.")
	if all := strings.Join(p.lines, "\n"); strings.Contains(all, "Nothing found") {
		t.Errorf("nothing was judged, and it prints: %s", all)
	}
}
