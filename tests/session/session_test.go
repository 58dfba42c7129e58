package session

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/windows/witness"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const port = netnstest.Port // of the datagrams that are counted; neighbour discovery passes, too

// counting is the witness as an algorithm of a session. What it used are the datagrams to the port.
type counting struct {
	set    *maps.Set
	broken bool
}

func (c *counting) Configure(spec *ebpf.CollectionSpec) error {
	return maps.SetConstant(spec, "witness_port", uint16(port))
}

func (c *counting) Needs() maps.Need { return 0 }

func (c *counting) Bind(set *maps.Set) error {
	if c.broken {
		return errors.New("cannot be bound")
	}
	c.set = set
	return nil
}

func (c *counting) Read(w report.Window, bank int) (*snapshot.Snapshot, error) {
	n, err := witness.Read(c.set, bank)
	s := snapshot.New(snapshot.Head{}, w)
	s.Words["counted"] = snapshot.Words{n.Port, n.Packets}
	return s, err
}

// counts makes instances that count; those of a broken one fail.
type counts struct{ broken bool }

func (c counts) New(algo.Env) (algo.Instance, error) { return &counting{broken: c.broken}, nil }

func (counts) Report(s *snapshot.Snapshot) (algo.Result, error) {
	n := s.Words["counted"]
	return algo.Result{Used: n[0], Lost: map[string]uint64{"others": n[1] - n[0]}}, nil
}

var descriptors = map[string]*algo.Descriptor{}

func init() {
	for _, name := range []string{"stays", "left", "right", "broken"} {
		descriptors[name] = &algo.Descriptor{Name: name, Spec: witness.LoadWitness,
			Params: []algo.Param{{Key: "n", Type: algo.Int, Default: "0"}},
			Config: algo.Typed(func(algo.Values, algo.Setup) (counts, error) { return counts{name == "broken"}, nil })}
	}
}

func selected(t *testing.T, n int, names ...string) []session.Selected {
	t.Helper()
	var list []session.Selected
	for _, name := range names {
		d := descriptors[name]
		value := "0"
		window := int64(0)
		if name != "stays" {
			value = fmt.Sprint(n)             // other values: another instance
			window = int64(n%3) * 200_000_000 // and windows of one, two or four times the length
		}
		v, err := algo.NewValues(d.Name, d.Params, map[string]string{"n": value})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, session.Selected{Descriptor: d, Values: v, Window: window})
	}
	return list
}

// ledger adds up the windows.
type ledger struct {
	mu    sync.Mutex
	used  map[string]uint64
	seen  map[string]uint64
	lines []report.Line
}

func (l *ledger) emit(line report.Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used[line.Algorithm] += line.Packets.Used
	l.seen[line.Algorithm] += line.Packets.Seen
	l.lines = append(l.lines, line)
	return nil
}

func newLedger() *ledger { return &ledger{used: map[string]uint64{}, seen: map[string]uint64{}} }

func open(t *testing.T, host *netns.Host, l *ledger, names ...string) *session.Session {
	t.Helper()
	return openOn(t, host, host.Interface, "egress", l, names...)
}

func openOn(t *testing.T, host *netns.Host, iface string, direction attach.Direction, l *ledger, names ...string) *session.Session {
	t.Helper()
	cfg := session.LiveConfig{Config: session.Config{Algorithms: selected(t, 0, names...), Window: 100 * time.Millisecond, Emit: l.emit,
		Notice: func(format string, args ...any) { t.Logf(format, args...) }},
		Interfaces: []string{iface}, Hook: "tc", Direction: direction}
	var s *session.Session
	if err := host.Run(func() (err error) { s, err = session.Open(t.Context(), cfg); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Algorithms are added, changed and removed under traffic, with windows of several lengths: those that stay count every packet, and of two of which one is always
// there the two together do.
func TestApplyUnderTraffic(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	applyUnderTraffic(t, network.A, netnstest.Datagrams(t, network, network.B.IPv4, 50_000), 40)
}

// Two sessions of one process are changed four hundred times each, both under load.
func TestSoakApply(t *testing.T) {
	if os.Getenv("XDPMON_AGENT_SOAK") == "" {
		t.Skip("make agent-soak runs it")
	}
	t.Run("both", func(t *testing.T) {
		for _, name := range []string{"one", "two"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				network := netnstest.New(t, netns.Options{})
				applyUnderTraffic(t, network.A, netnstest.Frames(t, network.A, 210_000), 400)
			})
		}
	})
}

func applyUnderTraffic(t *testing.T, host *netns.Host, flood netnstest.Flood, changes int) {
	l := newLedger()
	s := openOn(t, host, flood.Interface, attach.Direction(flood.Direction), l, "stays", "left")
	var stop atomic.Bool
	sender, began := make(chan uint64), time.Now()
	go func() { sender <- flood.Send(&stop) }()
	orders := [][]string{{"stays", "right"}, {"left", "stays"}, {"right", "stays"}, {"stays", "left"}}
	for n := range changes {
		target := session.Target{Algorithms: selected(t, n, orders[n%len(orders)]...), Interfaces: []string{flood.Interface}}
		if err := s.Apply(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		bad := session.Target{Algorithms: selected(t, n, "stays", "broken"), Interfaces: []string{flood.Interface}}
		if err := s.Apply(t.Context(), bad); err == nil {
			t.Fatal("an algorithm that cannot be bound was taken")
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop.Store(true)
	sent := <-sender
	rate := float64(sent) / time.Since(began).Seconds()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d packets, %.0f a second, %d changes taken and as many refused, %d lines", sent, rate, changes, len(l.lines))
	if sent < 1000 {
		t.Errorf("only %d packets: that proves nothing", sent)
	}
	if l.used["stays"] != sent {
		t.Errorf("the remaining algorithm counted %d of %d", l.used["stays"], sent)
	}
	if both := l.used["left"] + l.used["right"]; both != sent {
		t.Errorf("left and right counted %d of %d", both, sent)
	}
	if l.seen["left"]+l.seen["right"] != l.seen["stays"] {
		t.Errorf("chain: left %d and right %d packets, the remaining algorithm %d", l.seen["left"], l.seen["right"], l.seen["stays"])
	}
	checkLives(t, l.lines, changes)
}

// checkLives: windows of one algorithm never overlap, and a window with a start or end in its middle is marked.
func checkLives(t *testing.T, lines []report.Line, changes int) {
	t.Helper()
	ends, cut := map[string]int64{}, 0
	for _, l := range lines {
		if l.Window.Start < ends[l.Algorithm] {
			t.Errorf("%s: a window starts at %d, the one before ended at %d", l.Algorithm, l.Window.Start, ends[l.Algorithm])
		}
		ends[l.Algorithm] = l.Window.End
		if l.Window.Cut {
			cut++
		}
		if l.Algorithm == "stays" && l.Window.Cut {
			t.Error("the remaining algorithm has a window that was cut")
		}
	}
	if cut < changes {
		t.Errorf("%d windows were cut", cut)
	}
}

// Two sessions in one process, on one interface and on another, do not affect each other.
func TestTwoSessions(t *testing.T) {
	one, two := netnstest.New(t, netns.Options{}), netnstest.New(t, netns.Options{})
	first, again, second := newLedger(), newLedger(), newLedger()
	s1, s2, s3 := open(t, one.A, first, "stays"), open(t, two.A, second, "stays"), open(t, one.A, again, "left")
	var stop atomic.Bool
	counts := make(chan [2]uint64, 2)
	for i, network := range []*netns.Topology{one, two} {
		flood := netnstest.Datagrams(t, network, network.B.IPv4, 50_000)
		go func() { counts <- [2]uint64{uint64(i), flood.Send(&stop)} }()
	}
	time.Sleep(300 * time.Millisecond)
	if err := s3.Close(); err != nil { // the others continue
		t.Error(err)
	}
	time.Sleep(100 * time.Millisecond)
	stop.Store(true)
	var sent [2]uint64
	for range sent {
		c := <-counts
		sent[c[0]] = c[1]
	}
	for i, s := range []*session.Session{s1, s2} {
		if st, err := s.Status(); err != nil || len(st.Interfaces) != 1 || !st.Interfaces[0].Attached || !slices.Equal(st.Algorithms, []string{"stays"}) {
			t.Errorf("session %d: %+v, %v", i, st, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if first.used["stays"] != sent[0] || second.used["stays"] != sent[1] || sent[0] == 0 || sent[1] == 0 {
		t.Errorf("counted %d and %d of %v", first.used["stays"], second.used["stays"], sent)
	}
	if n := again.used["left"]; n == 0 || n > sent[0] {
		t.Errorf("the session that ended early counted %d of %d", n, sent[0])
	}
	if _, err := s1.Status(); !errors.Is(err, session.ErrEnded) {
		t.Errorf("status of a session that ended: %v", err)
	}
}

// Interfaces are added to a session and removed; one that does not exist changes nothing.
func TestInterfaces(t *testing.T) {
	network := netnstest.New(t, netns.Options{Middle: netns.Bridge})
	l := newLedger()
	s := open(t, network.A, l, "stays")
	both := []string{network.A.Interface, "lo"}
	algorithms := selected(t, 0, "stays")
	if err := s.Apply(t.Context(), session.Target{Algorithms: algorithms, Interfaces: both}); err != nil {
		t.Fatal(err)
	}
	err := s.Apply(t.Context(), session.Target{Algorithms: selected(t, 0, "stays", "left"), Interfaces: append(both, "xdpmon-none")})
	if err == nil {
		t.Error("an interface that does not exist was taken")
	}
	if st, err := s.Status(); err != nil || len(st.Interfaces) != 2 || !st.Interfaces[1].Attached || len(st.Algorithms) != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	send(t, network.A, "127.0.0.1")
	send(t, network.A, network.B.IPv4.String())
	if err := s.Apply(t.Context(), session.Target{Algorithms: algorithms, Interfaces: []string{"lo"}}); err != nil {
		t.Fatal(err)
	}
	send(t, network.A, "127.0.0.1")
	send(t, network.A, network.B.IPv4.String())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if l.used["stays"] != 3 {
		t.Errorf("counted %d datagrams, want 3", l.used["stays"])
	}
}

// A session without an end continues from window to window.
func TestEndlessHasWindows(t *testing.T) {
	network := netnstest.New(t, netns.Options{})
	l := newLedger()
	open(t, network.A, l, "stays")
	seen := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.lines)
	}
	for until := time.Now().Add(time.Minute); seen() < 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d windows of 100 ms in a minute", seen())
		}
	}
}

func send(t *testing.T, from *netns.Host, to string) {
	t.Helper()
	conn, err := from.Dial(t.Context(), "udp", net.JoinHostPort(to, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("datagram")); err != nil {
		t.Fatal(err)
	}
}
