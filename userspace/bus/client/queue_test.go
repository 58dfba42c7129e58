package client

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/bus"
)

// A batch leaves the queue when it was used or when there is no room, counts as lost if it was not received, and is sent again from where
// the coordinator answers.
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
		t.Error("an answer that arrived before its request")
	}
}

// The same reason is logged once, though each attempt has another port.
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

// A clock's estimate is the middle of the shortest round trip, right to half of it and a growing drift; samples older than the last few are dropped.
func TestClockOfTheShortestWay(t *testing.T) {
	const offset = 1_790_000_000_000_000_000
	var c clocks
	if got := c.now(5); got.Known {
		t.Errorf("known of nothing: %+v", got)
	}
	c.add(1000, 1000+offset, 1000) // no way at all
	if got := c.now(1000); got != (bus.Clock{Known: true, Offset: offset, Error: 1}) {
		t.Errorf("%+v", got)
	}
	c.forget()
	c.add(0, 500+offset, 1000)
	c.add(2000, 2100+offset, 2200)
	c.add(3000, 3400+offset, 3600)
	for at, want := range map[int64]bus.Clock{2200: {Known: true, Offset: offset, Error: 101}, 2200 + 1e6: {Known: true, Offset: offset, Error: 201}, 2200 + 1e9: {Known: true, Offset: offset, Error: 100_101}} {
		if got := c.now(at); got != want {
			t.Errorf("at %d: %+v, want %+v", at, got, want)
		}
	}
	c.add(4000, 4050+offset+900, 4100) // the clock was set: who answers soonest is believed
	if got := c.now(4100); got != (bus.Clock{Known: true, Offset: offset + 900, Error: 51}) {
		t.Errorf("%+v", got)
	}
	for n := range int64(sampled) {
		c.add(5000+n*1e4, 5000+n*1e4+offset+7+2000, 5000+n*1e4+4000)
		if got := c.now(5000 + n*1e4 + 4000); (got.Error < 100) != (n < sampled-1) || n == sampled-1 && got != (bus.Clock{Known: true, Offset: offset + 7, Error: 2001}) {
			t.Errorf("%d ways later: %+v", n+1, got)
		}
	}
}

// The pause before the next attempt doubles from a quarter of a second to eight, within a half: agents do not all reconnect at once.
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

// What is lost is counted by what it was; whatever is in the queue still is not lost.
func TestContent(t *testing.T) {
	items := []bus.Item{{Snapshot: []byte("x")}, {Message: []byte("x")}, {Message: []byte("x")}, {Begins: true}, {Begins: true}, {Begins: true}}
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
		t.Errorf("%d is dropped, too", s.number)
	}
	q.answered(1, 0, false)
	if s, ok := q.next(); !ok || s.number != 3 {
		t.Errorf("%d, %v", s.number, ok)
	}
}
