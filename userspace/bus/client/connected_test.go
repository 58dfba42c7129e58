package client

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/bus/server"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// written is a log that several write.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) count(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.b.String(), text)
}

// central is a coordinator that a test plays.
type central struct {
	t        *testing.T
	conn     *nats.Conn
	hellos   chan bus.Hello
	batches  chan bus.Batch
	findings chan bus.Findings
}

func newCentral(t *testing.T) (*central, *server.Server) {
	t.Helper()
	s, err := server.Serve(server.Options{Listen: "127.0.0.1:0", Store: t.TempDir(), Message: bus.DefaultMessage, Agents: 4, Name: "central", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := &central{t: t, hellos: make(chan bus.Hello, 10000), batches: make(chan bus.Batch, 10000), findings: make(chan bus.Findings, 100)}
	if c.conn, err = s.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	if _, err := c.conn.Subscribe(bus.UpAll, func(m *nats.Msg) {
		if h, err := bus.DecodeHello(m.Data); err == nil && m.Subject == bus.HelloSubject("host.1") {
			c.hellos <- h
		} else if b, err := bus.DecodeBatch(m.Data); err == nil && m.Subject == bus.DataSubject("host.1") {
			c.batches <- b
		} else if f, err := bus.DecodeFindings(m.Data); err == nil && m.Subject == bus.FindingsSubject("host.1") {
			c.findings <- f
		} else {
			t.Errorf("%s: no message", m.Subject)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.Flush(); err != nil { // The server has the subscription: what an agent sends first is not lost.
		t.Fatal(err)
	}
	return c, s
}

// hello waits for one that is as it should be.
func (c *central) hello(what string, good func(bus.Hello) bool) bus.Hello {
	c.t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case h := <-c.hellos:
			if good(h) {
				return h
			}
		case <-late:
			c.t.Fatalf("no hello %s", what)
		}
	}
}

func (c *central) batch() bus.Batch {
	c.t.Helper()
	select {
	case b := <-c.batches:
		return b
	case <-time.After(time.Minute):
		c.t.Fatal("no batch")
		return bus.Batch{}
	}
}

func (c *central) answer(a bus.Answer) {
	c.t.Helper()
	a.Version = bus.Version
	data, err := bus.Encode(a)
	if err == nil {
		err = c.conn.Publish(bus.DownSubject("host.1"), data)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// An agent's messages are sent in order and once, the coordinator's messages reach their receivers, and losses are counted.
func TestLink(t *testing.T) {
	c, s := newCentral(t)
	var mu sync.Mutex
	var plans []uint64
	var messages []bus.Message
	renewed := 0
	var log written
	const boot = int64(1_700_000_000e9)
	var hub feed.Hub
	l, err := Open(Options{Name: "host.1", Servers: []string{"nats://" + s.Address()}, Buffer: 3000, Software: "1.2", Log: slog.New(slog.NewTextHandler(&log, nil)),
		Plan:    func(p *bus.Plan) { mu.Lock(); plans = append(plans, p.Revision); mu.Unlock() },
		Refused: func() map[string]string { return map[string]string{"b": "why"} },
		Message: func(m bus.Message) { mu.Lock(); messages = append(messages, m); mu.Unlock() },
		Renew:   func() { mu.Lock(); renewed++; mu.Unlock() },
		Clock:   func() int64 { return time.Now().UnixNano() - boot }, Wall: func() int64 { return time.Now().UnixNano() + 5e9 },
		Hello: 10 * time.Millisecond, Linger: time.Millisecond}, &hub, func(instance string) bool { return instance == "m/eth0" })
	if err != nil {
		t.Fatal(err)
	}
	first := c.hello("at first", func(bus.Hello) bool { return true })
	if first.Incarnation&1 == 0 || first.Number != 0 || first.Oldest != 1 || first.Revision != 0 || first.Lost != 0 || first.Software != "1.2" || first.Clock.Known ||
		first.Refused["b"] != "why" || first.Wall < boot+5e9-1e9 || first.Wall > boot+5e9+60e9 {
		t.Errorf("%+v", first)
	}
	if h := l.Health(); !h.Connected || h.Answered != -1 || h.Waiting != 0 || h.Sent != 0 {
		t.Errorf("%+v", h)
	}

	l.Publish("m/eth0", "received", 77, 2, []byte("x"))
	b := c.batch()
	if i := b.Items[0]; b.Incarnation != first.Incarnation || b.Number != 1 || b.Oldest != 1 || len(b.Items) != 1 || i.Measurement != "m" || i.Instance != "m/eth0" || i.Algorithm != "received" ||
		string(i.Message) != "x" || i.Number != 3 || i.Time != 77 {
		t.Errorf("%+v", b)
	}
	c.answer(bus.Answer{Incarnation: first.Incarnation + 2, Run: 4, Received: 1, Used: 1, Plan: &bus.Plan{Revision: 9}}) // to another incarnation
	c.answer(bus.Answer{Incarnation: first.Incarnation, Run: 5, Asked: first.Time, Time: time.Now().UnixNano(), Received: 1, Plan: &bus.Plan{Revision: 8}, Sent: 2, Complaint: "no good",
		Messages: []bus.Message{{Instance: "m/eth0", Algorithm: "received", Data: []byte("one")}, {Instance: "m/eth0", Algorithm: "received", Data: []byte("two")}}})
	h := c.hello("with the plan", func(h bus.Hello) bool { return h.Revision == 8 })
	if !h.Clock.Known || h.Clock.Offset < boot-30e9 || h.Clock.Offset > boot+30e9 || h.Number != 1 {
		t.Errorf("%+v", h)
	}
	c.answer(bus.Answer{Incarnation: first.Incarnation, Run: 5, Received: 1, Plan: &bus.Plan{Revision: 8}, Sent: 3, Complaint: "no good", Messages: []bus.Message{{Instance: "m", Algorithm: "received", Data: []byte("three")}}})
	testutil.Wait(t, "all messages", func() bool { mu.Lock(); defer mu.Unlock(); return len(messages) == 3 })
	mu.Lock()
	if !slices.Equal(plans, []uint64{8}) || renewed != 1 || string(messages[0].Data)+string(messages[2].Data) != "onethree" { // with another run everything is new
		t.Errorf("plans %v, renewed %d times, logged %q", plans, renewed, messages)
	}
	mu.Unlock()
	if n := log.count("no good"); n != 1 {
		t.Errorf("the complaint is logged %d times", n)
	}
	if h := l.Health(); h.Waiting != 0 || h.Bytes == 0 || h.Sent != 1 || h.Again != 0 || h.Revision != 8 || h.Complaint != "no good" || h.Answered < 0 || h.Offset < 4 || h.Offset > 60 {
		t.Errorf("%+v", h)
	}

	c.answer(bus.Answer{Incarnation: first.Incarnation, Run: 5, Received: 1, Used: 1, Sent: 4}) // a message is lost
	testutil.Wait(t, "instances restart", func() bool { mu.Lock(); defer mu.Unlock(); return renewed == 2 })
	for _, instance := range []string{"other", "m/eth0"} {
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "lean", Identity: report.Identity{Instance: instance}, Snapshot: []byte("s")}})
	}
	hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "lean", Identity: report.Identity{Instance: "m/eth0"}}})
	if b := c.batch(); b.Number != 2 || b.Oldest != 2 || len(b.Items) != 1 || string(b.Items[0].Snapshot) != "s" || b.Items[0].Instance != "m/eth0" || b.Items[0].Algorithm != "lean" || !b.Clock.Known {
		t.Errorf("%+v", b)
	}
	l.Begin("m", "received")
	if b := c.batch(); b.Number != 3 || len(b.Items) != 1 || !b.Items[0].Begins || b.Items[0].Measurement != "m" {
		t.Errorf("%+v", b)
	}
	c.answer(bus.Answer{Incarnation: first.Incarnation, Run: 6, Received: 1, Used: 1}) // another coordinator, who knows of the first one
	for want := uint64(2); want <= 3; want++ {
		if b := c.batch(); b.Number != want {
			t.Errorf("batch %d is sent again, want %d", b.Number, want)
		}
	}
	if h := l.Health(); h.Again != 2 || h.Waiting != 2 || h.Sent != 3 {
		t.Errorf("%+v", h)
	}

	l.Publish("m", "received", 1, 0, make([]byte, bus.DefaultMessage)) // no message is so large
	testutil.Wait(t, "what is too large is lost", func() bool { return l.Health().Messages == 1 })
	for range 2 { // there is space for only one: batch 2 is dropped, a window, and batch 3, a beginning
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "lean", Identity: report.Identity{Instance: "m/eth0"}, Snapshot: make([]byte, 2000)}})
		c.batch()
	}
	h = c.hello("with losses", func(h bus.Hello) bool { return h.Lost == 2 })
	if h.Oldest != 5 || h.Number != 5 {
		t.Errorf("%+v", h)
	}
	testutil.Wait(t, "a lost beginning is sent again", func() bool { mu.Lock(); defer mu.Unlock(); return renewed == 4 })
	if h := l.Health(); h.Lost != 2 || h.Messages != 1 || h.Waiting == 0 {
		t.Errorf("%+v", h)
	}

	l.Publish("m/eth0", "received", 1, 0, []byte("last"))
	hub.Close()
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	for b := c.batch(); ; b = c.batch() {
		if b.Number == 6 {
			if i := b.Items[0]; string(i.Message) != "last" || i.Number != 4 {
				t.Errorf("%+v", b)
			}
			break
		}
	}
	c.answer(bus.Answer{Incarnation: first.Incarnation, Run: 6, Received: 6, Used: 6})
	<-closed
}

// TestCloseSendsTheLastWindow: what waits for more to fill a batch with is sent before the link ends, as the last window of an agent that is upgraded is.
func TestCloseSendsTheLastWindow(t *testing.T) {
	c, s := newCentral(t)
	for range 10 {
		var hub feed.Hub
		l, err := Open(Options{Name: "host.1", Servers: []string{"nats://" + s.Address()}, Buffer: 3000, Log: slog.New(slog.DiscardHandler), Plan: func(*bus.Plan) {}, Renew: func() {}, Refused: func() map[string]string { return nil },
			Message: func(bus.Message) {}, Clock: func() int64 { return 1 }, Wall: func() int64 { return 1 }, Linger: time.Hour}, &hub, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		h := c.hello("of the agent", func(h bus.Hello) bool { return h.Incarnation == l.incarnation })
		l.Publish("m", "received", 1, 0, []byte("in a batch"))
		testutil.Wait(t, "the batch is being made", func() bool { return len(l.items) == 0 })
		hub.Publish(t.Context(), feed.Event{Line: &report.Line{Algorithm: "lean", Identity: report.Identity{Instance: "m"}, Snapshot: []byte("last")}})
		closed := make(chan struct{})
		go func() { l.Close(); close(closed) }()
		if b := c.batch(); b.Incarnation != l.incarnation || len(b.Items) != 2 || string(b.Items[1].Snapshot) != "last" {
			t.Errorf("%+v", b)
		}
		c.answer(bus.Answer{Incarnation: h.Incarnation, Run: 1, Received: 1, Used: 1})
		<-closed
	}
}

// While there is no coordinator windows wait, and none is lost for that.
func TestWaits(t *testing.T) {
	var hub feed.Hub
	l, err := Open(Options{Name: "host.1", Servers: []string{"nats://127.0.0.1:1"}, Buffer: 1 << 20, Log: slog.New(slog.DiscardHandler), Clock: func() int64 { return 1 },
		Wall: func() int64 { return 1 }, Linger: time.Millisecond}, &hub, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	l.Publish("m", "received", 1, 0, []byte("x"))
	testutil.Wait(t, "a batch waits", func() bool { return l.Health().Waiting == 1 })
	if h := l.Health(); h.Connected || h.Messages != 0 || h.Sent != 0 || h.Bytes == 0 || h.Answered != -1 {
		t.Errorf("%+v", h)
	}
	hub.Close()
	l.Close()
	if _, err := Open(Options{Name: "a b"}, &hub, nil); err == nil {
		t.Error("a name that is none is taken")
	}
}

// A coordinator that begins to listen after an agent has sent its findings gets them with its first answer, not with the next repetition.
func TestFindingsForANewCoordinator(t *testing.T) {
	c, s := newCentral(t)
	var hub feed.Hub
	l, err := Open(Options{Name: "host.1", Servers: []string{"nats://" + s.Address()}, Buffer: 3000, Log: slog.New(slog.DiscardHandler), Plan: func(*bus.Plan) {}, Renew: func() {}, Refused: func() map[string]string { return nil },
		Message: func(bus.Message) {}, Clock: func() int64 { return 1 }, Wall: func() int64 { return 1 }, Hello: 10 * time.Millisecond, Linger: time.Millisecond,
		Found: func() ([][]byte, uint64, []string) { return [][]byte{[]byte("{}")}, 0, nil }}, &hub, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub.Close(); l.Close() })
	var number uint64
	next := func(what string) {
		t.Helper()
		select {
		case f := <-c.findings:
			if f.Number <= number || f.Number > number+10 {
				t.Errorf("%s: findings %d after %d", what, f.Number, number)
			}
			number = f.Number
		case <-time.After(repeat / 2):
			t.Fatalf("%s: no findings", what)
		}
	}
	h := c.hello("of the agent", func(bus.Hello) bool { return true })
	// The first hello and the one of the connection both carry findings, in either order: both are over after some more.
	quiet := func() {
		t.Helper()
		for range len(c.hellos) {
			<-c.hellos
		}
		for range 5 {
			c.hello("later", func(bus.Hello) bool { return true })
		}
	}
	next("at the start")
	quiet()
	for len(c.findings) > 0 {
		<-c.findings
	}
	for _, run := range []uint64{1, 2} {
		c.answer(bus.Answer{Incarnation: h.Incarnation, Run: run, Time: 1})
		next("of another coordinator")
		c.answer(bus.Answer{Incarnation: h.Incarnation, Run: run, Time: 1})
	}
	quiet()
	if n := len(c.findings); n > 0 {
		t.Errorf("findings were sent %d times more, without a change", n)
	}
}

// What no coordinator has received for a while is sent again, from the oldest on; what was received is not, nor what was sent just now.
func TestStalled(t *testing.T) {
	c, s := newCentral(t)
	var hub feed.Hub
	l, err := Open(Options{Name: "host.1", Servers: []string{"nats://" + s.Address()}, Buffer: 3000, Log: slog.New(slog.DiscardHandler), Plan: func(*bus.Plan) {}, Renew: func() {}, Refused: func() map[string]string { return nil },
		Message: func(bus.Message) {}, Clock: func() int64 { return 1 }, Wall: func() int64 { return 1 }, Hello: time.Hour, Linger: time.Millisecond}, &hub, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	h := c.hello("of the agent", func(bus.Hello) bool { return true })
	for want := uint64(1); want <= 3; want++ {
		l.Publish("m", "received", 1, 0, []byte("x"))
		if b := c.batch(); b.Number != want {
			t.Errorf("batch %d, want %d", b.Number, want)
		}
	}
	c.answer(bus.Answer{Incarnation: h.Incarnation, Run: 1, Received: 3, Used: 1})
	testutil.Wait(t, "they are received", func() bool { return l.Health().Waiting == 0 })
	before := l.Health().Again
	pass := func(age time.Duration) {
		l.mu.Lock()
		l.progress = time.Now().Add(-age)
		l.mu.Unlock()
		l.stalled()
	}
	if pass(time.Hour); l.Health().Again != before {
		t.Error("what was received is sent again")
	}
	for want := uint64(4); want <= 5; want++ {
		l.Publish("m", "received", 1, 0, []byte("x"))
		c.batch()
	}
	if pass(stall - time.Minute); l.Health().Again != before {
		t.Error("what was just sent is sent again")
	}
	pass(stall + time.Second)
	signal(l.wake)
	for want := uint64(4); want <= 5; want++ {
		if b := c.batch(); b.Number != want {
			t.Errorf("batch %d is sent again, want %d", b.Number, want)
		}
	}
	if again := l.Health().Again - before; again != 2 {
		t.Errorf("%d are sent again", again)
	}
	c.answer(bus.Answer{Incarnation: h.Incarnation, Run: 1, Received: 5, Used: 5})
	hub.Close()
	l.Close()
}
