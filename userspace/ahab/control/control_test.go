package control

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/ahab/slices"
)

// link is a data plane without packets: of what a slice wants, what it may take passes. A slice of TCP sends what passes and no more.
type link struct {
	wants, allowed    map[int]float64
	offered, dropped  map[int]float64
	tcp               bool
	written, sinceTop int
	spare             map[int]int64
	crowded           bool
	spaced            int
	over              float64 // of what is allowed that passes; 0: 1
}

func newLink(plan *slices.Plan) *link {
	l := &link{map[int]float64{}, map[int]float64{}, map[int]float64{}, map[int]float64{}, false, 0, 0, nil, false, 0, 0}
	for _, leaf := range plan.Leaves {
		l.allowed[leaf.Number] = leaf.Full
	}
	return l
}

func (l *link) Bytes(n int) (offered, dropped, refused uint64) {
	return uint64(l.offered[n]), uint64(l.dropped[n]), 0
}
func (l *link) Allow(n int, rate float64) {
	l.allowed[n] = rate
	l.written++
}

func (l *link) Space(int, uint32) { l.spaced++ }
func (l *link) Spare(n int, until int64) {
	if l.spare == nil {
		l.spare = map[int]int64{}
	}
	l.spare[n] = until
}
func (l *link) Crowded(int, int64) bool { return l.crowded }

// run lets a time go by, and returns what passes at its end.
func (l *link) run(loop *Loop, now *int64, d time.Duration) map[int]float64 {
	passes := map[int]float64{}
	for end := *now + int64(d); *now < end; {
		*now += int64(10 * time.Millisecond)
		for n, want := range l.wants {
			passes[n] = min(want, l.allowed[n])
			if l.tcp { // a window that grows and shrinks
				want = min(want, l.allowed[n]*(0.75+0.25*math.Mod(float64(*now)/1e8, 1)))
				passes[n] = want
			}
			l.offered[n] += want / 100
			l.dropped[n] += (want - min(want, l.allowed[n]*max(1, l.over))) / 100
		}
		loop.Tick(*now, l)
	}
	return passes
}

func planOf(t testing.TB, text string) *slices.Plan {
	t.Helper()
	f, err := slices.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Plan(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const two = "capacity: 80Mbit\nslices: [{name: a, match: {marks: [1]}}, {name: b, match: {marks: [2]}}]"

func within(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s: %g, want %g", what, got, want)
	}
}

// Two slices appear and leave (figure 6.13): who is alone has all of it, and the shares swap within five ticks.
func TestSharesSwap(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		plan := planOf(t, two)
		l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
		l.tcp = tcp
		least := .99
		if tcp {
			least = .74
		}
		l.wants[1] = 1e9
		if got := l.run(loop, &now, 500*time.Millisecond)[1]; got < least*10e6 {
			t.Errorf("tcp %t: alone: %g", tcp, got)
		}
		l.wants[2] = 1e9
		got := l.run(loop, &now, 50*time.Millisecond)
		within(t, "share of the first", l.allowed[1], 5e6, .01)
		within(t, "share of the second", l.allowed[2], 5e6, .01)
		if got[2] < least*5e6 {
			t.Errorf("tcp %t: the second gets %g", tcp, got[2])
		}
		l.run(loop, &now, 5*time.Second) // nobody takes the other for idle
		within(t, "share of the first later", l.allowed[1], 5e6, .01)
		l.wants[2] = 0
		l.run(loop, &now, 50*time.Millisecond)
		within(t, "share of the first alone again", l.allowed[1], 10e6, .08)
		if l.allowed[2] < 4.9e6 {
			t.Errorf("tcp %t: one that is idle might take %g when it begins", tcp, l.allowed[2])
		}
	}
}

// A slice that wants little leaves the rest; what it may take leaves room to want more.
func TestLeavesTheRest(t *testing.T) {
	plan := planOf(t, two)
	l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
	l.wants[1], l.wants[2] = 1e6, 1e9
	l.run(loop, &now, time.Second)
	within(t, "the rest", l.allowed[2], 10e6-1.25e6, .01)
	if l.allowed[1] < 5e6 {
		t.Errorf("who wants 1 MB/s might take %g when it wants more", l.allowed[1])
	}
}

// A pause, or a clock that jumps, is reported; nobody's demand is made of it, and the loop continues.
func TestPause(t *testing.T) {
	plan := planOf(t, two)
	l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
	l.wants[1], l.wants[2] = 1e9, 1e9
	l.run(loop, &now, 200*time.Millisecond)
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		now += int64(jump)
		if away := loop.Tick(now, l); math.Abs(away-jump.Seconds()) > 1 {
			t.Errorf("a jump of %v is reported as %g s", jump, away)
		}
		l.run(loop, &now, 200*time.Millisecond)
		within(t, "share after the jump", l.allowed[1], 5e6, .01)
	}
	now += int64(90 * time.Millisecond) // load: the loop ran late, and knows it
	for n := range l.wants {
		l.offered[n] += l.wants[n] * .09
		l.dropped[n] += l.wants[n] * .09
	}
	if away := loop.Tick(now, l); away != 0 {
		t.Errorf("90 ms are a pause of %g s", away)
	}
	within(t, "share after 90 ms", l.allowed[1], 5e6, .01)
}

// Registers that restart, because others have taken their place, are no demand.
func TestCountsGoBack(t *testing.T) {
	plan := planOf(t, two)
	l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
	l.wants[1] = 2e6
	l.run(loop, &now, 200*time.Millisecond)
	l.offered[1] = 0
	l.run(loop, &now, 10*time.Millisecond)
	within(t, "demand", loop.Demand(0), 2e6, .2)
}

// A change keeps what is known of slices that stay: nobody's share moves.
func TestChange(t *testing.T) {
	plan := planOf(t, two)
	l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
	l.wants[1], l.wants[2] = 1e9, 1e9
	l.run(loop, &now, 200*time.Millisecond)
	f, err := slices.Parse("f.yaml", []byte(strings.Replace(two, "slices: [", "slices: [{name: c, match: {marks: [3]}}, ", 1)))
	if err != nil {
		t.Fatal(err)
	}
	next, err := f.Plan(nil, plan)
	if err != nil {
		t.Fatal(err)
	}
	loop = New(next, loop, 0)
	for range 3 {
		l.run(loop, &now, 10*time.Millisecond)
		within(t, "share after the change", l.allowed[1], 5e6, .01)
	}
	if l.allowed[3] < 3e6 {
		t.Errorf("the new one may take %g", l.allowed[3])
	}
}

// Registers that a changed plan begins with are empty: all of them are written, those of slices that nothing has changed for among them.
func TestChangeWritesAll(t *testing.T) {
	plan := planOf(t, two)
	l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
	l.wants[1], l.wants[2] = 1e9, 1e9
	l.run(loop, &now, time.Second)
	loop = New(plan, loop, 0)
	for _, want := range []int{2, 0, 0} {
		l.written, l.spaced = 0, 0
		if l.run(loop, &now, 10*time.Millisecond); l.written != want || l.spaced != want {
			t.Errorf("%d rates and %d spacings are written, want %d of each", l.written, l.spaced, want)
		}
	}
}

// Nothing is written that is there already, and nobody is ever shut.
func TestWritesLittle(t *testing.T) {
	plan := planOf(t, two)
	l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
	l.wants[1], l.wants[2] = 1e9, 1e9
	l.run(loop, &now, time.Second)
	before := l.written
	l.run(loop, &now, time.Second)
	if l.written != before {
		t.Errorf("%d writes of what has not changed", l.written-before)
	}
	for n, rate := range l.allowed {
		if rate < least {
			t.Errorf("slice %d may take %g", n, rate)
		}
	}
}

// many is a file of three levels.
func many(groups, each int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "capacity: 10Gbit\nroom: %d\nslices:\n", groups*each)
	for g := range groups {
		fmt.Fprintf(&b, " - {name: g%d, weight: %d, match: {vlans: [%d]}, slices: [", g, 1+g%3, g)
		for i := range each {
			fmt.Fprintf(&b, "{name: s%d, weight: %d, match: {sources: [10.%d.%d.0/24]}},", i, 1+i%4, g%256, i)
		}
		b.WriteString("]}\n")
	}
	return b.String()
}

// busyLink is one whose slices all take what they get.
type busyLink struct{ offered, dropped, allowed []uint64 }

func (l *busyLink) Bytes(n int) (offered, dropped, refused uint64) {
	l.offered[n] += l.allowed[n] / 90
	l.dropped[n] += l.allowed[n] / 1000
	return l.offered[n], l.dropped[n], 0
}
func (l *busyLink) Space(int, uint32)         {}
func (l *busyLink) Spare(int, int64)          {}
func (l *busyLink) Crowded(int, int64) bool   { return true }
func (l *busyLink) Allow(n int, rate float64) { l.allowed[n] = uint64(rate) }

// BenchmarkTick is a tick of 16,000 busy slices in three levels: a hundred of them a second are what the loop costs.
func BenchmarkTick(b *testing.B) {
	for _, groups := range []int{32, 128} {
		plan := planOf(b, many(groups, 16000/128))
		n := len(plan.Leaves)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, loop, now := &busyLink{make([]uint64, n+1), make([]uint64, n+1), make([]uint64, n+1)}, New(plan, nil, 0), int64(1)
			for b.Loop() {
				now += int64(10 * time.Millisecond)
				loop.Tick(now, l)
			}
		})
	}
}

// A new slice's search begins where a TCP flow with half of its rate is: of 80 Mbit/s a slice of two has 5e6 bytes a second, half of which are 16.5 segments in 10 ms.
func TestSpacingBegins(t *testing.T) {
	const window = 2.5e6 * 0.05 / 1514
	for _, f := range New(planOf(t, two), nil, 0).order {
		within(t, "spacing", f.spacing, 0.03*window*window*1514, 1e-9)
	}
	for _, f := range New(planOf(t, two), nil, 7000).order {
		within(t, "spacing that was set", f.spacing, 7000, 0)
	}
}

// Who has a slice for itself is limited by the ceiling alone where the slice may take all of it, whatever has passed; a slice that may take less has its account, and one where users share a
// limit.
func TestSpare(t *testing.T) {
	for _, c := range []struct {
		name, file string
		others     float64 // bytes a second that the second slice wants
		crowded    bool
		spare      bool
	}{
		{"one slice", "capacity: 80Mbit\nslices: [{name: a, match: {marks: [1]}}]", 0, false, true},
		{"one slice, users share", "capacity: 80Mbit\nslices: [{name: a, match: {marks: [1]}}]", 0, true, false},
		{"all of its ceiling", "capacity: 80Mbit\nslices: [{name: a, ceiling: 40Mbit, match: {marks: [1]}}, {name: b, match: {marks: [2]}}]", 1e9, false, true},
		{"half of its ceiling", "capacity: 80Mbit\nslices: [{name: a, ceiling: 80Mbit, match: {marks: [1]}}, {name: b, match: {marks: [2]}}]", 1e9, false, false},
		{"no ceiling of its own", two, 0, false, false},
	} {
		plan := planOf(t, c.file)
		l, loop, now := newLink(plan), New(plan, nil, 0), int64(1)
		l.crowded, l.wants[1], l.over = c.crowded, 1e9, 1.5
		if len(plan.Leaves) > 1 {
			l.wants[2] = c.others
		}
		l.run(loop, &now, time.Second)
		if got := l.spare[1] > now; got != c.spare {
			t.Errorf("%s: nobody is limited: %t, want %t", c.name, got, c.spare)
		}
	}
}

// What passed, arrived and was refused are averaged over a time that does not depend on how often the loop runs; what was lost did not pass.
func TestAverages(t *testing.T) {
	for _, c := range []struct{ lost, passed float64 }{{0, 1000}, {400, 600}, {1000, 0}, {1500, 0}} {
		f := &flow{allowed: 1e9}
		f.see(1000, c.lost, 200, settled/2)
		if math.Abs(f.arrived-500) > 1e-9 || math.Abs(f.passed-c.passed/2) > 1e-9 || math.Abs(f.stopped-100) > 1e-9 {
			t.Errorf("%g lost: after half of the time %g arrived, %g passed, %g were refused", c.lost, f.arrived, f.passed, f.stopped)
		}
		f.see(1000, c.lost, 200, settled)
		f.see(1000, c.lost, 200, 10*settled)
		if math.Abs(f.arrived-1000) > 1e-9 || math.Abs(f.passed-c.passed) > 1e-9 || math.Abs(f.stopped-200) > 1e-9 || f.rate != 1000 {
			t.Errorf("%g lost: later %g arrived, %g passed, %g were refused; a rate of %g", c.lost, f.arrived, f.passed, f.stopped, f.rate)
		}
		if (f.lost == 0) != (c.lost > 0) {
			t.Errorf("%g lost: %g s since a loss", c.lost, f.lost)
		}
	}
}
