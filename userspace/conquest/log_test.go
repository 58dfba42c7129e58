package conquest

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

const ms = 1_000_000

func culprit(time int64, flow byte, size, total uint64) event {
	e := event{Time: uint64(time), Delay: 2 * ms, Size: size, Total: total, Kind: eventCulprit, Culprit: 1, Reach: 2, Edge: 1 << 15, Oldest: uint32(size / 4)}
	e.Key = heavy.Key{0x0a000000<<32 | 0xc0000200 | uint64(flow), 80<<32 | 6<<24 | 1}
	return e
}

// linkRate is 1 Gbit/s, in bytes a ns, which is conquest.rate.
const linkRate = 0.125

// steady is a report of a packet that waited delay, of a flow that has a part of a link which is always busy.
func steady(c *config, time, delay int64, flow byte, part float64) event {
	const rate = linkRate
	interval := float64(c.interval())
	e := culprit(time, flow, 0, 0)
	e.Delay, e.Reach, e.Edge = uint64(delay), uint32(time/c.interval()-(time-delay)/c.interval()), 1<<16
	left := float64(time%c.interval()) + float64(max(e.Reach, 1)-1)*interval
	if e.Reach > 0 {
		edge := 1 - float64((time-delay)%c.interval())/interval
		e.Edge, e.Oldest, e.OldestTotal = uint32(edge*(1<<16)), uint32(part*rate*interval), uint32(rate*interval)
		left += interval * float64(e.Edge) / (1 << 16)
	}
	e.Size, e.Total = uint64(part*rate*left), uint64(rate*left)
	return e
}

func words(begin, last int64) uint64 {
	return uint64(uint32(begin/burstTick))<<32 | uint64(uint32(last/burstTick))
}

// A burst is what lies between its reports, whichever arrives first, and its culprits are those that were named meanwhile.
func TestHistory(t *testing.T) {
	c, h := configured(t, nil), newHistory()
	const at = 100 * ms
	for _, e := range []event{
		steady(c, at, 4*ms, 1, .6), // before the report of the beginning, in the same packet
		{Kind: eventBegin, Time: at, Delay: 4 * ms},
		steady(c, at+ms, 4*ms, 1, .6), steady(c, at+ms, 4*ms, 2, .3),
		{Kind: eventWindow, Time: at + 2*ms, Delay: 4 * ms},
		steady(c, at+2*ms, 4*ms, 1, .6),
		{Kind: eventEnd, Time: at + 4*ms, Burst: words(at, at+3*ms), Size: 6 * ms},
		{Kind: eventBegin, Time: at + 10*ms, Delay: ms, Queue: 1},
		{Kind: eventRamp, Time: at + 11*ms, Size: 900, Total: 100, Key: culprit(0, 3, 0, 0).Key},
	} {
		h.record(c, &e)
	}
	got := h.take()
	if len(got.bursts) != 2 {
		t.Fatalf("%d bursts", len(got.bursts))
	}
	first, second := got.bursts[0], got.bursts[1]
	if first.open || first.begin > at || first.begin < at-burstTick || math.Abs(float64(first.last-at-3*ms)) > burstTick || first.peak != 6*ms {
		t.Errorf("the first burst is %+v", first)
	}
	if f := first.flows; len(f) != 2 || f[0].times != 2 || f[0].share.low < .4 || f[0].share.low > .6 || f[0].share.high < .6 || f[1].share.low > .3 || f[1].share.high < .3 {
		t.Errorf("its culprits are %+v", first.flows)
	}
	if !second.open || second.queue != 1 || len(got.ramps) != 1 {
		t.Errorf("the second burst is %+v, ramps %+v", second, got.ramps)
	}
	end := event{Kind: eventEnd, Queue: 1, Time: at + 20*ms, Burst: words(at+10*ms, at+15*ms), Size: 3 * ms}
	h.record(c, &end)
	if next := h.take(); len(next.bursts) != 1 || next.bursts[0].begin != at+10*ms || next.bursts[0].open || len(h.open) != 0 {
		t.Errorf("it ends as %+v", next.bursts)
	}
}

// A report belongs to the open burst of its queue, whose beginning is its first report until its end has a better one.
func TestAt(t *testing.T) {
	c, h := configured(t, nil), newHistory()
	const at = 100 * ms
	for _, e := range []event{culprit(at+2*ms, 1, 600, 1000), {Kind: eventWindow, Time: at + 3*ms, Delay: ms, Queue: 1}, culprit(at+4*ms, 1, 600, 1000)} {
		h.record(c, &e)
	}
	first, other := h.at(0, at+3*ms, 0), h.at(1, at+5*ms, 0)
	if first.begin != at+2*ms || first.last != at+4*ms || other.begin != at+3*ms || other.last != at+5*ms || first == other {
		t.Errorf("%+v and %+v", first, other)
	}
	h.record(c, &event{Kind: eventEnd, Time: at + 7*ms, Burst: words(at, at+6*ms), Size: 2 * ms})
	if next := h.at(0, at+8*ms, 0); next.begin != at+8*ms || len(h.bursts) != 1 || h.bursts[0].begin > at || h.bursts[0].begin < at-burstTick || h.bursts[0].last < at+5*ms {
		t.Errorf("%+v after %+v", next, h.bursts)
	}
}

// Two cores end one burst twice, since a third one left it open meanwhile: it is one burst in the log, with the culprits of both ends. The next one, and
// one of another queue, are not.
func TestEndsTwice(t *testing.T) {
	c, h := configured(t, nil), newHistory()
	const at = 100 * ms
	for _, e := range []event{
		{Kind: eventBegin, Time: at, Delay: ms}, culprit(at, 1, 600, 1000),
		{Kind: eventEnd, Time: at + 3*ms, Burst: words(at, at+2*ms), Size: 4 * ms},
		{Kind: eventEnd, Queue: 1, Time: at + 3*ms, Burst: words(at, at+ms), Size: ms},
		culprit(at+4*ms, 1, 700, 1000), culprit(at+4*ms, 2, 300, 1000),
		{Kind: eventEnd, Time: at + 6*ms, Burst: words(at, at+5*ms), Size: 3 * ms},
		{Kind: eventBegin, Time: at + 9*ms, Delay: ms},
		{Kind: eventEnd, Time: at + 12*ms, Burst: words(at+9*ms, at+10*ms), Size: 2 * ms},
	} {
		h.record(c, &e)
	}
	got := h.take().bursts
	if len(got) != 3 {
		t.Fatalf("%d bursts: %+v", len(got), got)
	}
	whole := got[slices.IndexFunc(got, func(b burst) bool { return b.queue == 0 })]
	if whole.peak != 4*ms || whole.last < at+4*ms || len(whole.flows) != 2 || whole.flows[0].times != 2 || whole.flows[0].share.low <= 0 {
		t.Errorf("%+v", whole)
	}
}

// A burst after which nothing arrives is over when its queue must be empty, and its late end is no other burst.
func TestIdle(t *testing.T) {
	c, h := configured(t, nil), newHistory()
	const at = 100 * ms
	h.record(c, &event{Kind: eventBegin, Time: at, Delay: 2 * ms})
	h.idle(at+3*ms, ms)
	if got := h.take(); len(got.bursts) != 1 || !got.bursts[0].open {
		t.Errorf("it is open: %+v", got.bursts)
	}
	h.idle(at+5*ms, ms)
	if got := h.take(); len(got.bursts) != 1 || got.bursts[0].open {
		t.Errorf("it is over: %+v", got.bursts)
	}
	h.record(c, &event{Kind: eventEnd, Time: at + 900*ms, Burst: words(at, at), Size: 2 * ms})
	if got := h.take(); len(got.bursts) != 0 {
		t.Errorf("it has ended before: %+v", got.bursts)
	}
	h.record(c, &event{Kind: eventBegin, Time: at + 950*ms, Delay: ms})
	h.record(c, &event{Kind: eventEnd, Time: at + 970*ms, Burst: words(at+950*ms, at+960*ms), Size: 2 * ms})
	if got := h.take(); len(got.bursts) != 1 || got.bursts[0].begin != at+950*ms {
		t.Errorf("the next one: %+v", got.bursts)
	}
}

// In a standing queue departures lie as far apart as packets wait: what waited 200 ms is not over 20 ms later. Its flows stay with it from window to
// window, each window counts its own reports, and in the window of its end all of it is there.
func TestLongBurstIsOne(t *testing.T) {
	c, h := configured(t, map[string]string{"longest": "8ms"}), newHistory()
	const at = 1000 * ms
	h.record(c, &event{Kind: eventBegin, Time: at, Delay: 200 * ms})
	for i := range int64(3) {
		e := steady(c, at+i*c.interval(), 5*ms, 1, .7)
		h.record(c, &e)
	}
	h.idle(at+20*ms, 8*ms)
	first := h.take()
	if len(first.bursts) != 1 || !first.bursts[0].open || first.worst(0, 9)[0].times != 3 {
		t.Fatalf("%+v", first.bursts)
	}
	e := culprit(at+30*ms, 1, 700, 1000)
	h.record(c, &e)
	h.record(c, &event{Kind: eventEnd, Time: at + 60*ms, Burst: words(at, at+40*ms), Size: 200 * ms})
	second := h.take()
	if len(second.bursts) != 1 || second.bursts[0].open || len(second.bursts[0].flows) != 1 || second.bursts[0].flows[0].times != 4 {
		t.Fatalf("%+v", second.bursts)
	}
	if f := second.worst(0, 9); len(f) != 1 || f[0].times != 1 || f[0].bursts != 1 {
		t.Errorf("this window counts %+v", f)
	}
	all := newHistory()
	all.join(first, 0)
	all.join(second, 0)
	if f := all.worst(0, 9); len(all.bursts) != 1 || all.bursts[0].open || f[0].times != 4 {
		t.Errorf("both windows together: %+v, %+v", all.bursts, f)
	}
	turned := newHistory()
	turned.join(second, 0)
	turned.join(first, 0)
	if len(turned.bursts) != 1 || turned.bursts[0].open || turned.bursts[0].flows[0].times != 4 {
		t.Errorf("the later one first: %+v", turned.bursts)
	}
}

// Who is named first had alpha of what left in the burst for certain, and more than anybody else has for certain; of others the log has that it is not known. A share is of the
// whole burst: who had it at times is not named by them.
func TestNamesCertainCulprits(t *testing.T) {
	c := configured(t, map[string]string{"alpha": "0.25", "longest": "8ms"})
	const at, length = 1000 * ms, 400
	key := func(flow byte) heavy.Key { return c.spec.Clean(culprit(0, flow, 0, 0).Key) }
	burst := func(reports func(h *history, time int64, i int)) *history {
		h := newHistory()
		h.record(c, &event{Kind: eventBegin, Time: at, Delay: 5 * ms})
		for i := range length {
			reports(h, at+int64(i)*ms, i)
		}
		return h
	}
	record := func(h *history, e event) { h.record(c, &e) }
	unsure := func(time int64, flow byte, size uint64) event { // it waited 200 ms, of which the snapshots know 6
		e := culprit(time, flow, size, size)
		e.Delay, e.Reach, e.Edge = 200*ms, uint32(c.snapshots-1), 1<<16
		return e
	}
	for _, x := range []struct {
		name    string
		reports func(h *history, time int64, i int)
		want    string
	}{
		{"a small flow, alone in the last milliseconds again and again", func(h *history, time int64, i int) {
			if i%20 == 0 {
				record(h, unsure(time, 2, 1500))
			}
		}, "unknown"},
		{"one that fills the queue beside it", func(h *history, time int64, _ int) {
			e := steady(c, time, 5*ms, 2, .05)
			e.Delay = 200 * ms // of which the snapshots know 6
			record(h, e)
			record(h, steady(c, time, 5*ms, 1, .8))
		}, c.name(key(1))},
		{"one that fills it for an eighth of its time", func(h *history, time int64, i int) {
			if record(h, steady(c, time, 5*ms, 2, .1)); i < length/8 {
				record(h, steady(c, time, 5*ms, 1, .8))
			}
		}, "unknown"},
		{"two, of which one has more", func(h *history, time int64, _ int) {
			record(h, steady(c, time, 5*ms, 2, .3))
			record(h, steady(c, time, 5*ms, 1, .6))
		}, c.name(key(1))},
	} {
		row := c.burstTable(burst(x.reports).take(), 0).Rows[0]
		if row[3] != x.want {
			t.Errorf("%s: %v, want %s", x.name, row, x.want)
		}
		if low, named := row[5].(float64), x.want != "unknown"; named && (low < .25 || low > .8) {
			t.Errorf("%s: at least %g", x.name, low)
		}
	}
	h := burst(func(h *history, time int64, _ int) { record(h, steady(c, time, 5*ms, 1, .8)) })
	record(h, unsure(at+length*ms, 3, 40)) // a pure ACK
	if list := h.take().worst(c.alphaShare(), 9); list[0].key != key(1) || slices.ContainsFunc(list, func(f blamed) bool { return f.key == key(3) }) {
		t.Errorf("%+v", list)
	}
}

// What left between two reports of a flow is known exactly, whichever snapshots they read, and not where one has not read what the other one has.
func TestBetweenReports(t *testing.T) {
	c := configured(t, nil)
	const at = 1000 * ms
	for _, x := range []struct {
		name          string
		first, second int64 // delays
		apart         int64
		known         bool
	}{
		{"of one snapshot", 3 * ms, 3 * ms, c.interval() / 8, true},
		{"of two", 3 * ms, 3 * ms, c.interval(), true},
		{"the wait grows by a snapshot", 2 * ms, 2*ms + c.interval(), c.interval() / 8, true},
		{"... shrinks", 2*ms + c.interval(), 2*ms + c.interval()/4, c.interval() / 8, true},
		{"far apart", 2 * ms, 2 * ms, 4 * c.interval(), false},
	} {
		a, b := steady(c, at, x.first, 1, .3), steady(c, at+x.apart, x.second, 1, .3)
		one, everybody := c.sumsOf(&b).since(c.sumsOf(&a), false), c.sumsOf(&b).since(c.sumsOf(&a), true)
		flow, all, known := one.least, everybody.most, one.known
		if known != x.known || known && (math.Abs(flow-.3*linkRate*float64(x.apart)) > 4 || math.Abs(all-linkRate*float64(x.apart)) > 4) {
			t.Errorf("%s: %g of %g, known %v; want %g of %d", x.name, flow, all, known, .3*linkRate*float64(x.apart), x.apart)
		}
	}
}

// Ends of a share of what left while a packet waited: the oldest snapshot may hold all or nothing of the flow in the part that counts, as far as the link can have sent it, and others
// collide.
func TestShare(t *testing.T) {
	c := configured(t, nil)
	none := collisions / float64(c.columns)
	const k = 1_000_000 // a packet more or less is nothing
	half := float64(c.interval()) / 2
	for _, x := range []struct {
		name      string
		e         event
		rate      float64 // units that the link sends in half of a snapshot; 0: nobody knows
		low, high float64
	}{
		{"all or nothing of the oldest", event{Size: 500, Total: 1000, Oldest: 200, OldestTotal: 600, Edge: 1 << 15, Reach: 2}, 0, (0.4 - none) / (0.4 - none + 0.3 + 0.4 + 2*none), 0.6 / 0.9},
		{"... that the link can have sent", event{Size: 500, Total: 1000, Oldest: 200, OldestTotal: 600, Edge: 1 << 15, Reach: 2}, 300, (0.4 - none) / (0.4 - none + 0.3 + 0.3 + none), 0.6 / (0.6 + 0.3 + 0.1)},
		{"all of the oldest", event{Size: 500, Total: 1000, Oldest: 200, OldestTotal: 400, Edge: 1 << 16, Reach: 3}, 0, 0.5 - none, 0.5},
		{"nothing but the one that is written", event{Size: 500, Total: 1000, Edge: 1 << 16, Time: uint64(1.9 * half), Delay: uint64(half)}, 0, 0, 1},
		{"all of it, by half of its time", event{Size: 1000, Total: 1000, Edge: 1 << 16, Time: uint64(2 * half * 0.999), Delay: uint64(half)}, 500, 1 - 2*none/(1-none), 1},
		{"half of it from before the oldest", event{Size: 1000, Total: 1000, Edge: 1 << 16, Reach: 1, Time: 0, Delay: 2 * uint64(c.interval())}, 0, 0, 1},
		{"... that the link can have sent", event{Size: 1000, Total: 1000, Edge: 1 << 16, Reach: 1, Time: 0, Delay: 2 * uint64(c.interval())}, 500, 0.5 - none/2, 1},
		{"nothing", event{}, 0, 0, 0},
	} {
		x.e.Size, x.e.Total, x.e.Oldest, x.e.OldestTotal = k*x.e.Size, k*x.e.Total, k*x.e.Oldest, k*x.e.OldestTotal
		got := c.evidenceOf(&link{now: k * x.rate / half}, &x.e).share()
		if math.Abs(got.low-x.low) > 2e-3 || math.Abs(got.high-x.high) > 2e-3 || got.value > 1 {
			t.Errorf("%s: %+v, want %g to %g", x.name, got, x.low, x.high)
		}
	}
}

// A time line of any length keeps its peaks.
func TestTimeline(t *testing.T) {
	h := newHistory()
	h.mark(1000*ms, 5*ms)
	for i := range int64(5000) {
		h.mark(1000*ms+i*ms, ms)
	}
	h.mark(4000*ms, 9*ms)
	text := []rune(h.timeline())
	if len(text) > lineSlots || len(text) < lineSlots/3 || strings.Count(string(text), "█") != 1 || text[0] != '▅' {
		t.Errorf("%d slots: %q", len(text), string(text))
	}
	if newHistory().timeline() != "" {
		t.Error("a line of nothing")
	}
}

// What a snapshot holds is what was there, and two are merged by putting their bursts side by side.
func TestSnapshot(t *testing.T) {
	of, err := descriptor().Select(map[string]string{"ramp": "1kB"}, algo.Setup{Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	c := of.Config.(*config)
	taken := func(at int64) *snapshot.Snapshot {
		h := newHistory()
		for _, e := range []event{culprit(at, 1, 700, 1000), {Kind: eventEnd, Time: uint64(at + 4*ms), Burst: words(at, at+ms), Size: 3 * ms},
			{Kind: eventRamp, Time: uint64(at), Size: 10, Key: culprit(0, 3, 0, 0).Key}} {
			h.record(c, &e)
		}
		s := snapshot.New(of.Head(0), report.Window{Start: at, End: at + 10*ms})
		s.Words[counterWords] = make(snapshot.Words, counters)
		s.Words[counterWords][fateLeft] = 10
		want := h.take()
		want.into(s)
		if _, got, err := opened(s); err != nil || !reflect.DeepEqual(got.bursts, want.bursts) || !reflect.DeepEqual(got.ramps, want.ramps) || got.line != want.line {
			t.Fatalf("%v: %+v, want %+v", err, got, want)
		}
		return s
	}
	a, b := taken(1000*ms), taken(2000*ms)
	both, err := algo.Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	n, h, err := opened(both)
	if err != nil || n[fateLeft] != 20 || len(h.bursts) != 2 || len(h.ramps) != 2 || h.bursts[0].begin > h.bursts[1].begin {
		t.Errorf("%v: %d departures, bursts %+v", err, n[fateLeft], h.bursts)
	}
	if worst := h.worst(0, 10); len(worst) != 1 || worst[0].times != 2 || worst[0].bursts != 2 {
		t.Errorf("culprits of both: %+v", worst)
	}
	for name, damage := range map[string]func(*snapshot.Snapshot){
		"a flow of no burst": func(s *snapshot.Snapshot) { s.Words[accusedWords][0] = 7 },
		"a share above one":  func(s *snapshot.Snapshot) { s.Words[accusedWords][6] = math.Float64bits(1.5) },
		"no share":           func(s *snapshot.Snapshot) { s.Words[accusedWords][7] = math.Float64bits(math.NaN()) },
		"half a burst":       func(s *snapshot.Snapshot) { s.Words[burstWords] = s.Words[burstWords][:3] },
		"no counters":        func(s *snapshot.Snapshot) { delete(s.Words, counterWords) },
	} {
		s := taken(3000 * ms)
		damage(s)
		if _, err := algo.Report(s); err == nil {
			t.Errorf("%s is reported", name)
		}
	}
	edges := []snapshottest.Edge{{Name: accusedWords, At: 0, Good: []uint64{0}, Bad: []uint64{1, math.MaxUint64}}}
	for at := 6; at < 9; at++ {
		edges = append(edges, snapshottest.Range(accusedWords, at, 0, 1))
	}
	snapshottest.Edges(t, a, edges...)
}

// The log has when a burst began: to an operator as time of day, with its date, and in the clock of the packets. Where no calendar knows the time it is a
// number of seconds.
func TestLogTimes(t *testing.T) {
	c := configured(t, nil)
	const since1970 = 1_795_000_000_000_000_000 // 2026-11-18 11:06:40
	for _, x := range []struct {
		begin, offset int64
		at, when      string
	}{
		{5 * ms, since1970, "11:06:40.005000", "2026-11-18T11:06:40.005Z"},
		{since1970 + 61_000_000_123, 0, "11:07:41.000000", "2026-11-18T11:07:41.000Z"},
		{1_500 * ms, 0, "1.500000 s", "1.500000 s"},
	} {
		h := newHistory()
		h.wait(3, x.begin, 2*ms)
		h.end(3, x.begin+4*ms, 2*ms)
		table := c.burstTable(h, x.offset)
		row := map[string]any{}
		for n, column := range table.Columns {
			row[column.Name] = table.Rows[0][n]
		}
		for name, want := range map[string]any{"at": x.at, "when": x.when, "begin_ns": x.begin, "length_ns": int64(4 * ms), "queue": uint64(3), "open": false} {
			if row[name] != want {
				t.Errorf("%d + %d: %s is %v, want %v", x.begin, x.offset, name, row[name], want)
			}
		}
	}
}
