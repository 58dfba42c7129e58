package beaucoup

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// running is an instance that packets can be sent through.
type running struct {
	changeable
	inst *loader.Instance
	set  *maps.Set
}

func start(t *testing.T, set map[string]string, replay bool, seed uint64) *running {
	t.Helper()
	cfg := session.Config{Algorithms: []session.Selected{selected(t, set)}, Seed: seed}
	objects, instances, err := session.Objects(cfg, replay)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{changeable: instances[0].(changeable)}
	if r.inst, err = loader.Load(objects, loader.Options{Replay: replay, Fixed: replay, Seed: seed}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.inst.Close() })
	if r.set, err = r.inst.Set(beaucoup.Name); err != nil {
		t.Fatal(err)
	}
	if err := r.Bind(r.set); err != nil {
		t.Fatal(err)
	}
	return r
}

// window ends one: the report, the packets that the algorithm has used, and those that the chain has handed to it.
func (r *running) window(t *testing.T, end int64) (body report.Body, used, handed uint64) {
	t.Helper()
	bank, err := r.inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := r.inst.Counts(bank)
	if err != nil {
		t.Fatal(err)
	}
	result, err := algo.Window(r.changeable, report.Window{End: end}, bank)
	if err != nil {
		t.Fatal(err)
	}
	return result.Body, result.Used, counts.Seen - counts.Reasons["not_ip"]
}

// vectors are the coupons of all keys of a query.
func vectors(t *testing.T, b *report.Body, query string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, table := range b.Tables {
		for _, row := range table.Rows {
			if table.Name == "collectors" && row[0] == query {
				found[row[1].(string)] = row[2].(string)
			}
		}
	}
	return found
}

func alertsOf(t *testing.T, b *report.Body, query string) map[string]uint64 {
	t.Helper()
	found := map[string]uint64{}
	for _, row := range b.Tables[0].Rows {
		if row[0] == query {
			found[row[1].(string)] += row[len(row)-1].(uint64)
		}
	}
	return found
}

// The hosts also send ICMPv6.
const staysTCP = "stays: count distinct dst by src > 300 in 10m if tcp"

// The queries that are added and removed count the same attribute, whose coupons they share with the query that stays, or see no
// packet: so that there are no ties, and what the query that stays collects is the same down to the last coupon.
const comesAndGoes = "%s; q%d: count distinct dst by src+sport > %d in 10m if tcp; r%d: count distinct src by dport > 5 in 1s if vlan=%d; first: count distinct dst by dport > 60000 in 10m if tcp"

// One hundred exchanges of the queries around one that stays, while frames go from one namespace to the other: every packet
// is counted, the query that stays has collected what it would have alone in a replay, and nothing else is alerted.
func TestChangesUnderLiveLoad(t *testing.T) {
	const keys, each, changes, seed = 60, 300, 100, 11
	set := map[string]string{"queries": staysTCP + "; first: count distinct dst by dport > 60000 in 10m if tcp", "export": "true", "ring": "4MiB"}
	model := func() traffic.Model { return &scans{keys: keys, each: each, gap: 1000} }
	want := start(t, set, true, seed)
	feedAll(t, want.inst, model())
	alone, _, _ := want.window(t, traffic.Start+keys*each*1000)

	live := start(t, set, false, seed)
	hosts := netnstest.New(t, netns.Options{})
	attachIngress(t, live.inst, hosts.B)
	sent, stop := make(chan uint64, 1), make(chan struct{})
	go func() { sent <- sendFrames(t, hosts, model, stop) }()
	for n := range changes {
		queries, err := compile.ParseQueries(fmt.Sprintf(comesAndGoes, staysTCP, n, 400+n, n, 1+n))
		if err != nil {
			t.Fatal(err)
		}
		if err := live.Update(queries); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	frames := <-sent
	time.Sleep(200 * time.Millisecond) // still in the receiver's backlog
	body, used, handed := live.window(t, monotonic(t))
	t.Logf("%d frames during %d changes", frames, changes)
	if used < frames || used != handed || frames < 5*keys*each {
		t.Errorf("%d frames sent, %d packets handed to beaucoup, %d counted", frames, handed, used)
	}
	if got := number(t, &body, "query_changes"); got != changes {
		t.Errorf("%g changes, want %d", got, changes)
	}
	same(t, "coupons", vectors(t, &body, "stays"), vectors(t, &alone, "stays"))
	same(t, "alerts", alertsOf(t, &body, "stays"), alertsOf(t, &alone, "stays"))
	if n := len(alertsOf(t, &alone, "stays")); n < keys/10 || n > keys*9/10 {
		t.Errorf("%d of %d keys alert: the threshold should divide them", n, keys)
	}
	for _, row := range body.Tables[0].Rows {
		if row[0] != "stays" {
			t.Errorf("false alert: %v", row)
		}
	}
}

func same[V comparable](t *testing.T, what string, got, want map[string]V) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s of %d keys, want %d", what, len(got), len(want))
	}
	for key, w := range want {
		if got[key] != w {
			t.Errorf("%s of %s: %v, alone %v", what, key, got[key], w)
		}
	}
}

func feedAll(t *testing.T, inst *loader.Instance, m traffic.Model) {
	t.Helper()
	feed, err := replay.New(inst, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	src := traffic.Frames(m)
	for {
		var f packet.Frame
		if err := src.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if err := feed.Feed(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := feed.Flush(); err != nil {
		t.Fatal(err)
	}
}

func attachIngress(t *testing.T, inst *loader.Instance, host *netns.Host) {
	t.Helper()
	entry, err := inst.Entry(loader.EntryConfig{Kind: loader.TC, IfIndex: host.Index})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { entry.Close() })
	err = host.Run(func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: host.Index, Program: entry, Attach: ebpf.AttachTCXIngress})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
	if err != nil {
		testutil.Skip(t, "attach to TCX (Linux 6.6): %v", err)
	}
}

// sendFrames sends a model's frames again and again until stop is closed and it has ended; it returns how many.
func sendFrames(t *testing.T, hosts *netns.Topology, model func() traffic.Model, stop chan struct{}) (sent uint64) {
	var socket int
	err := hosts.A.Run(func() (err error) {
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer unix.Close(socket)
	to := &unix.SockaddrLinklayer{Ifindex: hosts.A.Index, Protocol: 0x0300}
	for {
		src := traffic.Frames(model())
		for f := (packet.Frame{}); ; {
			if err := src.Next(&f); errors.Is(err, io.EOF) {
				break
			}
			if err := unix.Sendto(socket, f.Data, 0, to); err == nil {
				sent++
			} else if !errors.Is(err, unix.ENOBUFS) {
				t.Error(err)
				return sent
			}
		}
		select {
		case <-stop:
			return sent
		default:
		}
	}
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}
