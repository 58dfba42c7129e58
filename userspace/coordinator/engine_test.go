package coordinator

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/bus"
	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// sums is an algorithm of these tests alone: a number, and flows with how much each had. With its coordinator part it receives messages.
type sums struct{}

func (sums) Configure(*ebpf.CollectionSpec) error                { return nil }
func (sums) Needs() maps.Need                                    { return 0 }
func (sums) Bind(*maps.Set) error                                { return nil }
func (sums) Read(report.Window, int) (*snapshot.Snapshot, error) { return &snapshot.Snapshot{}, nil }

// sumsConfig is its configuration; receivedConfig has the coordinator part.
type sumsConfig struct{}

func (sumsConfig) New(algo.Env) (algo.Instance, error) { return sums{}, nil }

func (sumsConfig) Report(s *snapshot.Snapshot) (algo.Result, error) {
	r := s.Read()
	n := r.Words("n", 1)
	t := report.Table{Name: "flows", Columns: []report.Column{{Name: "flow", Label: true}, {Name: "packets", Unit: report.PacketUnit}}}
	for _, w := range r.Rows("flows", 2) {
		t.Rows = append(t.Rows, []any{w[0], w[1]})
	}
	if n[0] == 1<<40 {
		panic("numbers that no data plane counts")
	}
	return algo.Result{Body: report.Body{Values: []report.Value{{Name: "n", Value: n[0]}}, Tables: []report.Table{t}}, Used: n[0], Lost: map[string]uint64{}}, r.Err()
}

func (sumsConfig) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if err := algo.SameHashes(a, b); err != nil {
		return nil, err
	}
	s := snapshot.Together(a, b)
	s.Words["n"] = snapshot.Sum(a.Words["n"], b.Words["n"])
	s.Words["flows"] = slices.Concat(a.Words["flows"], b.Words["flows"])
	return s, nil
}

type receivedConfig struct{ sumsConfig }

func (receivedConfig) Coordinate(algo.Env) (algo.Coordinator, error) { return &listener{}, nil }

// fixed is a Maker of a configuration without parameters.
func fixed[C algo.Config](c C) algo.Maker {
	return algo.Typed(func(algo.Values, algo.Setup) (C, error) { return c, nil })
}

// listener is the coordinator part: it counts received messages, and answers every host.
type listener struct {
	received, missed uint64
	outgoing         []algo.Outgoing
	left             []string
}

func (l *listener) Receive(s algo.Incoming) error {
	if string(s.Data) == "bad" {
		return fmt.Errorf("a bad message")
	}
	l.received++
	l.missed += s.Missed
	l.outgoing = append(l.outgoing, algo.Outgoing{Host: s.Host, Data: append([]byte("re: "), s.Data...)})
	return nil
}
func (l *listener) Joined(host string) {
	l.outgoing = append(l.outgoing, algo.Outgoing{Host: host, Data: []byte("welcome")})
}
func (l *listener) Left(host string) { l.left = append(l.left, host) }
func (l *listener) Send(int64) []algo.Outgoing {
	t := l.outgoing
	l.outgoing = nil
	return t
}
func (l *listener) Checkpoint() ([]byte, error) { return fmt.Append(nil, l.received), nil }
func (l *listener) Restore(data []byte) error {
	_, err := fmt.Sscan(string(data), &l.received)
	return err
}
func (l *listener) Report(report.Window) (algo.Result, error) {
	return algo.Result{Body: report.Body{Values: []report.Value{{Name: "received", Value: l.received}}}}, nil
}

func init() {
	d := algo.Descriptor{Name: "sums", Summary: "a sum", Layout: 1, Params: []algo.Param{{Key: "size", Type: algo.Int, Default: "16", Min: "1", Max: "1024", Help: "size"}},
		Spec:   func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil },
		Config: fixed(sumsConfig{})}
	algo.Register(&d)
	received := d
	received.Name = "received"
	received.Config = fixed(receivedConfig{})
	algo.Register(&received)
}

const seed = 77

// bench is an engine in virtual time.
type bench struct {
	t     *testing.T
	e     *engine
	now   time.Time
	lines []report.Line
	cfg   *config.Config
}

const second = int64(time.Second)

func newBench(t *testing.T, more string) *bench {
	t.Helper()
	text := "measurements:\n  - {name: m, window: 1s, seed: 77, wait: 500ms, algorithms: {sums: , received: }" + more + "}\n"
	cfg, err := config.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: time.Unix(1000, 0), cfg: cfg}
	b.start(state{})
	return b
}

// A coordinator without connected agents gives no answers, and neither does one whose agents are all silent.
func TestHealthNamesNoHost(t *testing.T) {
	b := newBench(t, "")
	health := func() Health {
		h := Health{Status: good, Leading: true, Refused: map[string]uint64{}}
		b.e.health(&h, newGate(1, 1, 1), b.now)
		return h
	}
	if h := health(); h.Status != failing || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "no agent has connected") {
		t.Errorf("%+v", h)
	}
	b.host("a").hello()
	if h := health(); h.Status != good || len(h.Reasons) != 0 {
		t.Errorf("%+v", h)
	}
	b.now = b.now.Add(time.Hour)
	b.tick()
	if h := health(); h.Status != failing || !strings.Contains(strings.Join(h.Reasons, "; "), "all 1 agents are silent") {
		t.Errorf("%+v", h)
	}
}

// start is a coordinator that begins with what is known.
func (b *bench) start(s state) {
	b.t.Helper()
	var err error
	if b.e, err = newEngine(b.cfg, nil, slog.New(slog.NewTextHandler(io.Discard, nil)), func(l report.Line) { b.lines = append(b.lines, l) }); err != nil {
		b.t.Fatal(err)
	}
	b.e.lead(uint64(b.now.UnixNano()), b.now, s)
}

func (b *bench) tick() map[string]*bus.Answer { return b.e.tick(b.now) }

// host is an agent as it should be.
type host struct {
	b           *bench
	name        string
	incarnation uint64
	number      uint64
	oldest      uint64
	skew        int64 // its clock less the coordinator's
}

func (b *bench) host(name string) *host { return &host{b: b, name: name, incarnation: 1, oldest: 1} }

func (h *host) hello() *bus.Answer {
	h.b.t.Helper()
	now := h.b.now.UnixNano() + h.skew
	data, err := bus.Encode(bus.Hello{Version: bus.Version, Incarnation: h.incarnation, Time: now, Number: h.number, Oldest: h.oldest, Clock: h.clock()})
	if err != nil {
		h.b.t.Fatal(err)
	}
	return h.b.e.receive(h.name, message{bus.HelloKind, data}, h.b.now)
}

func (h *host) clock() bus.Clock { return bus.Clock{Known: true, Offset: -h.skew} }

func (h *host) snapshot(index int64, n uint64, flows ...uint64) *snapshot.Snapshot {
	start := (1000+index)*second + h.skew
	s := snapshot.New(snapshot.Head{Algorithm: "sums", Layout: 1, Params: map[string]string{"size": "16"}, Hashes: snapshot.HashMark(seed), WindowNS: second},
		report.Window{Start: start, End: start + second})
	s.Words["n"], s.Words["flows"] = snapshot.Words{n}, flows
	s.Packets.Seen = n
	return s
}

func (h *host) item(s *snapshot.Snapshot) bus.Item {
	h.b.t.Helper()
	data, err := s.Encode()
	if err != nil {
		h.b.t.Fatal(err)
	}
	return bus.Item{Measurement: "m", Instance: "m", Algorithm: s.Algorithm, Snapshot: data}
}

func (h *host) batch(items ...bus.Item) []byte {
	h.b.t.Helper()
	h.number++
	data, err := bus.Encode(bus.Batch{Version: bus.Version, Incarnation: h.incarnation, Number: h.number, Oldest: h.oldest, Clock: h.clock(), Items: items})
	if err != nil {
		h.b.t.Fatal(err)
	}
	return data
}

func (h *host) send(data []byte) *bus.Answer {
	return h.b.e.receive(h.name, message{bus.DataKind, data}, h.b.now)
}

// window sends what a host has counted in a window.
func (h *host) window(index int64, n uint64, flows ...uint64) {
	h.send(h.batch(h.item(h.snapshot(index, n, flows...))))
}

func (b *bench) at(seconds float64) { b.now = time.Unix(1000, 0).Add(time.Duration(seconds * 1e9)) }

// answers are the sums by window.
func (b *bench) answers() map[int64]uint64 {
	all := map[int64]uint64{}
	for _, l := range b.lines {
		index := l.Window.Start/second - 1000
		if _, twice := all[index]; twice {
			b.t.Errorf("window %d is answered twice", index)
		}
		all[index] = l.Report.Values[0].Value.(uint64)
	}
	return all
}

func (b *bench) agent(name string) Known {
	b.t.Helper()
	h := Health{Refused: map[string]uint64{}}
	b.e.health(&h, newGate(1, 1, 1), b.now)
	for _, a := range h.Agents {
		if a.Name == name {
			return a
		}
	}
	b.t.Fatalf("no agent %s", name)
	return Known{}
}

// Windows of hosts become one answer: as soon as all have arrived, and without missing hosts, which are named.
func TestOneAnswer(t *testing.T) {
	b := newBench(t, "")
	one, two := b.host("one"), b.host("two")
	two.skew = 500e6
	for _, h := range []*host{one, two} {
		if a := h.hello(); a.Plan == nil || a.Plan.Measurements[0].Seed != seed || a.Time != b.now.UnixNano() {
			t.Fatalf("%+v", a)
		}
	}
	one.window(0, 5)
	two.window(0, 7)
	if b.at(1.4); len(b.tick()) == 0 || len(b.lines) != 0 {
		t.Error("other hosts are not known yet, and it did not wait")
	}
	b.at(1.5)
	b.tick()
	one.window(1, 1)
	if b.at(2.3); b.tick() == nil || len(b.lines) != 1 {
		t.Error("it was not waited for a host")
	}
	two.window(1, 2)
	b.tick()
	if got := b.answers(); got[0] != 12 || got[1] != 3 {
		t.Errorf("%v", got)
	}
	one.window(2, 4)
	b.at(3.5)
	b.tick()
	l := b.lines[len(b.lines)-1]
	if l.Hosts.Merged != 1 || l.Hosts.Missing != 1 || l.Hosts.MissingNames[0] != "two" || l.Lost["hosts_missing"] != 1 {
		t.Errorf("%+v %v", l.Hosts, l.Lost)
	}
	two.window(2, 4)
	if k := b.agent("two"); k.Late != 1 || k.Lost != 0 {
		t.Errorf("%+v", k)
	}
	if got := b.answers(); got[2] != 4 {
		t.Errorf("late data changed an answer: %v", got)
	}
}

// An algorithm with windows of another length than the measurement's has answers of its own length; windows of the measurement's length are refused.
func TestOwnLength(t *testing.T) {
	b := newBench(t, ", windows: {sums: 2s}")
	one, two := b.host("one"), b.host("two")
	for _, h := range []*host{one, two} {
		if c := h.hello().Plan.Measurements[0].Algorithms; c[0].WindowNS != 2*second || c[1].WindowNS != 0 {
			t.Fatalf("the plan has windows of %d and %d ns", c[0].WindowNS, c[1].WindowNS)
		}
		for index := range int64(2) {
			s := h.snapshot(2*index, 5+uint64(index))
			s.WindowNS, s.Window.End = 2*second, s.Window.Start+2*second
			h.send(h.batch(h.item(s)))
		}
		h.window(0, 1000)
	}
	b.at(1.9)
	if b.tick(); len(b.lines) != 0 {
		t.Errorf("%d answers before the end of the first window", len(b.lines))
	}
	b.at(7)
	b.tick()
	var got []string
	for _, l := range b.lines {
		got = append(got, fmt.Sprintf("%d to %d: %v", l.Window.Start/second-1000, l.Window.End/second-1000, l.Report.Values[0].Value))
	}
	if want := []string{"0 to 2: 10", "2 to 4: 12"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if k := b.agent("one"); k.Refused[foreign] != 1 || k.Skewed != 0 || k.Late != 0 {
		t.Errorf("%+v", k)
	}
}

// A window that is off by more than a hundredth is marked; one whose host's clock is off, and known to be, is not.
func TestSkew(t *testing.T) {
	for off, want := range map[int64]int{0: 0, 9e6: 0, -9e6: 0, 11e6: 1, -11e6: 1, 300e6: 1} {
		b := newBench(t, "")
		h := b.host("one")
		h.skew = 500e6
		h.hello()
		s := h.snapshot(0, 1)
		s.Window.Start, s.Window.End = s.Window.Start+off, s.Window.End+off
		h.send(h.batch(h.item(s)))
		b.at(2)
		b.tick()
		if len(b.lines) != 1 || b.lines[0].Hosts.Skewed != want {
			t.Errorf("off by %d: %d lines", off, len(b.lines))
		}
	}
}

// Everything that is refused is counted with its reason, and changes nothing.
func TestRefusals(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	b.host("absent").send(b.host("absent").batch(h.item(h.snapshot(0, 1)))) // it has not sent a hello
	h.hello()
	h.window(0, 5)
	change := func(f func(*snapshot.Snapshot)) func() []byte {
		return func() []byte {
			s := h.snapshot(0, 100)
			f(s)
			return h.batch(h.item(s))
		}
	}
	item := func(f func(*bus.Item)) func() []byte {
		return func() []byte {
			i := h.item(h.snapshot(0, 100))
			f(&i)
			return h.batch(i)
		}
	}
	first := h.batch(h.item(h.snapshot(0, 100)))
	h.number--
	for name, c := range map[string]struct {
		reason string
		data   func() []byte
	}{
		"another seed":              {foreign, change(func(s *snapshot.Snapshot) { s.Hashes++ })},
		"another parameter":         {foreign, change(func(s *snapshot.Snapshot) { s.Params = map[string]string{"size": "17"} })},
		"another window":            {foreign, change(func(s *snapshot.Snapshot) { s.WindowNS *= 2 })},
		"another hash":              {foreign, change(func(s *snapshot.Snapshot) { s.CRC = true })},
		"merged":                    {foreign, change(func(s *snapshot.Snapshot) { s.Parts = 2 })},
		"a replay":                  {foreign, change(func(s *snapshot.Snapshot) { s.Replay = true })},
		"another layout":            {malformed, change(func(s *snapshot.Snapshot) { s.Layout = 9 })},
		"missing words":             {malformed, change(func(s *snapshot.Snapshot) { delete(s.Words, "n") })},
		"a panic":                   {malformed, change(func(s *snapshot.Snapshot) { s.Words["n"][0] = 1 << 40 })},
		"there already":             {replayed, change(func(s *snapshot.Snapshot) { s.Window.Start += 1000 })},
		"of tomorrow":               {untimely, change(func(s *snapshot.Snapshot) { s.Window.Start += 86400 * second; s.Window.End += 86400 * second })},
		"of last week":              {untimely, change(func(s *snapshot.Snapshot) { s.Window.Start -= 7200 * second; s.Window.End -= 7200 * second })},
		"of two seconds":            {untimely, change(func(s *snapshot.Snapshot) { s.Window.Start -= second })},
		"another algorithm":         {foreign, item(func(i *bus.Item) { i.Algorithm = "lean" })},
		"another measurement":       {foreign, item(func(i *bus.Item) { i.Measurement = "x" })},
		"another's instance":        {foreign, item(func(i *bus.Item) { i.Instance = "mm" })},
		"no snapshot":               {malformed, item(func(i *bus.Item) { i.Snapshot = []byte("no") })},
		"nobody listens":            {foreign, item(func(i *bus.Item) { i.Snapshot, i.Message, i.Number = nil, []byte("x"), 1 })},
		"a bad message":             {malformed, item(func(i *bus.Item) { i.Algorithm, i.Snapshot, i.Message, i.Number = "received", nil, []byte("bad"), 1 })},
		"no message":                {malformed, func() []byte { return []byte{1, 2, 3} }},
		"after the end":             {malformed, func() []byte { h.number++; return append(h.batch(), 0) }},
		"of an unknown incarnation": {stranger, func() []byte { h.incarnation++; d := h.batch(); h.incarnation--; h.number--; return d }},
		"empty":                     {malformed, func() []byte { return nil }},
		"a hello of ourselves":      {malformed, func() []byte { d, _ := bus.Encode(bus.Hello{Version: bus.Version, Incarnation: 1}); return d }},
	} {
		before := b.agent("one").Refused[c.reason]
		number := h.number
		a := h.send(c.data())
		if got := b.agent("one").Refused[c.reason]; got != before+1 {
			t.Errorf("%s: %d refused as %s, %d before; %v", name, got, c.reason, before, b.agent("one").Refused)
		}
		if a == nil || !strings.HasPrefix(a.Complaint, c.reason) {
			t.Errorf("%s: it is sent %+v", name, a)
		}
		if a != nil {
			h.number = max(number, a.Received)
		}
	}
	if again := b.agent("one").Again; h.send(first) == nil || b.agent("one").Again != again+1 {
		t.Error("a batch that arrived before is not counted")
	}
	b.at(2)
	b.tick()
	if got := b.answers(); got[0] != 5 {
		t.Errorf("%v", got)
	}
	if b.e.refused[stranger] != 1 {
		t.Errorf("%v", b.e.refused)
	}
}

// A restarted agent starts from the beginning; messages of its earlier incarnation no longer count.
func TestIncarnations(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	h.hello()
	h.window(0, 1)
	old := h.batch(h.item(h.snapshot(1, 50)))
	oldHello, _ := bus.Encode(bus.Hello{Version: bus.Version, Incarnation: 1, Oldest: 1})
	h.hello() // announces a second batch, which never arrives
	h.incarnation, h.number, h.oldest = 2, 0, 1
	h.hello()
	h.window(1, 3)
	h.send(old)
	b.e.receive("one", message{bus.HelloKind, oldHello}, b.now)
	b.at(3)
	b.tick()
	k := b.agent("one")
	if got := b.answers(); got[0] != 1 || got[1] != 3 || k.Refused[replayed] != 2 || k.Lost != 1 {
		t.Errorf("%v, %+v", got, k)
	}
}

// Batches arrive in order or are requested again; what an agent cannot send any more is counted as lost, once.
func TestGaps(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	h.hello()
	b.at(3)
	first, second, third := h.batch(h.item(h.snapshot(0, 1))), h.batch(h.item(h.snapshot(1, 10))), h.batch(h.item(h.snapshot(2, 100)))
	h.send(first)
	if a := h.send(third); a == nil || a.Received != 1 {
		t.Errorf("after a gap: %+v", a)
	}
	h.send(second)
	h.send(second)
	if a := h.send(third); a != nil && a.Received != 3 {
		t.Errorf("%+v", a)
	}
	h.number, h.oldest = 9, 9 // 4 to 8 left the buffer
	if a := h.hello(); a.Received != 8 {
		t.Errorf("%+v", a)
	}
	h.number = 8
	h.window(3, 1000)
	if k := b.agent("one"); k.Lost != 5 || k.Again != 1 {
		t.Errorf("%+v", k)
	}
	for s := 3.; s < 6; s++ {
		b.at(s)
		b.tick()
	}
	if got := b.answers(); got[0] != 1 || got[1] != 10 || got[2] != 100 || got[3] != 1000 {
		t.Errorf("%v", got)
	}
}

// A coordinator that is killed at any moment answers every window with everything, or not at all; agents that keep what was not used lose
// nothing, and nothing counts twice.
func TestRestarts(t *testing.T) {
	for run := range 200 {
		rng := rand.New(rand.NewPCG(uint64(run), 7))
		b := newBench(t, "")
		hosts := []*host{b.host("one"), b.host("two"), b.host("three")}
		pending := map[string]map[uint64][]byte{} // what each may have to send again
		var known state
		for _, h := range hosts {
			pending[h.name] = map[uint64][]byte{}
			h.hello()
		}
		for index := range int64(12) {
			for _, h := range hosts {
				data := h.batch(h.item(h.snapshot(index, 1)))
				pending[h.name][h.number] = data
				if rng.IntN(4) > 0 { // else the network has lost it
					h.send(data)
				}
			}
			b.at(float64(index) + 1 + .4*rng.Float64())
			if rng.IntN(3) == 0 { // killed: unsaved state is lost
				b.start(known)
			}
			for _, h := range hosts { // each asks, and sends again what is missing
				a := h.hello()
				for n := a.Received + 1; n <= h.number; n++ {
					h.send(pending[h.name][n])
				}
				for n := range pending[h.name] {
					if n <= a.Used {
						delete(pending[h.name], n)
					}
				}
				h.oldest = h.number + 1
				for n := range pending[h.name] {
					h.oldest = min(h.oldest, n)
				}
			}
			b.at(float64(index) + 1.45)
			b.tick()
			if rng.IntN(3) > 0 {
				if s, dirty := b.e.changed(0); dirty {
					known = s
					b.e.stored(s, true)
				}
			}
		}
		b.at(20)
		b.tick()
		seen := map[int64]uint64{}
		for _, l := range b.lines {
			index := l.Window.Start/second - 1000
			if n := l.Report.Values[0].Value.(uint64); n != 3 {
				t.Fatalf("run %d: window %d has %d of 3 windows", run, index, n)
			}
			seen[index]++
		}
		if len(seen) != 12 {
			t.Fatalf("run %d: %d windows are answered", run, len(seen))
		}
	}
}

// Sets of hosts have separate answers; flows that hosts of one set have counted alike are reported.
func TestVantage(t *testing.T) {
	b := newBench(t, ", vantage: [{name: edge, hosts: ['e*']}, {name: core, hosts: [core]}]")
	for i, name := range []string{"e1", "e2", "core", "other"} {
		h := b.host(name)
		h.hello()
		switch name {
		case "e1":
			h.window(0, 10, 1, 1000, 2, 500, 3, 90)
		case "e2":
			h.window(0, 20, 1, 990, 2, 20, 4, 90)
		default:
			h.window(0, uint64(i))
		}
	}
	b.at(2)
	b.tick()
	if len(b.lines) != 2 || b.lines[0].Key() != "m/core" || b.lines[1].Instance != "m" || b.lines[1].Vantage != "edge" || b.lines[1].Report.Values[0].Value != uint64(30) {
		t.Fatalf("%+v", b.lines)
	}
	if h := b.lines[1].Hosts; h.FlowsShared != 2 || h.FlowsTwice != 1 || strings.Join(h.TwiceNames, " ") != "e1 e2" || h.Vantage != "declared sets" {
		t.Errorf("%+v", h)
	}
	if k := b.agent("other"); k.Refused[foreign] != 1 {
		t.Errorf("%+v", k)
	}
}

// An algorithm's coordinator part receives its instances' messages, answers them, and adds to the report.
func TestPart(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	h.hello()
	s := h.snapshot(0, 1)
	s.Algorithm = "received"
	h.send(h.batch(bus.Item{Measurement: "m", Instance: "m", Algorithm: "received", Message: []byte("a"), Number: 1}, h.item(s)))
	b.at(2)
	answers := b.tick()
	if m := answers["one"].Messages; len(m) != 1 || string(m[0].Data) != "re: a" || m[0].Algorithm != "received" {
		t.Errorf("%+v", answers["one"])
	}
	if l := b.lines[0]; l.Algorithm != "received" || l.Report.Values[len(l.Report.Values)-1].Value != uint64(1) {
		t.Errorf("%+v", l.Report)
	}
}

// say sends an instance's message in a separate batch.
func (h *host) message(instance string, number uint64, text string) {
	i := bus.Item{Measurement: "m", Instance: instance, Algorithm: "received", Message: []byte(text), Number: number, Time: h.b.now.UnixNano() + h.skew}
	if text == "" {
		i = bus.Item{Measurement: "m", Instance: instance, Algorithm: "received", Begins: true}
	}
	h.send(h.batch(i))
}

func (b *bench) part() *listener {
	return b.e.parts[stream{measurement: "m", algorithm: "received"}].Coordinator.(*listener)
}

// Missing messages of an instance are counted, duplicates are refused, and a new instance is sent everything. A coordinator that
// restarts knows what it had received.
func TestMessages(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	h.skew = 3 * second
	h.hello()
	h.message("m", 1, "a")
	h.message("m", 5, "b")
	h.message("m", 5, "b")
	h.message("m/eth0", 2, "c")
	h.message("m/eth0", 0, "")
	if k := b.agent("one"); k.Missed != 4 || k.Refused[replayed] != 1 || b.part().received != 3 || b.part().missed != 4 {
		t.Errorf("%+v, %+v", k, b.part())
	}
	var sent []string
	out := b.tick()["one"]
	for _, m := range out.Messages {
		sent = append(sent, m.Instance+" "+string(m.Data))
	}
	if strings.Join(sent, ", ") != "m re: a, m re: b, m/eth0 re: c, m/eth0 welcome" || out.Sent != 4 {
		t.Errorf("%q, %d", sent, out.Sent)
	}
	for _, late := range []int64{0, 2 * second, -2 * 3600 * second} {
		before := h.skew
		h.skew += late
		data, _ := bus.Encode(bus.Batch{Version: bus.Version, Incarnation: h.incarnation, Number: h.number + 1, Oldest: 1, Clock: bus.Clock{Known: true, Offset: -before},
			Items: []bus.Item{{Measurement: "m", Instance: "m", Algorithm: "received", Message: []byte("d"), Number: h.number + 1, Time: b.now.UnixNano() + h.skew}}})
		h.number++
		h.send(data)
		h.skew = before
	}
	if k := b.agent("one"); k.Refused[untimely] != 2 || b.part().received != 4 {
		t.Errorf("%+v, %+v", k, b.part())
	}
	s, dirty := b.e.changed(time.Hour)
	if _, again := b.e.changed(time.Hour); !dirty || again {
		t.Errorf("dirty %v, again %v", dirty, again)
	}
	b.start(s)
	h.hello()
	h.message("m", 9, "e")
	if k := b.agent("one"); k.Missed != 6 || b.part().received != 5 || b.part().missed != 2 { // those that were refused are missing
		t.Errorf("%+v, %+v", k, b.part())
	}
	b.at(4000)
	b.host("two").hello()
	b.tick()
	if left := strings.Join(b.part().left, " "); left != "one one/eth0" {
		t.Errorf("%q are missing", left)
	}
}

// More than one answer can contain is sent with the next ones, in order, and the excess is lost and counted.
func TestManyMessages(t *testing.T) {
	b := newBench(t, "")
	h := b.host("one")
	h.hello()
	for n := range mostWaiting + 10 {
		b.part().outgoing = append(b.part().outgoing, algo.Outgoing{Host: "one", Data: make([]byte, 400)}, algo.Outgoing{Host: "nobody", Data: []byte("x")})
		b.part().outgoing[len(b.part().outgoing)-2].Data[0] = byte(n)
	}
	sent, next := uint64(0), byte(10)
	for {
		a := b.tick()["one"]
		if a == nil {
			break
		}
		if sent += uint64(len(a.Messages)); len(a.Messages) == 0 || len(a.Messages) > bus.MaxItems || a.Sent != sent+10 {
			t.Fatalf("%d messages, %d sent", len(a.Messages), a.Sent)
		}
		for _, m := range a.Messages {
			if m.Data[0] != next {
				t.Fatalf("message %d, want %d", m.Data[0], next)
			}
			next++
		}
	}
	if sent != mostWaiting {
		t.Errorf("%d sent", sent)
	}
}

// A host without messages is silent, then forgotten; the coordinator does not wait for it.
func TestSilence(t *testing.T) {
	b := newBench(t, "")
	one, two := b.host("one"), b.host("two")
	one.hello()
	two.hello()
	one.window(0, 1)
	two.window(0, 1)
	b.at(20)
	one.hello()
	b.tick()
	if k := b.agent("two"); k.State != "silent" || b.agent("one").State != "fresh" {
		t.Errorf("%+v", k)
	}
	b.at(4000)
	one.hello()
	b.tick()
	if len(b.e.agents) != 1 {
		t.Errorf("%d agents", len(b.e.agents))
	}
}

// No agent sends more than its share, and one that tries does not delay others.
func TestGateAndInbox(t *testing.T) {
	now := time.Unix(1000, 0)
	g, in := newGate(20, 2, 100), newInbox()
	passed, ends := 0, 0
	for range 10000 {
		reason, end := g.admit("bad", 10, now)
		if reason == "" {
			passed++
		}
		if end {
			ends++
		}
	}
	if passed != 200 || ends != 1 || g.counts("bad")[flood] != 9800 || !g.held("bad").After(now) {
		t.Errorf("%d passed, %d ends, %v", passed, ends, g.counts("bad"))
	}
	if reason, _ := g.admit("good", 10, now); reason != "" {
		t.Errorf("another one is refused: %s", reason)
	}
	if reason, _ := g.admit("good", 101, now); reason != oversized {
		t.Errorf("%q", reason)
	}
	if reason, _ := g.admit("third", 10, now); reason != stranger {
		t.Errorf("%q", reason)
	}
	if reason, _ := g.admit("third", 10, now.Add(2*time.Minute)); reason != "" || g.counts("")[flood] != 9800 {
		t.Errorf("%q, %v", reason, g.counts(""))
	}
	n := 0
	for in.put("bad", message{data: []byte("x")}) {
		n++
	}
	in.put("good", message{data: []byte("y")})
	if n != mailboxMessages {
		t.Errorf("%d messages fit", n)
	}
	in.take()
	if name, _, _ := in.take(); name != "good" {
		t.Errorf("%s is next", name)
	}
}

// Saved state is used only where it adds something: agents drop what was used, and no window is answered twice.
func TestSavedStateIsUsedWhereItAdds(t *testing.T) {
	b := newBench(t, "")
	one, two := b.host("one"), b.host("two")
	one.hello()
	two.hello()
	one.window(0, 1)
	b.at(2)
	b.tick()
	s, dirty := b.e.changed(time.Hour)
	if !dirty || s.Agents["one"].Used != 1 || s.Agents["two"].Used != 0 {
		t.Fatalf("%v, %+v", dirty, s)
	}
	b.e.stored(s, false)
	if answers := b.tick(); len(answers) != 0 {
		t.Errorf("what was not stored is sent: %+v", answers)
	}
	if again, dirty := b.e.changed(0); !dirty || again.Agents["one"].Used != 1 {
		t.Errorf("what was not stored is no longer stored: %+v", again)
	}
	b.e.stored(s, true)
	if answers := b.tick(); len(answers) != 1 || answers["one"].Used != 1 || answers["one"].Received != 1 {
		t.Errorf("%+v", answers)
	}
	b.e.stored(s, true)
	if answers := b.tick(); len(answers) != 0 {
		t.Errorf("sent again: %+v", answers)
	}
	one.window(1, 1)
	b.at(3)
	b.tick()
	b.e.stored(s, true) // of before
	if a := one.hello(); a.Used != 1 || a.Received != 2 {
		t.Errorf("%+v", a)
	}
}

// What a window may be, to the nanosecond: one and a half times as long, an hour where it is stretched, not after the next one nor reaching further, not an hour old, off by a hundredth, and not overlapping what the host has
// sent before.
func TestWindowEdges(t *testing.T) {
	const at = 5000 * second
	for what, c := range map[string]struct {
		start, end      int64 // from the middle of a measurement at 5000 s
		refused, skewed int
	}{
		"right": {0, second, 0, 0}, "long": {0, 3 * second / 2, 0, 1}, "too long": {0, 3*second/2 + 1, 1, 0}, "stretched": {-3599 * second, second, 0, 1}, "stretched too far": {-3599*second - 1, second, 1, 0}, "stretched ahead": {0, 5 * second / 2, 0, 1}, "stretched too far ahead": {0, 5*second/2 + 1, 1, 0},
		"next": {second, 2 * second, 0, 0}, "after it": {second + 1, 2 * second, 1, 0}, "old": {-3601 * second, -3600 * second, 0, 0}, "too old": {-3601 * second, -3600*second - 1, 1, 0},
		"off": {second / 100, second, 0, 0}, "too far off": {second/100 + 1, second, 0, 1}, "early": {-second / 100, second, 0, 0}, "too early": {-second/100 - 1, second, 0, 1},
		"short": {0, 99 * second / 100, 0, 0}, "too short": {0, 99*second/100 - 1, 0, 1}, "late": {0, 101 * second / 100, 0, 0}, "too late": {0, 101*second/100 + 1, 0, 1},
	} {
		b := newBench(t, "")
		b.now = time.Unix(0, at)
		h := b.host("one")
		h.hello()
		s := h.snapshot(0, 1)
		s.Window.Start, s.Window.End, s.Window.Stretched = at+c.start, at+c.end, strings.HasPrefix(what, "stretched")
		h.send(h.batch(h.item(s)))
		if k := b.agent("one"); int(k.Refused[untimely]) != c.refused || int(k.Skewed) != c.skewed || int(k.Windows) != 1-c.refused {
			t.Errorf("%s: %+v", what, k)
		}
	}
	b := newBench(t, "")
	b.now = time.Unix(1005, 0)
	h := b.host("one")
	h.hello()
	for n, w := range [][2]int64{{1000 * second, 1001 * second}, {1001 * second, 1004*second + 9*second/1000}, {1004*second + 9*second/1000, 1005 * second}} { // the second is of three periods: it is in the last one
		s := h.snapshot(0, 1)
		s.Window.Start, s.Window.End, s.Window.Number, s.Window.Stretched = w[0], w[1], n, n == 1
		h.send(h.batch(h.item(s)))
	}
	var periods []int64
	for _, f := range b.e.streams {
		for index := range f.open {
			periods = append(periods, index)
		}
	}
	slices.Sort(periods)
	if want := []int64{1000, 1003, 1004}; !slices.Equal(periods, want) {
		t.Errorf("windows in periods %v, want %v", periods, want)
	}
	for over, twice := range map[int64]uint64{0: 0, second / 200: 0, second/200 + 1000: 1} { // windows of half a second each, which lie over each other so far
		b := newBench(t, "")
		h := b.host("one")
		h.hello()
		for n, start := range []int64{0, second/2 - over} {
			s := h.snapshot(0, 1)
			s.Window.Start, s.Window.End, s.Window.Number = 1000*second+start, 1000*second+start+second/2, n
			h.send(h.batch(h.item(s)))
		}
		if k := b.agent("one"); k.Refused[replayed] != twice {
			t.Errorf("%d ns over each other: %+v", over, k)
		}
	}
}

// When answers are due, when agents are answered, and how many there may be: to the moment, and to the number.
func TestDue(t *testing.T) {
	b := newBench(t, "")
	one, two := b.host("one"), b.host("two")
	one.hello()
	two.hello()
	answered := func(seconds float64) int {
		b.at(seconds)
		b.tick()
		return len(b.lines)
	}
	one.window(0, 1)
	two.window(0, 1)
	if n := answered(1.499999); n != 0 { // in the first window the participants are unknown
		t.Errorf("%d answers before the wait is over", n)
	}
	if n := answered(1.5); n != 1 {
		t.Errorf("%d answers when it is", n)
	}
	one.window(1, 1)
	if n := answered(2.499999); n != 1 {
		t.Errorf("%d answers without the other", n)
	}
	two.window(1, 1)
	if n := answered(1.999999); n != 1 {
		t.Errorf("%d answers before the window's end", n)
	}
	if n := answered(2); n != 2 {
		t.Errorf("%d answers when all have arrived", n)
	}
	one.window(2, 1)
	if n := answered(15); n != 3 {
		t.Errorf("%d answers", n)
	}
	if one.hello(); b.agent("two").State != "fresh" {
		t.Error("silent as soon as it may be")
	}
	b.at(15.000001)
	if b.tick(); b.agent("two").State != "silent" || b.agent("one").State != "fresh" {
		t.Error("not silent")
	}
	b.at(3600)
	if b.tick(); len(b.e.agents) != 2 {
		t.Errorf("%d agents", len(b.e.agents))
	}
	b.at(3600.000001)
	if b.tick(); len(b.e.agents) != 1 {
		t.Errorf("%d agents", len(b.e.agents))
	}

	b = newBench(t, "")
	h := b.host("one")
	h.hello()
	for n := range int64(acks) {
		if a := h.send(h.batch()); (a != nil) != (n == acks-1) {
			t.Errorf("batch %d: %+v", n+1, a)
		}
	}
	h.send(h.batch())
	b.at(.249999)
	if a := b.tick(); len(a) != 0 {
		t.Errorf("answered in a hurry: %+v", a)
	}
	b.at(.25)
	if a := b.tick(); len(a) != 1 || a["one"].Received != acks+1 {
		t.Errorf("%+v", a)
	}
	b.at(9)
	if a := b.tick(); len(a) != 0 {
		t.Errorf("answered for nothing: %+v", a)
	}
	b.e.limits.Agents = 2
	if b.host("two").hello() == nil || b.host("three").hello() != nil || b.e.refused[stranger] != 1 {
		t.Errorf("%d agents, %v", len(b.e.agents), b.e.refused)
	}
}

// Windows of an instance overlap if more than a hundredth of the new one is in an earlier one of the same instance and host.
func TestOverlaps(t *testing.T) {
	p := newPeriod()
	p.count("h", "i", 1000, 2000)
	p.count("h", "i", 3000, 4000)
	for _, c := range []struct {
		host, instance string
		start, end     int64
		want           bool
	}{
		{"h", "i", 2000, 3000, false}, {"h", "i", 0, 1000, false}, {"h", "i", 1990, 2990, false}, {"h", "i", 1989, 2989, true}, {"h", "i", 0, 1010, false}, {"h", "i", 11, 1011, true}, {"h", "i", 1200, 1300, true}, {"h", "i", 0, 9000, true},
		{"h", "i", 4000, 5000, false}, {"h", "j", 1000, 2000, false}, {"g", "i", 1000, 2000, false},
	} {
		if got := p.overlaps(c.host, c.instance, c.start, c.end); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if p.parts != 2 || p.hosts["h"].until != 4000 {
		t.Errorf("%+v", p)
	}
	if p.count("h", "j", 100, 200); p.hosts["h"].until != 4000 {
		t.Errorf("until %d", p.hosts["h"].until)
	}
}
