// Package soak runs xdpmon on live traffic for XDPMON_SOAKTIME and fails when anything grows that
// should not: memory, descriptors, goroutines, BPF objects. A short run is part of the normal tests.
package soak

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/status"
	"github.com/xdpmon/xdpmon/tests/netnstest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const window = 200 * time.Millisecond

func TestSoak(t *testing.T) {
	testutil.NeedRoot(t)
	duration := 5 * time.Second
	if text := os.Getenv("XDPMON_SOAKTIME"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			t.Fatalf("XDPMON_SOAKTIME=%s: %v", text, err)
		}
	}
	hosts := netnstest.New(t, netns.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var traffic sync.WaitGroup
	sent := serveAndDial(t, ctx, hosts, &traffic)

	watch := &watcher{t: t, lasts: duration, enough: cancel}
	// A goroutine of its own: it enters the namespace and stays in it until the run is over.
	if err := hosts.A.Run(func() error { return session.Live(ctx, config(t, hosts.A.Interface, watch)) }); err != nil {
		t.Fatal(err)
	}
	cancel()
	traffic.Wait()
	watch.check()
	checkDetached(t, hosts.A)
	t.Logf("%v: %d windows, %d packets, %d connections dialled, %d handshakes matched", duration, watch.windows, watch.seen,
		sent(), watch.matched)
}

func config(t *testing.T, iface string, w *watcher) session.LiveConfig {
	d, err := algo.Lookup("fridge")
	if err != nil {
		t.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, map[string]string{"fridges": "1024@1"})
	if err != nil {
		t.Fatal(err)
	}
	return session.LiveConfig{
		Config: session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Window: window, Emit: w.emit,
			Notice: t.Logf},
		Interfaces: []string{iface}, Hook: "auto", Mode: "native", Direction: "both",
		Started: func([]*attach.Attachment) { w.began = time.Now() },
	}
}

// serveAndDial keeps opening connections from A to B, each of which moves some bytes.
func serveAndDial(t *testing.T, ctx context.Context, hosts *netns.Topology, wg *sync.WaitGroup) (dialled func() int) {
	l, err := hosts.B.Listen(ctx, "tcp", net.JoinHostPort(hosts.B.IPv4.String(), "7000"))
	if err != nil {
		t.Fatal(err)
	}
	wg.Add(2)
	go func() {
		defer wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c) // an echo that is cut off at the end of the run is no failure
			c.Close()
		}
	}()
	n := 0
	go func() {
		defer wg.Done()
		defer l.Close()
		for ctx.Err() == nil {
			if c, err := hosts.A.Dial(ctx, "tcp", l.Addr().String()); err == nil {
				n++
				echo(c)
			}
		}
	}()
	return func() int { return n }
}

// echo sends a kilobyte, reads it back and resets the connection, so that ports do not run out.
func echo(c net.Conn) {
	b := make([]byte, 1024)
	if _, err := c.Write(b); err == nil {
		_, _ = io.ReadFull(c, b)
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// fewest windows that prove something.
const fewest = 5

// watcher looks at every window, and remembers what the process used when it had warmed up.
type watcher struct {
	t       *testing.T
	began   time.Time     // attached
	lasts   time.Duration // from then on, and until there were a few windows, however slow the machine is
	enough  func()
	windows int
	seen    uint64
	matched int64
	end     int64
	base    usage
}

func (w *watcher) emit(l report.Line) error {
	if w.windows > 0 && l.Window.Start != w.end {
		return fmt.Errorf("window %d begins at %d, the one before ended at %d", l.Window.Number, l.Window.Start, w.end)
	}
	w.end = l.Window.End
	w.windows++
	w.seen += l.Packets.Seen
	for _, v := range l.Report.Values {
		if n, ok := report.Number(v.Value); ok && v.Name == "matched" {
			w.matched += int64(n)
		}
	}
	if w.base == (usage{}) && time.Since(w.began) > w.lasts/5 {
		w.base = measure(w.t)
	}
	if w.windows >= fewest && w.matched > 0 && time.Since(w.began) > w.lasts {
		w.enough()
	}
	return nil
}

func (w *watcher) check() {
	if w.windows < fewest || w.seen == 0 || w.matched == 0 {
		w.t.Errorf("%d windows, %d packets, %d handshakes: the run measured nothing", w.windows, w.seen, w.matched)
	}
	now := measure(w.t)
	if now.descriptors > w.base.descriptors || now.goroutines > w.base.goroutines+1 {
		w.t.Errorf("after warming up %d descriptors and %d goroutines, at the end %d and %d",
			w.base.descriptors, w.base.goroutines, now.descriptors, now.goroutines)
	}
	if now.heap > w.base.heap+8<<20 {
		w.t.Errorf("after warming up %d bytes in the heap, at the end %d", w.base.heap, now.heap)
	}
}

type usage struct {
	heap                    uint64
	descriptors, goroutines int
}

func measure(t *testing.T) usage {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return usage{heap: m.HeapAlloc, descriptors: len(fds), goroutines: runtime.NumGoroutine()}
}

// checkDetached looks only at the run's own interface: other tests attach elsewhere at the same time.
func checkDetached(t *testing.T, host *netns.Host) {
	var left []status.Attachment
	err := host.Run(func() (err error) {
		left, err = status.List()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range left {
		if a.Interface == host.Interface {
			t.Errorf("still attached after the run: %+v", a)
		}
	}
}
