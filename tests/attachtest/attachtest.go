// Package attachtest attaches an algorithm to an interface of a test's network and returns its windows, so that a test of any module can assert on what xdpmon
// measures of real packets. The network is that of package netnstest: two namespaces joined by a veth pair, or by an emulated link with delay, loss and rate.
//
//	network := netnstest.New(t, netns.Options{Middle: netns.Emulator, Link: emulator.Options{
//		AtoB: emulator.Direction{Delay: emulator.Fixed(20 * time.Millisecond)}}})
//	attached := attachtest.Attach(t, network.A, "fridge", attachtest.Options{Set: map[string]string{"group": "dst/32"}})
//	// ... connections from network.A.Dial to network.B.Listen ...
//	if delay := attached.End()[0].Quantile("delay_ns", "p50"); delay.Value < 20e6 {
//		t.Errorf("half of the handshakes took %.0f ns or less on a link that delays by 20 ms", delay.Value)
//	}
//
// It needs root. Without, the test is skipped with that reason; where the environment has CI=true, it fails. Everything is removed when the test ends, also
// when it fails or panics, and by the kernel when its process is killed. docs/guides/harness.md is the guide.
package attachtest

import (
	"cmp"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all" // registers the algorithms
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Options are those of `xdpmon attach`. The zero value measures both directions of the interface, in one window.
type Options struct {
	// Set has parameters by their key, like --set without the algorithm's name: {"match": "dns"}. `xdpmon algos NAME` lists them.
	Set       map[string]string
	Window    time.Duration    // 0: one window, which End ends
	Hook      attach.Hook      // "": attach.HookAuto, which is TC on a veth
	Mode      attach.Mode      // "": attach.ModeNative
	Direction attach.Direction // "": attach.Both
	Seed      uint64           // of the hashes; 0: random
}

// oneWindow is longer than any test.
const oneWindow = 24 * time.Hour

// Attached is an algorithm that measures until End, or until the test ends.
type Attached struct {
	tb      testing.TB
	session *session.Session
	ended   bool
	err     error
	windows []Window // of the session's goroutine until the session is closed
}

// Attach attaches an algorithm to the interface of a host; it measures when Attach returns. An algorithm or parameter that does not exist, a kernel that is
// too old and a missing privilege end the test with an error that names the remedy. Several algorithms may be attached to one interface, each by a call.
func Attach(tb testing.TB, host *netns.Host, algorithm string, opts Options) *Attached {
	tb.Helper()
	a := &Attached{tb: tb}
	cfg, err := a.config(host, algorithm, opts)
	if err == nil {
		err = host.Run(func() (err error) { a.session, err = session.Open(tb.Context(), cfg); return err })
	}
	if err != nil {
		tb.Fatalf("attach %s to %s: %v", algorithm, host.Interface, err)
	}
	tb.Cleanup(func() {
		if err := a.close(); err != nil {
			tb.Errorf("detach %s from %s: %v", algorithm, host.Interface, err)
		}
	})
	return a
}

func (a *Attached) config(host *netns.Host, algorithm string, opts Options) (cfg session.LiveConfig, err error) {
	d, err := algo.Lookup(algorithm)
	if err != nil {
		return cfg, err
	}
	window := cmp.Or(opts.Window, oneWindow)
	selected, err := d.Select(opts.Set, algo.Setup{WindowNS: int64(window)})
	if err != nil {
		return cfg, err
	}
	return session.LiveConfig{
		Config: session.Config{Algorithms: []session.Selected{selected}, Window: window, Seed: opts.Seed, Emit: a.emit, Notice: a.tb.Logf},
		Hook:   cmp.Or(opts.Hook, attach.HookAuto), Mode: cmp.Or(opts.Mode, attach.ModeNative), Direction: cmp.Or(opts.Direction, attach.Both),
		Interfaces: []string{host.Interface},
	}, nil
}

func (a *Attached) emit(l report.Line) error {
	a.windows = append(a.windows, Window{l, a.tb})
	return nil
}

// End ends the last window, detaches, and returns all windows, at least one, the oldest first. It can be called twice.
func (a *Attached) End() []Window {
	a.tb.Helper()
	if err := a.close(); err != nil {
		a.tb.Fatalf("measure: %v", err)
	}
	return a.windows
}

func (a *Attached) close() error {
	if !a.ended {
		a.ended, a.err = true, a.session.Close()
	}
	return a.err
}
