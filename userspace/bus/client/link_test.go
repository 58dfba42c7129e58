package client

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// answering is a link without a network, which writes down what it is made to do.
type answering struct {
	*Link
	log      bytes.Buffer
	plans    []uint64
	messages []string
	renewed  int
	clock    int64
}

func newAnswering() *answering {
	a := &answering{clock: 1000}
	a.Link = &Link{incarnation: 7, queue: queue{limit: 1 << 20}, wake: make(chan struct{}, 1), numbers: map[source]uint64{}, items: make(chan bus.Item, 4), opts: Options{
		Log: slog.New(slog.NewTextHandler(&a.log, nil)), Clock: func() int64 { return a.clock },
		Plan: func(p *bus.Plan) { a.plans = append(a.plans, p.Revision) }, Message: func(m bus.Message) { a.messages = append(a.messages, string(m.Data)) },
		Renew: func() { a.renewed++ }}}
	for n := range uint64(6) {
		a.queue.put(sealed{n + 1, content{windows: 1}, make([]byte, 10)})
	}
	a.queue.sent = 5
	return a
}

// Messages of a coordinator are applied once: a plan if it is another one, messages in order, and a beginning if some were lost or another coordinator answers.
func TestAnswered(t *testing.T) {
	a := newAnswering()
	for n, c := range []struct {
		answer                              bus.Answer
		again, sent, received               uint64
		plans, messages, complaints, begins int
	}{
		{bus.Answer{Incarnation: 6, Run: 1, Received: 2}, 0, 5, 0, 0, 0, 0, 0},                                                         // another's
		{bus.Answer{Incarnation: 7, Run: 1, Received: 2, Used: 1, Plan: &bus.Plan{Revision: 1}}, 3, 2, 2, 1, 0, 0, 1},                  // the first one that answers: back to its position
		{bus.Answer{Incarnation: 7, Run: 1, Received: 3, Used: 3, Plan: &bus.Plan{Revision: 1}, Complaint: "no"}, 3, 3, 3, 1, 0, 1, 1}, // the same plan
		{bus.Answer{Incarnation: 7, Run: 1, Received: 3, Used: 3, Sent: 2, Messages: []bus.Message{{Data: []byte("a")}, {Data: []byte("b")}}, Complaint: "no"}, 3, 3, 3, 1, 2, 1, 1},
		{bus.Answer{Incarnation: 7, Run: 1, Received: 3, Used: 3, Sent: 4, Messages: []bus.Message{{Data: []byte("d")}}}, 3, 3, 3, 1, 3, 1, 2},  // c was lost
		{bus.Answer{Incarnation: 7, Run: 1, Received: 3, Used: 3, Sent: 4, Plan: &bus.Plan{Revision: 2}, Complaint: "no"}, 3, 3, 3, 2, 3, 2, 2}, // another plan, and the old complaint again
		{bus.Answer{Incarnation: 7, Run: 2, Received: 1, Used: 1}, 5, 1, 1, 2, 3, 2, 3},                                                         // another coordinator, who knows less
		{bus.Answer{Incarnation: 7, Run: 3, Received: 9, Used: 9}, 5, 6, 6, 2, 3, 2, 4},                                                         // ... and one who knows more than there is
	} {
		c.answer.Version = bus.Version
		data, err := bus.Encode(c.answer)
		if err != nil {
			t.Fatal(err)
		}
		if n == 6 {
			a.queue.sent = 3
		}
		a.answered(data)
		if a.again != c.again || a.queue.sent != c.sent || a.queue.received != c.received {
			t.Errorf("answer %d: %d are sent again, %d are sent and %d received, want %d, %d and %d", n, a.again, a.queue.sent, a.queue.received, c.again, c.sent, c.received)
		}
		if complaints := strings.Count(a.log.String(), "refused a message"); len(a.plans) != c.plans || len(a.messages) != c.messages || complaints != c.complaints || a.renewed != c.begins {
			t.Errorf("answer %d: %d plans, %d messages, %d complaints, %d beginnings, want %d, %d, %d and %d", n, len(a.plans), len(a.messages), complaints, a.renewed, c.plans, c.messages, c.complaints, c.begins)
		}
	}
	if !slices.Equal(a.plans, []uint64{1, 2}) || strings.Join(a.messages, "") != "abd" {
		t.Errorf("plans %v, messages %v", a.plans, a.messages)
	}
	if a.answered([]byte("no")); !strings.Contains(a.log.String(), "malformed reply") {
		t.Errorf("logged: %s", &a.log)
	}
}

// A clock is measured by answers to what was asked, of one coordinator.
func TestClockIsOfOneCoordinator(t *testing.T) {
	a := newAnswering()
	for _, c := range []struct {
		answer bus.Answer
		want   bus.Clock
	}{
		{bus.Answer{Run: 1}, bus.Clock{}},
		{bus.Answer{Run: 1, Asked: 900, Time: 5950}, bus.Clock{Known: true, Offset: 5000, Error: 51}},
		{bus.Answer{Run: 2}, bus.Clock{}},
		{bus.Answer{Run: 2, Asked: 800, Time: 7900}, bus.Clock{Known: true, Offset: 7000, Error: 101}},
	} {
		c.answer.Version, c.answer.Incarnation = bus.Version, 7
		data, err := bus.Encode(c.answer)
		if err != nil {
			t.Fatal(err)
		}
		if a.answered(data); a.Clock() != c.want {
			t.Errorf("%+v: %+v, want %+v", c.answer, a.Clock(), c.want)
		}
	}
}

// Messages have numbers of their own by instance and algorithm, with a gap for each that was lost; what finds no room is counted as what it is.
func TestPublished(t *testing.T) {
	a := newAnswering()
	a.Publish("m/eth0", "carpe", 5, 0, []byte("1"))
	a.Publish("m/eth0", "carpe", 6, 2, []byte("4"))
	a.Publish("m/eth1", "carpe", 7, 0, []byte("1"))
	a.Begin("m/eth1", "carpe")
	for _, want := range []bus.Item{
		{Measurement: "m", Instance: "m/eth0", Algorithm: "carpe", Message: []byte("1"), Number: 1, Time: 5},
		{Measurement: "m", Instance: "m/eth0", Algorithm: "carpe", Message: []byte("4"), Number: 4, Time: 6},
		{Measurement: "m", Instance: "m/eth1", Algorithm: "carpe", Message: []byte("1"), Number: 1, Time: 7},
		{Measurement: "m", Instance: "m/eth1", Algorithm: "carpe", Begins: true},
	} {
		got := <-a.items
		if got.Measurement != want.Measurement || got.Instance != want.Instance || got.Number != want.Number || got.Time != want.Time || got.Begins != want.Begins || !bytes.Equal(got.Message, want.Message) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for range cap(a.items) {
		a.Begin("m", "carpe")
	}
	a.Publish("m", "carpe", 1, 0, []byte("x"))
	a.Begin("m", "carpe")
	if a.missed != (content{messages: 1, begins: 1}) {
		t.Errorf("lost are %+v", a.missed)
	}
}

// What waits when a link ends is sent in batches that a coordinator takes.
func TestLastBatchesAreBounded(t *testing.T) {
	l := newAnswering().Link
	l.opts.Linger = time.Hour // only the link's end may seal a batch that is not full
	l.conn, l.items = &nats.Conn{}, make(chan bus.Item, 4*bus.MaxItems)
	for range 3*bus.MaxItems + 1 {
		l.items <- bus.Item{Algorithm: "precision", Snapshot: []byte{1}}
	}
	before := l.queue.last
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.gather(ctx)
	if n := l.queue.last - before; n != 4 {
		t.Errorf("%d batches, want 4", n)
	}
}
