package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/report"
	_ "github.com/xdpmon/xdpmon/userspace/rttarray"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// patient is a context that ends at the n-th query, and wakes nothing.
type patient struct {
	context.Context
	left int
}

func (p *patient) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterruptEndsTheLoad interrupts at every place where a start listens: before each algorithm, before each program that is loaded for a
// hook, and before attaching.
func TestInterruptEndsTheLoad(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	for places := 0; ; places++ {
		started := false
		cfg := session.LiveConfig{Config: session.Config{Window: time.Hour, Emit: func(report.Line) error { return nil }},
			Interfaces: []string{network.A.Interface}, Hook: "auto", Mode: "native", Direction: "both", Duration: time.Millisecond,
			Started: func([]*attach.Attachment) { started = true }}
		for _, name := range []string{"fridge", "rtt-array"} {
			d, err := algo.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			values, err := algo.NewValues(d.Name, d.Params, nil)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Algorithms = append(cfg.Algorithms, session.Selected{Descriptor: d, Values: values})
		}
		ctx := &patient{context.Background(), places}
		err := network.A.Run(func() error { return session.Live(ctx, cfg) })
		if err == nil {
			if places < 5 { // two algorithms, a program for each direction, and the attachment
				t.Errorf("a start listens at %d places, want 5 or more", places)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || started {
			t.Fatalf("interrupted at place %d: started %v, %v", places, started, err)
		}
	}
}

// TestNoStubWindow: a duration of whole windows ends with a whole one, though windows began before the duration did. The first one has all
// packets that were counted: it starts when the first interface is attached, however long the others take.
func TestNoStubWindow(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	var (
		windows []report.Window
		counted int64
	)
	d, err := algo.Lookup("rtt-array")
	if err != nil {
		t.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := session.LiveConfig{Config: session.Config{Window: time.Second, Algorithms: []session.Selected{{Descriptor: d, Values: values}},
		Emit: func(l report.Line) error { windows = append(windows, l.Window); return nil },
		Notice: func(string, ...any) {
			if counted == 0 {
				counted = hostclock.Now()
				time.Sleep(100 * time.Millisecond)
			}
		}},
		Interfaces: []string{network.A.Interface, "lo"}, Hook: "tc", Mode: "native", Direction: "both", Duration: 2 * time.Second,
		Started: func([]*attach.Attachment) { time.Sleep(20 * time.Millisecond) }}
	if err := network.A.Run(func() error { return session.Live(context.Background(), cfg) }); err != nil {
		t.Fatal(err)
	}
	if len(windows) == 0 {
		t.Fatal("no window")
	}
	if windows[0].Start > counted {
		t.Errorf("packets were counted %v before the first window", time.Duration(windows[0].Start-counted))
	}
	for _, w := range windows {
		if length := time.Duration(w.End - w.Start); length < time.Second/20 || w.Last != (w.Number == len(windows)-1) {
			t.Errorf("window %d of %d lasts %v, last: %v", w.Number, len(windows), length, w.Last)
		}
	}
}
