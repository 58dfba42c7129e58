package bus

import (
	"math/rand/v2"
	"testing"
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
