package bus

import (
	"bytes"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// answering is a link without a network, which writes down what it is made to do.
type answering struct {
	*Link
	log     bytes.Buffer
	plans   []uint64
	heard   []string
	renewed int
	clock   int64
}

func newAnswering() *answering {
	a := &answering{clock: 1000}
	a.Link = &Link{life: 7, queue: queue{limit: 1 << 20}, wake: make(chan struct{}, 1), numbers: map[speaker]uint64{}, said: make(chan Item, 4), opts: Options{
		Log: slog.New(slog.NewTextHandler(&a.log, nil)), Clock: func() int64 { return a.clock },
		Plan: func(p *Plan) { a.plans = append(a.plans, p.Revision) }, Message: func(m Message) { a.heard = append(a.heard, string(m.Data)) },
		Renew: func() { a.renewed++ }}}
	for n := range uint64(6) {
		a.queue.put(sealed{n + 1, content{windows: 1}, make([]byte, 10)})
	}
	a.queue.sent = 5
	return a
}

// What a coordinator says is taken once: a plan when it is another one, messages in order, and a beginning where some were lost or somebody else answers.
func TestAnswered(t *testing.T) {
	a := newAnswering()
	for n, c := range []struct {
		answer                           Answer
		again, sent, received            uint64
		plans, heard, complaints, begins int
	}{
		{Answer{Life: 6, Run: 1, Received: 2}, 0, 5, 0, 0, 0, 0, 0},                                                     // another's
		{Answer{Life: 7, Run: 1, Received: 2, Used: 1, Plan: &Plan{Revision: 1}}, 3, 2, 2, 1, 0, 0, 1},                  // the first one that answers: back to where it stands
		{Answer{Life: 7, Run: 1, Received: 3, Used: 3, Plan: &Plan{Revision: 1}, Complaint: "no"}, 3, 3, 3, 1, 0, 1, 1}, // the same plan
		{Answer{Life: 7, Run: 1, Received: 3, Used: 3, Told: 2, Messages: []Message{{Data: []byte("a")}, {Data: []byte("b")}}, Complaint: "no"}, 3, 3, 3, 1, 2, 1, 1},
		{Answer{Life: 7, Run: 1, Received: 3, Used: 3, Told: 4, Messages: []Message{{Data: []byte("d")}}}, 3, 3, 3, 1, 3, 1, 2},  // c was lost
		{Answer{Life: 7, Run: 1, Received: 3, Used: 3, Told: 4, Plan: &Plan{Revision: 2}, Complaint: "no"}, 3, 3, 3, 2, 3, 2, 2}, // another plan, and the old complaint anew
		{Answer{Life: 7, Run: 2, Received: 1, Used: 1}, 5, 1, 1, 2, 3, 2, 3},                                                     // another coordinator, who knows less
		{Answer{Life: 7, Run: 3, Received: 9, Used: 9}, 5, 6, 6, 2, 3, 2, 4},                                                     // ... and one who knows more than there is
	} {
		c.answer.Version = Version
		data, err := Encode(c.answer)
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
		if complaints := strings.Count(a.log.String(), "refused something"); len(a.plans) != c.plans || len(a.heard) != c.heard || complaints != c.complaints || a.renewed != c.begins {
			t.Errorf("answer %d: %d plans, %d messages, %d complaints, %d beginnings, want %d, %d, %d and %d", n, len(a.plans), len(a.heard), complaints, a.renewed, c.plans, c.heard, c.complaints, c.begins)
		}
	}
	if !slices.Equal(a.plans, []uint64{1, 2}) || strings.Join(a.heard, "") != "abd" {
		t.Errorf("plans %v, messages %v", a.plans, a.heard)
	}
	if a.answered([]byte("no")); !strings.Contains(a.log.String(), "no answer") {
		t.Errorf("told: %s", &a.log)
	}
}

// A clock is measured by answers to what was asked, of one coordinator.
func TestClockIsOfOneCoordinator(t *testing.T) {
	a := newAnswering()
	for _, c := range []struct {
		answer Answer
		want   Clock
	}{
		{Answer{Run: 1}, Clock{}},
		{Answer{Run: 1, Asked: 900, Time: 5950}, Clock{true, 5000, 51}},
		{Answer{Run: 2}, Clock{}},
		{Answer{Run: 2, Asked: 800, Time: 7900}, Clock{true, 7000, 101}},
	} {
		c.answer.Version, c.answer.Life = Version, 7
		data, err := Encode(c.answer)
		if err != nil {
			t.Fatal(err)
		}
		if a.answered(data); a.Clock() != c.want {
			t.Errorf("%+v: %+v, want %+v", c.answer, a.Clock(), c.want)
		}
	}
}

// Messages have numbers of their own by instance and algorithm, with a gap for each that was lost; what finds no room is counted as what it is.
func TestSaid(t *testing.T) {
	a := newAnswering()
	a.Say("m/eth0", "carpe", 5, 0, []byte("1"))
	a.Say("m/eth0", "carpe", 6, 2, []byte("4"))
	a.Say("m/eth1", "carpe", 7, 0, []byte("1"))
	a.Begin("m/eth1", "carpe")
	for _, want := range []Item{
		{Measurement: "m", Instance: "m/eth0", Algorithm: "carpe", Message: []byte("1"), Number: 1, Time: 5},
		{Measurement: "m", Instance: "m/eth0", Algorithm: "carpe", Message: []byte("4"), Number: 4, Time: 6},
		{Measurement: "m", Instance: "m/eth1", Algorithm: "carpe", Message: []byte("1"), Number: 1, Time: 7},
		{Measurement: "m", Instance: "m/eth1", Algorithm: "carpe", Begins: true},
	} {
		got := <-a.said
		if got.Measurement != want.Measurement || got.Instance != want.Instance || got.Number != want.Number || got.Time != want.Time || got.Begins != want.Begins || !bytes.Equal(got.Message, want.Message) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for range cap(a.said) {
		a.Begin("m", "carpe")
	}
	a.Say("m", "carpe", 1, 0, []byte("x"))
	a.Begin("m", "carpe")
	if a.missed != (content{messages: 1, begins: 1}) {
		t.Errorf("lost are %+v", a.missed)
	}
}

// heeds waits for what others do.
func heeds(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Who speaks for others is counted and not heard, who has no name is refused, and a name has a few connections and no more, until one ends.
func TestServer(t *testing.T) {
	var log bytes.Buffer
	s, err := Serve(ServerOptions{Listen: "127.0.0.1:0", Store: t.TempDir(), Message: DefaultMessage, Agents: 8, Name: "one", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	own, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	heard := make(chan *nats.Msg, 16)
	if _, err := own.ChanSubscribe(UpAll, heard); err != nil {
		t.Fatal(err)
	}
	if err := own.Flush(); err != nil {
		t.Fatal(err)
	}
	dial := func(name string) (*nats.Conn, error) {
		return nats.Connect("nats://"+s.Address(), nats.UserInfo(name, ""), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	}
	if _, _, err := net.SplitHostPort(s.Address()); err != nil {
		t.Error(err)
	}
	var conns []*nats.Conn
	for range perName {
		c, err := dial("a")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	for _, subject := range []string{DataSubject("b"), DownSubject("a"), DataSubject("a")} {
		if err := conns[0].Publish(subject, []byte(subject)); err != nil {
			t.Fatal(err)
		}
	}
	if m := <-heard; m.Subject != DataSubject("a") || len(heard) != 0 {
		t.Errorf("heard %s", m.Subject)
	}
	for _, name := range []string{"a", "", "a b"} {
		if c, err := dial(name); err == nil {
			c.Close()
			t.Errorf("another connection of %q", name)
		}
	}
	heeds(t, "who was refused is counted", func() bool { refused, violations := s.Refused(); return refused == 3 && violations == 2 })
	conns[1].Close()
	heeds(t, "one that ended makes room", func() bool {
		c, err := dial("a")
		if err == nil {
			conns[1] = c
			t.Cleanup(c.Close)
		}
		return err == nil
	})
	other, err := dial("b")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	s.DropRevoked(func(serial string) bool { return serial != "" }) // nobody has a certificate
	if s.Drop("a"); s.conns["a"] != nil {
		t.Errorf("%d connections are left", len(s.conns["a"]))
	}
	heeds(t, "all of a name are dropped", func() bool { return !slices.ContainsFunc(conns, (*nats.Conn).IsConnected) })
	if !other.IsConnected() {
		t.Error("another name is dropped, too")
	}
}
