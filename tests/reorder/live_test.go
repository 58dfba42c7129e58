package reorder

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/reorder"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// hooks are where a program can measure a packet.
var hooks = []struct {
	name      string
	hook      attach.Hook
	mode      attach.Mode
	direction attach.Direction
}{
	{"XDP, native", "xdp", "native", "ingress"}, {"XDP, generic", "xdp", "generic", "ingress"},
	{"TC, where packets arrive", "tc", "native", "ingress"}, {"TC, where packets leave", "tc", "native", "egress"},
}

// watchEverything never takes a bucket from a flow; every host is a prefix.
// T is short, since for T every 73 minutes, when the clock's 32 bits wrap, an empty bucket looks taken.
func watchEverything(definition int) map[string]string {
	return map[string]string{"definition": strconv.Itoa(definition), "prefix": "32", "prefix6": "48", "T": "1ms", "C": "16777214", "R": "16777215",
		"report": "all", "alpha": "1", "epsilon": "0"}
}

// during monitors a host's interface while traffic runs, and returns the one window.
func during(t *testing.T, host *netns.Host, where int, set map[string]string, traffic func(ctx context.Context) error) report.Line {
	t.Helper()
	d, err := algo.Lookup(reorder.Name)
	if err != nil {
		t.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stop, end := context.WithCancel(ctx)
	var lines []report.Line
	failed := make(chan error, 1)
	cfg := session.LiveConfig{Config: session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Window: time.Minute},
		Interfaces: []string{host.Interface}, Hook: hooks[where].hook, Mode: hooks[where].mode, Direction: hooks[where].direction}
	cfg.Emit = func(l report.Line) error { lines = append(lines, l); return nil }
	cfg.Started = func([]*attach.Attachment) {
		go func() { failed <- traffic(ctx); end() }()
	}
	if err := host.Run(func() error { return session.Live(stop, cfg) }); err != nil {
		testutil.Skip(t, "%s: %v", hooks[where].name, err)
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 {
		t.Fatalf("%d windows, want 1", len(lines))
	}
	return lines[0]
}

// bulk sends bytes from one host to the other over one connection. Both ends change their core with every piece.
func bulk(ctx context.Context, from, to *netns.Host, address netip.Addr, bytes int) error {
	listener, err := to.Listen(ctx, "tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		return err
	}
	defer listener.Close()
	received := make(chan error, 1)
	go func() { received <- receive(listener, bytes) }()
	conn, err := from.Dial(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := onChangingCores(bytes, func(piece []byte) error { _, err := conn.Write(piece); return err }); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	return <-received
}

func receive(listener net.Listener, bytes int) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	return onChangingCores(bytes, func(piece []byte) error { _, err := io.ReadFull(conn, piece); return err })
}

// onChangingCores moves bytes in pieces, each on another of the cores that this process is allowed.
func onChangingCores(bytes int, move func(piece []byte) error) error {
	runtime.LockOSThread() // never unlocked: the thread ends with its goroutine, and its affinity with it
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }()
	piece := make([]byte, 256<<10)
	for n := 0; bytes > 0; n++ {
		if err := pinTo(&all, n%all.Count()); err != nil {
			return err
		}
		if err := move(piece[:min(len(piece), bytes)]); err != nil {
			return err
		}
		bytes -= min(len(piece), bytes)
	}
	return nil
}

// pinTo moves the thread to core number n of a set.
func pinTo(all *unix.CPUSet, n int) error {
	var one unix.CPUSet
	for cpu := range 8192 {
		if !all.IsSet(cpu) {
			continue
		}
		if n == 0 {
			one.Set(cpu)
			return unix.SchedSetaffinity(0, &one)
		}
		n--
	}
	return unix.EINVAL
}

// trouble is how many segments TCP has sent again from a host so far, or received there with a gap in front of them.
func trouble(t *testing.T, host *netns.Host) (n uint64) {
	t.Helper()
	text, err := host.Output(t.Context(), "cat", "/proc/net/netstat", "/proc/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := 0; i+1 < len(lines); i += 2 { // names, then values
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for k, name := range names {
			if name != "TCPOFOQueue" && name != "RetransSegs" {
				continue
			}
			v, err := strconv.ParseUint(values[k], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += v
		}
	}
	return n
}

// Aggregates (GSO, GRO) and flows that change their core are not reordering: where the kernel's TCP has no trouble, the
// program counts none, at any hook. (Out of order by definition 1 implies definition 3.) A busy machine drops packets;
// such a transfer is not conclusive and is repeated.
func TestNothingIsReorderedOnAVeth(t *testing.T) {
	hosts := netnstest.New(t, netns.Options{})
	aggregates := 0.0
	for where, h := range hooks {
		for definition := 2; definition <= 3; definition++ {
			l, clean := transfer(t, hosts, where, definition)
			for try := 0; !clean && try < 5; try++ {
				l, clean = transfer(t, hosts, where, definition)
			}
			packets, out := number(t, l.Report, "packets"), number(t, l.Report, "out_of_order")
			if !clean {
				t.Errorf("%s: TCP retransmitted in six transfers, which is not conclusive", h.name)
			} else if out > 0 {
				t.Errorf("%s, definition %d: %g of %g packets are called out of order", h.name, definition, out, packets)
			}
			if watched := number(t, l.Report, "watched"); packets < megabytes<<20/65536 || watched < packets-60 {
				t.Errorf("%s: %g of %g packets were watched, %d MiB were sent", h.name, watched, packets, megabytes)
			}
			aggregates += number(t, l.Report, "aggregates")
			t.Logf("%s, definition %d: %g packets, %g aggregates, %g out of order", h.name, definition, packets,
				number(t, l.Report, "aggregates"), out)
		}
	}
	if aggregates == 0 {
		t.Error("no packet was an aggregate: this test does not see what it is for")
	}
}

const megabytes = 8 // of a transfer

// transfer is one connection that is watched; clean when TCP saw nothing but order.
func transfer(t *testing.T, hosts *netns.Topology, where, definition int) (l report.Line, clean bool) {
	t.Helper()
	at, address := hosts.B, map[int]netip.Addr{2: hosts.B.IPv6, 3: hosts.B.IPv4}[definition]
	if hooks[where].direction == "egress" {
		at = hosts.A
	}
	before := trouble(t, hosts.A) + trouble(t, hosts.B)
	l = during(t, at, where, watchEverything(definition), func(ctx context.Context) error {
		return bulk(ctx, hosts.A, hosts.B, address, megabytes<<20)
	})
	return l, trouble(t, hosts.A)+trouble(t, hosts.B) == before
}

// left judges what the emulator has sent to a host, in that order.
type left struct {
	mu      sync.Mutex
	tracker *reorder.Tracker
	out     [4]uint64
	packets uint64
}

func (s *left) event(e emulator.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Fate != emulator.Passed {
		return
	}
	v, used := s.tracker.Packet(&e.Packet)
	if !used {
		return
	}
	s.packets++
	for d := range s.out {
		if v.Out[d] {
			s.out[d]++
		}
	}
}

// quiet waits until nothing has arrived at the link for a fifth of a second: unnecessary retransmissions are still on their way
// when everything is there.
func quiet(link *emulator.Link) {
	for before, _ := link.Counts(); ; {
		time.Sleep(200 * time.Millisecond)
		now, _ := link.Counts()
		if now.Received == before.Received {
			return
		}
		before = now
	}
}

// A link that overtakes packets is found out, packet for packet: what the program counts is what the emulator has done.
func TestReorderingLinkIsFound(t *testing.T) {
	for definition := 1; definition <= 3; definition++ {
		sent := &left{tracker: reorder.NewTracker()}
		hosts := netnstest.New(t, netns.Options{Middle: netns.Emulator, Link: emulator.Options{Seed: testSeed(t),
			AtoB: emulator.Direction{Reorder: 0.02, ReorderBy: 2 * time.Millisecond, KeepOrder: true, OnPacket: sent.event}}})
		l := during(t, hosts.B, 2, watchEverything(definition), func(ctx context.Context) error {
			defer quiet(hosts.Link)
			return bulk(ctx, hosts.A, hosts.B, hosts.B.IPv4, 4<<20)
		})
		there, _ := hosts.Link.Counts()
		packets, out := number(t, l.Report, "packets"), number(t, l.Report, "out_of_order")
		if there.Reordered == 0 || out == 0 {
			t.Errorf("definition %d: the link held %d packets back, %g are called out of order", definition, there.Reordered, out)
		}
		sent.mu.Lock()
		if packets != float64(sent.packets) || out != float64(sent.out[definition]) {
			t.Errorf("definition %d: %g of %g packets out of order, the link sent %d of %d so", definition, out, packets,
				sent.out[definition], sent.packets)
		}
		sent.mu.Unlock()
		if _, found := byPrefix(l.Report)[netip.PrefixFrom(hosts.A.IPv4, 32).String()]; !found {
			t.Errorf("definition %d: %v is not put out: %v", definition, hosts.A.IPv4, byPrefix(l.Report))
		}
		t.Logf("definition %d: %g packets, %g out of order; %s", definition, packets, out, fmt.Sprint(sent.out[1:]))
	}
}
