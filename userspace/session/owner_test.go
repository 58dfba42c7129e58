package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// jealous notices when two goroutines touch it at the same time. It has no lock, on purpose.
type jealous struct {
	inside  atomic.Int32
	touched bool
	ticks   atomic.Int64
	fail    error
}

func (j *jealous) touch() {
	if j.inside.Add(1) != 1 {
		j.touched = true
	}
	time.Sleep(200 * time.Microsecond)
	j.inside.Add(-1)
}

func (*jealous) Configure(*ebpf.CollectionSpec) error { return nil }
func (*jealous) Needs() maps.Need                     { return 0 }
func (*jealous) Bind(*maps.Set) error                 { return nil }
func (*jealous) IntervalNS() int64                    { return int64(100 * time.Microsecond) }

func (j *jealous) Read(w report.Window, _ int) (*snapshot.Snapshot, error) {
	j.touch()
	return snapshot.New(snapshot.Head{}, w), nil
}

// nothing is what a jealous instance was made of.
type nothing struct{ algo.Config }

func (nothing) Report(*snapshot.Snapshot) (algo.Result, error) { return algo.Result{}, nil }

func (j *jealous) Tick(int64) error {
	j.touch()
	j.ticks.Add(1)
	return j.fail
}

func memberOf(name string, i algo.Instance) *member {
	return &member{selected: Selected{Descriptor: &algo.Descriptor{Name: name}, Config: nothing{}}, instance: i}
}

// closer has counts outside of the banks, and its control loop delays their reading.
type closer struct {
	*jealous
	clock *atomic.Int64
	read  int64
}

func (c closer) Tick(int64) error { return nil }

func (c *closer) Closing() error {
	c.read = c.clock.Add(int64(time.Hour))
	return nil
}

// ended is a window of all members.
func ended(w report.Window) func(*member) closed {
	return func(*member) closed { return closed{window: w} }
}

// A window ends when its counts are read, by the clock that they are read at: not when its time is up.
func TestWindowEndsWhenItsCountsAreRead(t *testing.T) {
	var clock atomic.Int64
	c := &closer{jealous: &jealous{}, clock: &clock}
	r := &runner{members: []*member{memberOf("a", c)}}
	stop, _ := r.own(t.Context())
	defer stop()
	for range 3 {
		if end, err := r.closing(clock.Load, r.members); err != nil || end != c.read {
			t.Fatalf("ends at %d, %v; counts are read at %d", end, err, c.read)
		}
	}
}

// Ticks and windows of an algorithm never overlap, and windows are in the order of the algorithms.
func TestOneOwner(t *testing.T) {
	a, b := &jealous{}, &jealous{}
	r := &runner{members: []*member{memberOf("a", a), memberOf("b", b)}}
	stop, failed := r.own(t.Context())
	for n := 0; n < 200 || a.ticks.Load() < 20 || b.ticks.Load() < 20; n++ {
		lines, err := r.lines(r.members, ended(report.Window{Number: n}))
		if err != nil || len(lines) != 2 || lines[0].Algorithm != "a" || lines[1].Algorithm != "b" {
			t.Fatalf("%+v, %v", lines, err)
		}
	}
	stop()
	ticks := a.ticks.Load()
	if lines, err := r.lines(r.members, ended(report.Window{})); err != nil || len(lines) != 2 || a.ticks.Load() != ticks {
		t.Errorf("after the end: %v, %d ticks more", err, a.ticks.Load()-ticks)
	}
	if a.touched || b.touched {
		t.Error("two goroutines were inside of one algorithm")
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}

// A control loop that fails is reported once, with its name, and the algorithm still reports its last window.
func TestAFailingControlLoop(t *testing.T) {
	broken := &jealous{fail: errors.New("no such map")}
	r := &runner{members: []*member{memberOf("broken", broken), memberOf("well", &jealous{})}}
	ctx, cancel := context.WithCancel(t.Context())
	stop, failed := r.own(ctx)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "control broken: no such map") {
		t.Errorf("reported %v", err)
	}
	cancel()
	if lines, err := r.lines(r.members, ended(report.Window{})); err != nil || len(lines) != 2 || broken.ticks.Load() != 1 {
		t.Errorf("%d lines, %d ticks, %v", len(lines), broken.ticks.Load(), err)
	}
	stop()
}

// talker sends one message per call and answers received ones.
type talker struct {
	jealous
	published atomic.Uint64
	heard     chan string
	many      bool
}

func (k *talker) Send(int64) ([][]byte, error) {
	k.touch()
	if k.many {
		return append(slices.Repeat([][]byte{{1}}, algo.MaxMessages+3), make([]byte, algo.MaxMessage+1)), nil
	}
	return [][]byte{fmt.Append(nil, k.published.Add(1))}, nil
}

func (k *talker) Receive(data []byte) error {
	k.touch()
	if string(data) == "bad" {
		return errors.New("nonsense")
	}
	k.heard <- string(data)
	return nil
}

// An algorithm with messages begins, sends everything of a window before the window is published, receives messages, and begins again when
// something is missing. Nothing of that meets a tick.
func TestSpeech(t *testing.T) {
	k := &talker{heard: make(chan string, 1)}
	var mu sync.Mutex
	var published []Message
	var notices []string
	r := &runner{cfg: Config{Publish: func(s Message) { mu.Lock(); defer mu.Unlock(); published = append(published, s) },
		Notice: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, fmt.Sprintf(format, args...))
		}}}
	m := memberOf("talker", k)
	m.messenger = r.messenger(m)
	r.members = []*member{m, memberOf("mute", &jealous{})}
	stop, _ := r.own(t.Context())
	s := &Session{run: r}
	for n := range 30 {
		if _, err := r.lines(r.members, ended(report.Window{End: int64(n)})); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		if !slices.ContainsFunc(published, func(s Message) bool { return s.Time == int64(n) && len(s.Data) > 0 }) {
			t.Errorf("the message at the end of window %d is after it", n)
		}
		mu.Unlock()
		s.Receive("mute", []byte("nobody"))
		s.Receive("talker", []byte("bad"))
		s.Receive("talker", []byte("hello"))
		if text := <-k.heard; text != "hello" {
			t.Errorf("received %q", text)
		}
	}
	s.Renew()
	if _, err := r.lines(r.members, ended(report.Window{})); err != nil {
		t.Fatal(err)
	}
	stop()
	begun := 0
	for _, s := range published {
		if s.Begins {
			begun++
		}
	}
	if begun != 2 || !published[0].Begins || k.touched || len(notices) != 30 || notices[0] != "talker refuses its coordinator's settings: nonsense" {
		t.Errorf("%d beginnings, touched %v, %q", begun, k.touched, notices)
	}
	// A removed instance receives nothing; messages beyond the limit are counted.
	s.Receive("talker", []byte("hello"))
	k.many, published = true, nil
	if err := errors.Join(m.messenger.send(1), m.messenger.send(2)); err != nil {
		t.Fatal(err)
	}
	if len(published) != 2*algo.MaxMessages || published[algo.MaxMessages].Lost != 4 || published[0].Lost != 0 || len(k.heard) != 0 {
		t.Errorf("%d messages, lost before %d", len(published), published[algo.MaxMessages].Lost)
	}
	for range 2 * maxReceived { // an owner that is busy is not waited for
		m.messenger.receive([]byte("x"))
	}
	if !m.messenger.missed.Load() {
		t.Error("a lost message is not counted")
	}
}
