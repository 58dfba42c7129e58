package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	top "github.com/xdpmon/xdpmon/userspace/top"
	"github.com/xdpmon/xdpmon/userspace/top/client"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// A window that closes is shown; one of the past is until l; space stops.
func TestTime(t *testing.T) {
	t.Parallel()
	r := begin(t)
	tm := open(t, r.target, 100, 30, nil)
	tm.until("last window 03:06:40 UTC", "Nothing is wrong", "▄")
	r.close()
	tm.until("last window 03:06:50 UTC")
	tm.press("[")
	tm.until("PAST 03:06:50 UTC", "0 s before", "uplink")
	tm.press(down, down, enter)
	tm.until("window 39", "[delays]")
	tm.press("[")
	tm.until("window 38", "PAST 03:06:40")
	tm.press("{")
	tm.until("window 8,")
	tm.press("]")
	tm.until("window 9,")
	tm.press("{")
	tm.until("No window is stored from before this time")
	tm.press("l")
	tm.until("live", "window 40")
	tm.press(" ")
	tm.until("PAUSED at 03:06:50", "window 40")
	r.close()
	tm.press("d")
	tm.until("PAUSED at 03:06:50", "window 40", "numbers")
	tm.press(" ")
	tm.until("live", "window 41")
}

// Filter, order and choice of an interface, on the overview and in a table.
func TestChoices(t *testing.T) {
	t.Parallel()
	r := begin(t)
	r.found(wrong())
	tm := open(t, r.target, 100, 30, nil)
	tm.until("uplink", "backbone", "tenant-3", "192.0.2.7:443", "eth1")
	tm.press("2")
	before := func(screen, a, b string) bool { return strings.Index(screen, a) < strings.Index(screen, b) }
	if s := tm.until("packets▼"); !before(s, "uplink", "backbone") || !before(s, "backbone", "tenant-3") {
		t.Errorf("not by rate:\n%s", s)
	}
	tm.press("2")
	if s := tm.until("packets▲"); !before(s, "tenant-3", "uplink") {
		t.Errorf("not by rate, the least first:\n%s", s)
	}
	tm.press("/", "T", "e", "n", enter)
	if s := tm.until(`1 of 3 instances: filter "Ten"`, "2 open findings; the filter hides them"); strings.Contains(s, "backbone") {
		t.Errorf("the filter lets others through:\n%s", s)
	}
	tm.press(escape)
	tm.until("backbone")
	tm.press("i")
	tm.until("all interfaces", "vnet3")
	tm.press(down, down, enter)
	if s := tm.until("1 of 3 instances: interface eth1"); strings.Contains(s, "192.0.2.7") || !strings.Contains(s, "queue of eth1") {
		t.Errorf("findings of other interfaces:\n%s", s)
	}
}

// A finding leads to its numbers: to the instance that it names, else of the instances on its interfaces to the one that has the algorithm, and in it to the row of its subject.
func TestFindingOpensItsInstance(t *testing.T) {
	t.Parallel()
	r := begin(t)
	f := wrong()
	f[1].Subject.Name, f[1].Interface, f[1].Numbers, f[1].Evidence = "10.0.1.20", "eth0", "tenant-3", []string{"delays.flows"}
	f[0].Interface, f[0].Evidence = "vnet3,eth0", []string{"queues.peak_delay_ns"}
	r.found(f)
	tm := open(t, r.target, 100, 40, nil)
	tm.until("10.0.1.20", "uplink", "queue of eth1")
	tm.press(right)
	tm.until("tenant-3  vnet3", "[delays]", "[flows 30]")
	tm.press(enter)
	tm.until("largest flows: 10.0.1.20", "source address")
	tm.press(escape)
	tm.until("[flows 30]")
	tm.press(escape)
	tm.until("instance over time")
	tm.press(down, enter)
	tm.until("Enter opens its instance", "vnet3,eth0")
	tm.press(enter)
	tm.until("uplink  eth0", "[queues]")
}

// server is an API whose listener can stop and start.
type server struct {
	mu      sync.Mutex
	running *http.Server
}

func (s *server) start(t *testing.T, address string, h http.Handler) string {
	t.Helper()
	var l net.Listener
	var err error
	for range 100 { // the port is the one that was in use
		if l, err = net.Listen("tcp", address); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = &http.Server{Handler: h}
	go s.running.Serve(l) //nolint:errcheck // it ends with Close
	t.Cleanup(func() { s.stop() })
	return l.Addr().String()
}

func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running.Close()
}

// An agent that disconnects, and one that returns.
func TestReconnects(t *testing.T) {
	t.Parallel()
	r := begin(t)
	var s server
	address := s.start(t, "127.0.0.1:0", r.Handler())
	target, err := client.Remote(address, client.Access{})
	if err != nil {
		t.Fatal(err)
	}
	tm := open(t, target, 100, 30, nil)
	tm.until("uplink", "live")
	s.stop()
	tm.until("NOT CONNECTED", "trying again", "uplink")
	r.close()
	s.start(t, address, r.Handler())
	if screen := tm.until("live, last window 03:06:50"); strings.Contains(screen, "trying again") {
		t.Errorf("connected, and shown as disconnected:\n%s", screen)
	}
}

// The terminal is restored, however the screen ends.
func TestTerminalIsRestored(t *testing.T) {
	t.Parallel()
	r := begin(t)
	for name, c := range map[string]struct {
		end  func(*terminal)
		want string
	}{
		"quit":   {func(tm *terminal) { tm.press("q") }, ""},
		"Ctrl-C": {func(tm *terminal) { tm.press("\x03") }, ""},
		"signal": {func(tm *terminal) { tm.cancel() }, ""},
		"closed": {func(tm *terminal) { close(tm.closed) }, "the terminal was closed"},
		"panic":  {nil, "internal error: staged"},
	} {
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			staged := make(chan struct{})
			tm := open(t, r.target, 80, 24, func(o *top.Options) {
				drawn := o.Drawn
				o.Drawn = func(m *model.Model) {
					drawn(m)
					if c.end == nil && m.Known {
						once.Do(func() { close(staged); panic("staged") })
					}
				}
			})
			if c.end != nil {
				tm.until("uplink")
				c.end(tm)
			} else {
				<-staged
			}
			tm.await()
			if got := fmt.Sprint(tm.end); c.want == "" && tm.end != nil || !strings.Contains(got, c.want) {
				t.Errorf("ended with %v, want %q", tm.end, c.want)
			}
			tm.mu.Lock()
			defer tm.mu.Unlock()
			if tm.raw || tm.emu.IsAltScreen() || tm.emu.CursorHidden() {
				t.Errorf("raw %v, alternate screen %v, cursor hidden %v", tm.raw, tm.emu.IsAltScreen(), tm.emu.CursorHidden())
			}
		})
	}
}

// lines reads written output line by line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) until(t *testing.T, want string) string {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.Contains(text, want) {
			return text
		}
		if time.Now().After(late) {
			t.Fatalf("no %q in:\n%s", want, text)
		}
	}
}

// Lines for a screen reader have everything of the overview, once, and no control character.
func TestPlain(t *testing.T) {
	t.Parallel()
	r := begin(t)
	f := wrong()
	f[0].Subject.Name = hostile
	r.found(f)
	var out lines
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- top.Plain(ctx, top.Options{Target: r.target, Now: func() time.Time { return epoch }}, &out)
	}()
	out.until(t, "uplink on eth0: 10.1k packets/s, 64.9 Mbit/s; median of delay from syn to syn-ack 31.0 ms (29.7 .. 32.5)")
	out.until(t, "finding begins, critical: 192.0.2.7:443 does not answer")
	out.until(t, "loss 0.30 %")
	r.found(f[:1])
	r.close()
	text := out.until(t, "finding ends, critical: 192.0.2.7:443 does not answer")
	if strings.Count(text, "finding begins") != 2 {
		t.Errorf("findings are written more than once:\n%s", text)
	}
	for _, c := range text {
		if c != '\n' && c < ' ' || c == '\u202e' || c == '\u05d0' {
			t.Errorf("%q in the output:\n%s", c, text)
		}
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
