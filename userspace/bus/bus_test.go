package bus

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"
)

// A batch leaves the queue when it was used or when there is no room, counts as lost if it was not received, and is sent again from where
// the coordinator says.
func TestQueue(t *testing.T) {
	q := queue{limit: 100}
	for n := range uint64(5) {
		q.put(sealed{n + 1, content{windows: 1}, make([]byte, 30)})
	}
	if q.oldest() != 3 || q.lost.windows != 2 || q.bytes != 90 {
		t.Errorf("oldest %d, lost %d, %d bytes", q.oldest(), q.lost.windows, q.bytes)
	}
	for want := uint64(3); want <= 5; want++ {
		s, ok := q.next()
		if !ok || s.number != want {
			t.Fatalf("%d, %v", s.number, ok)
		}
		q.sent = s.number
	}
	if _, ok := q.next(); ok {
		t.Error("there is more")
	}
	q.answered(4, 3, false)
	if q.oldest() != 4 || q.sent != 5 {
		t.Errorf("oldest %d, sent %d", q.oldest(), q.sent)
	}
	q.answered(3, 3, true) // another coordinator, who knows less
	if s, ok := q.next(); !ok || s.number != 4 || q.lost.windows != 2 {
		t.Errorf("%d, %v", s.number, ok)
	}
	q.answered(99, 99, false)
	if len(q.list) != 0 || q.oldest() != 6 || q.bytes != 0 {
		t.Errorf("%+v", q)
	}
}

// More than a bound is never on its way.
func TestInFlight(t *testing.T) {
	q := queue{limit: 1 << 30}
	for n := range uint64(1000) {
		q.put(sealed{n + 1, content{windows: 1}, make([]byte, 10)})
	}
	sent := 0
	for s, ok := q.next(); ok; s, ok = q.next() {
		q.sent = s.number
		sent++
	}
	if sent != inFlightBatches {
		t.Errorf("%d batches", sent)
	}
}

// The offset is that of the shortest way, and within what it claims.
func TestClocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const offset = 1_790_000_000_000_000_000
	for range 1000 {
		var c clocks
		for n := range int64(30) {
			sent := n * 2e9
			there, back := rng.Int64N(50e6), rng.Int64N(50e6)
			c.add(sent, sent+there+offset, sent+there+back)
		}
		got := c.now(60e9)
		if d := got.Offset - offset; !got.Known || d > got.Error || -d > got.Error {
			t.Fatalf("off by %d, it claims %d", d, got.Error)
		}
	}
	var c clocks
	if c.add(5, 0, 4); c.now(10).Known {
		t.Error("an answer that came before its question")
	}
}

func TestSender(t *testing.T) {
	for _, name := range []string{"a", "host-1.example.net", "A_b"} {
		if got, hello, ok := Sender(HelloSubject(name)); got != name || !hello || !ok {
			t.Errorf("%s: %s %v %v", name, got, hello, ok)
		}
		if got, hello, ok := Sender(DataSubject(name)); got != name || hello || !ok {
			t.Errorf("%s: %s %v %v", name, got, hello, ok)
		}
	}
	for _, subject := range []string{"xdpmon.up.", "xdpmon.up.a.other", "xdpmon.down.a", "xdpmon.up.a", "xdpmon.up.-.data", "xdpmon.up.a==b.data"} {
		if name, _, ok := Sender(subject); ok {
			t.Errorf("%s is %s's", subject, name)
		}
	}
	for _, name := range []string{"", "a b", "a*", ">", "a..b", "a.", "a=b", "é"} {
		if CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

// A port that is taken is said at once.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, o := range []ServerOptions{{Listen: taken.Addr().String()}, {Listen: "127.0.0.1:0", Cluster: taken.Addr().String()}} {
		if s, err := Serve(o); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%+v: %v, %v", o, s, err)
		}
	}
}

// The same reason is said once, though each attempt has another port.
func TestUnreached(t *testing.T) {
	var log bytes.Buffer
	l := &Link{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	for port := range 3 {
		l.unreached(&net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: 4000 + port}, Err: unix.ECONNREFUSED})
	}
	l.unreached(nil)
	l.unreached(nats.ErrNoServers)
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(l.trouble, "refused") {
		t.Errorf("%d lines, %q", n, l.trouble)
	}
	l.unreached(unix.EHOSTUNREACH)
	l.reached()
	if n := strings.Count(log.String(), "\n"); n != 2 || l.trouble != "" {
		t.Errorf("%d lines, %q", n, l.trouble)
	}
}

// Whatever comes is a message, or refused.
func TestDamage(t *testing.T) {
	whole, err := Encode(Batch{Version: Version, Life: 3, Number: 2, Oldest: 1, Items: []Item{{Measurement: "m", Instance: "m", Algorithm: "a", Snapshot: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeBatch(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := DecodeBatch(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are a batch", n, len(whole))
		}
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		b := append([]byte(nil), whole...)
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		_, _ = DecodeBatch(b)
		_, _ = DecodeHello(b)
		_, _ = DecodeAnswer(b)
	}
}

// What a clock says is the middle of the shortest way, right to half of it and a drift that grows; what is older than the last few ways is gone.
func TestClockOfTheShortestWay(t *testing.T) {
	const offset = 1_790_000_000_000_000_000
	var c clocks
	if got := c.now(5); got.Known {
		t.Errorf("known of nothing: %+v", got)
	}
	c.add(1000, 1000+offset, 1000) // no way at all
	if got := c.now(1000); got != (Clock{true, offset, 1}) {
		t.Errorf("%+v", got)
	}
	c.forget()
	c.add(0, 500+offset, 1000)
	c.add(2000, 2100+offset, 2200)
	c.add(3000, 3400+offset, 3600)
	for at, want := range map[int64]Clock{2200: {true, offset, 101}, 2200 + 1e6: {true, offset, 201}, 2200 + 1e9: {true, offset, 100_101}} {
		if got := c.now(at); got != want {
			t.Errorf("at %d: %+v, want %+v", at, got, want)
		}
	}
	c.add(4000, 4050+offset+900, 4100) // the clock was set: who answers soonest is believed
	if got := c.now(4100); got != (Clock{true, offset + 900, 51}) {
		t.Errorf("%+v", got)
	}
	for n := range int64(sampled) {
		c.add(5000+n*1e4, 5000+n*1e4+offset+7+2000, 5000+n*1e4+4000)
		if got := c.now(5000 + n*1e4 + 4000); (got.Error < 100) != (n < sampled-1) || n == sampled-1 && got != (Clock{true, offset + 7, 2001}) {
			t.Errorf("%d ways later: %+v", n+1, got)
		}
	}
}

// The pause before the next attempt doubles from a quarter of a second to eight, give or take a half: not all come back at once.
func TestPause(t *testing.T) {
	for attempts, want := range map[int]time.Duration{0: 250 * time.Millisecond, 1: 500 * time.Millisecond, 2: time.Second, 4: 4 * time.Second, 5: 8 * time.Second, 6: 8 * time.Second, 9: 8 * time.Second, 1000: 8 * time.Second} {
		least, most := time.Hour, time.Duration(0)
		for range 400 {
			p := pause(attempts)
			least, most = min(least, p), max(most, p)
		}
		if least < want/2 || most >= 3*want/2 || most-least < want/2 {
			t.Errorf("attempt %d: %v to %v, want about %v", attempts, least, most, want)
		}
	}
}

// Messages that break a bound are refused; at the bound they are not.
func TestBounds(t *testing.T) {
	item := Item{Measurement: "m", Instance: "m", Algorithm: "a", Snapshot: []byte("x")}
	long := func(n int) string { return strings.Repeat("n", n) }
	batch := func(f func(*Batch)) error {
		m := Batch{Version: Version, Life: 3, Number: 2, Oldest: 2, Items: []Item{item}}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeBatch(b)
		return err
	}
	of := func(f func(*Item)) error {
		return batch(func(b *Batch) { f(&b.Items[0]) })
	}
	hello := func(f func(*Hello)) error {
		m := Hello{Version: Version, Life: 3, Number: 4, Oldest: 5}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeHello(b)
		return err
	}
	answer := func(f func(*Answer)) error {
		m := Answer{Version: Version, Received: 4, Used: 4, Messages: []Message{{}}, Told: 1}
		f(&m)
		b, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeAnswer(b)
		return err
	}
	refused := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = ""
		}
		return m
	}
	for what, c := range map[string]struct{ got, want error }{
		"batch":                {batch(func(*Batch) {}), nil},
		"its version":          {batch(func(b *Batch) { b.Version++ }), ErrVersion},
		"number 0":             {batch(func(b *Batch) { b.Number, b.Oldest = 0, 0 }), ErrMalformed},
		"oldest 0":             {batch(func(b *Batch) { b.Oldest = 0 }), ErrMalformed},
		"oldest behind it":     {batch(func(b *Batch) { b.Oldest = 3 }), ErrMalformed},
		"as many as may be":    {batch(func(b *Batch) { b.Items = slices.Repeat(b.Items, MaxItems) }), nil},
		"one more":             {batch(func(b *Batch) { b.Items = slices.Repeat(b.Items, MaxItems+1) }), ErrMalformed},
		"nothing":              {of(func(i *Item) { i.Snapshot = nil }), ErrMalformed},
		"two":                  {of(func(i *Item) { i.Begins = true }), ErrMalformed},
		"begins":               {of(func(i *Item) { i.Snapshot, i.Begins = nil, true }), nil},
		"message":              {of(func(i *Item) { i.Snapshot, i.Message, i.Number = nil, []byte("x"), 1 }), nil},
		"message without one":  {of(func(i *Item) { i.Snapshot, i.Message = nil, []byte("x") }), ErrMalformed},
		"number without one":   {of(func(i *Item) { i.Number = 1 }), ErrMalformed},
		"long names":           {of(func(i *Item) { i.Measurement, i.Instance, i.Algorithm = long(MaxName), long(2*MaxName), long(MaxName) }), nil},
		"measurement":          {of(func(i *Item) { i.Measurement = long(MaxName + 1) }), ErrMalformed},
		"instance":             {of(func(i *Item) { i.Instance = long(2*MaxName + 1) }), ErrMalformed},
		"algorithm":            {of(func(i *Item) { i.Algorithm = long(MaxName + 1) }), ErrMalformed},
		"hello":                {hello(func(*Hello) {}), nil},
		"a hello's version":    {hello(func(h *Hello) { h.Version-- }), ErrVersion},
		"without a life":       {hello(func(h *Hello) { h.Life = 0 }), ErrMalformed},
		"oldest of the future": {hello(func(h *Hello) { h.Oldest = 6 }), ErrMalformed},
		"long software":        {hello(func(h *Hello) { h.Software = long(128) }), nil},
		"too long software":    {hello(func(h *Hello) { h.Software = long(129) }), ErrMalformed},
		"many refused":         {hello(func(h *Hello) { h.Refused = refused(MaxMeasurements) }), nil},
		"too many refused":     {hello(func(h *Hello) { h.Refused = refused(MaxMeasurements + 1) }), ErrMalformed},
		"answer":               {answer(func(*Answer) {}), nil},
		"an answer's version":  {answer(func(a *Answer) { a.Version = 0 }), ErrVersion},
		"used unseen":          {answer(func(a *Answer) { a.Used = 5 }), ErrMalformed},
		"told untold":          {answer(func(a *Answer) { a.Told = 0 }), ErrMalformed},
		"a large plan":         {answer(func(a *Answer) { a.Plan = &Plan{Measurements: make([]Measurement, MaxMeasurements)} }), nil},
		"too large a plan":     {answer(func(a *Answer) { a.Plan = &Plan{Measurements: make([]Measurement, MaxMeasurements+1)} }), ErrMalformed},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if CheckName(long(MaxName)) != nil || CheckName(long(MaxName+1)) == nil {
		t.Errorf("names have %d letters at most", MaxName)
	}
}

// What is lost is counted by what it was; whatever is in the queue still is not lost.
func TestContent(t *testing.T) {
	items := []Item{{Snapshot: []byte("x")}, {Message: []byte("x")}, {Message: []byte("x")}, {Begins: true}, {Begins: true}, {Begins: true}}
	got := contentOf(items...)
	got.add(content{10, 20, 30})
	if got != (content{11, 22, 33}) {
		t.Errorf("%+v", got)
	}
	q := queue{limit: 99}
	q.put(sealed{1, contentOf(items...), make([]byte, 33)})
	q.put(sealed{2, content{windows: 1}, make([]byte, 66)})
	if q.lost != (content{}) || q.bytes != 99 {
		t.Errorf("at the bound %+v are lost", q.lost)
	}
	q.put(sealed{3, content{}, make([]byte, 200)})
	if q.lost != (content{2, 2, 3}) || q.bytes != 200 || q.oldest() != 3 {
		t.Errorf("%+v lost, %d bytes from %d", q.lost, q.bytes, q.oldest())
	}
	q.sent, q.received = 3, 3
	if q.put(sealed{4, content{windows: 5}, nil}); q.lost.windows != 2 {
		t.Errorf("what was received is lost: %+v", q.lost)
	}
	q.answered(4, 2, false)
	if q.sent != 4 || len(q.list) == 0 {
		t.Errorf("%+v", q)
	}
	if _, ok := q.next(); ok {
		t.Error("what was received is sent")
	}
}

// What is on its way is bounded by bytes, too, but one batch always is.
func TestInFlightBytes(t *testing.T) {
	q := queue{limit: 1 << 30}
	for n := range uint64(5) {
		q.put(sealed{n + 1, content{}, make([]byte, inFlightBytes/2)})
	}
	for want := uint64(1); want <= 2; want++ {
		s, ok := q.next()
		if !ok || s.number != want {
			t.Fatalf("%d, %v", s.number, ok)
		}
		q.sent = s.number
	}
	if s, ok := q.next(); ok {
		t.Errorf("%d goes, too", s.number)
	}
	q.answered(1, 0, false)
	if s, ok := q.next(); !ok || s.number != 3 {
		t.Errorf("%d, %v", s.number, ok)
	}
}
