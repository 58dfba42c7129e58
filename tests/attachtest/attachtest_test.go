package attachtest

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// trial is a test within this one, whose failure is what is expected.
type trial struct {
	testing.TB
	cleanups []func()
	text     string
	failed   bool
}

func (s *trial) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *trial) Errorf(format string, args ...any) {
	s.text, s.failed = s.text+fmt.Sprintf(format, args...), true
}

func (s *trial) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// try runs f as a test, and what was to be cleaned up after it, as package testing does.
func try(t *testing.T, f func(tb testing.TB)) *trial {
	s, done := &trial{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				s.Errorf("panic: %v", r)
			}
			for n := len(s.cleanups) - 1; n >= 0; n-- {
				s.cleanups[n]()
			}
		}()
		f(s)
	}()
	<-done
	return s
}

// programs is how many programs are attached to a host's interface at TC.
func programs(t *testing.T, host *netns.Host) (n int) {
	t.Helper()
	err := host.Run(func() error {
		for _, where := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
			r, err := link.QueryPrograms(link.QueryOptions{Target: host.Index, Attach: where})
			if errors.Is(err, ebpf.ErrNotSupported) {
				testutil.Skip(t, "needs Linux 6.6, which lists the programs of TCX")
			}
			if err != nil {
				return err
			}
			n += len(r.Programs)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What a test gets wrong is named with what is allowed, and however it ends no program stays.
func TestFailureIsNamedAndRemoved(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	set := func(key, value string) func(testing.TB) {
		return func(tb testing.TB) {
			Attach(tb, network.A, "fridge", Options{Set: map[string]string{key: value}})
		}
	}
	open := func(tb testing.TB) *Attached {
		a := Attach(tb, network.A, "rtt-array", Options{})
		if n := programs(t, network.A); n != 2 {
			t.Errorf("%d programs are attached, want one for each direction", n)
		}
		return a
	}
	for want, f := range map[string]func(testing.TB){
		`attach fridges to xdpmon-a0: unknown algorithm "fridges": there are ahab,`: func(tb testing.TB) { Attach(tb, network.A, "fridges", Options{}) },
		"set fridge.match=syn: choose one of tcp-handshake, ":                       set("match", "syn"),
		"mtch: no such parameter: fridge has ":                                      set("mtch", "syn"),
		"an assertion failed":                                                       func(tb testing.TB) { open(tb); tb.Fatalf("an assertion failed") },
		"panic: runtime error: index out of rang":                                   func(tb testing.TB) { a := open(tb); _ = a.End()[1] },
	} {
		s := try(t, f)
		if !s.failed || !strings.Contains(s.text, want) {
			t.Errorf("no %q in %q", want, s.text)
		}
		if n := programs(t, network.A); n != 0 {
			t.Errorf("%d programs are left after: %s", n, s.text)
		}
	}
}

// A name that a report does not have, and a percentile without samples, end the test; what is there has its interval where it has one.
func TestNames(t *testing.T) {
	body := report.Body{
		Values: []report.Value{{Name: "lost", Value: uint64(7), Low: 5., High: 9.}, {Name: "exact", Value: int64(3)}, {Name: "verdict", Value: "met"}},
		Distributions: []report.Distribution{{Name: "delay_ns", Quantiles: []report.Quantile{{Name: "p50", Value: 20, Low: 18, High: 22, Defined: true},
			{Name: "p90", Value: 30, Defined: true}, {Name: "p99"}}}},
	}
	in := func(tb testing.TB) Window { return Window{report.Line{Algorithm: "some", Report: body}, tb} }
	for want, f := range map[string]func(testing.TB){
		`some reports no value "last": there are lost, exact, verdict`:         func(tb testing.TB) { in(tb).Value("last") },
		"verdict of some is no number but met":                                 func(tb testing.TB) { in(tb).Value("verdict") },
		`some reports no distribution "delay": there are delay_ns`:             func(tb testing.TB) { in(tb).Quantile("delay", "p50") },
		`some reports no percentile of delay_ns "p5": there are p50, p90, p99`: func(tb testing.TB) { in(tb).Quantile("delay_ns", "p5") },
		"delay_ns.p99 of some: too few samples (0 values)":                     func(tb testing.TB) { in(tb).Quantile("delay_ns", "p99") },
		`some reports no table "flows": there are none`:                        func(tb testing.TB) { in(tb).Rows("flows") },
	} {
		if s := try(t, f); s.text != want && !strings.HasPrefix(s.text, want+": ") {
			t.Errorf("%q, want %q", s.text, want)
		}
	}
	w := in(t)
	if e := w.Value("lost"); e != (Estimate{7, 5, 9}) || !e.Holds(5) || e.Holds(4) {
		t.Errorf("lost: %+v", e)
	}
	if e := w.Value("exact"); !e.Holds(3) || e.Holds(4) || !math.IsNaN(e.Low) || !math.IsNaN(e.High) {
		t.Errorf("exact: %+v", e)
	}
	if e := w.Quantile("delay_ns", "p50"); e != (Estimate{20, 18, 22}) {
		t.Errorf("p50: %+v", e)
	}
	if e := w.Quantile("delay_ns", "p90"); e.Value != 30 || !math.IsNaN(e.Low) {
		t.Errorf("p90: %+v", e)
	}
}

// A window has the packets that were sent, whatever a name finds is in the report, and End can be called twice.
func TestWindowHasWhatWasSent(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	attached := Attach(t, network.A, "precision", Options{Set: map[string]string{"initial": "1", "family": "4"}, Direction: "egress"})
	to, err := network.B.ListenPacket(t.Context(), "udp4", network.B.IPv4.String()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := network.A.Dial(t.Context(), "udp4", to.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for range 500 {
		if _, err := from.Write([]byte("datagram")); err != nil {
			t.Fatal(err)
		}
	}
	windows := attached.End()
	if again := attached.End(); len(windows) != 1 || len(again) != 1 {
		t.Fatalf("%d and %d windows, want one", len(windows), len(again))
	}
	w := windows[0]
	rows := w.Rows("flows")
	if w.Packets.Used != 500 || len(rows) != 1 || rows[0]["dst"] != network.B.IPv4.String() {
		t.Errorf("%d packets used, rows %v", w.Packets.Used, rows)
	}
	if used := w.Value("entries_used"); used.Value != 1 || !used.Holds(1) || used.Holds(2) {
		t.Errorf("entries used: %+v", used)
	}
}
