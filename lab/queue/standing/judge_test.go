package main

import (
	"testing"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/conquest"
)

const ms = uint64(time.Millisecond)

// left is two flows that alternate, one packet a millisecond, of which the first has four times the bytes.
func left() (list []departures.Departure) {
	for n := range uint64(100) {
		d := departures.Departure{Enqueued: 1000*ms + n*ms, Now: 1010*ms + n*ms, Len: 400, Sport: 1}
		if n%2 == 1 {
			d.Len, d.Sport = 100, 2
		}
		list = append(list, d)
	}
	return list
}

// What left in [from, to) is counted to the edges, and the largest flow is the one of which most bytes left.
func TestTruth(t *testing.T) {
	truth := newTruth(left())
	from := int64(1010 * ms)
	if n := truth.all.between(from, from+int64(2*ms)); n != 500 {
		t.Errorf("%d bytes left in two milliseconds", n)
	}
	if got := truth.share(2, from, from+int64(2*ms)); got != 0.2 {
		t.Errorf("the smaller flow has %g", got)
	}
	if got := truth.share(2, from, from+1); got != 0 {
		t.Errorf("... %g of the first packet", got)
	}
	if got := truth.largest(from, from+int64(100*ms)); got != 1 {
		t.Errorf("port %d is the largest", got)
	}
}

// A report outside of its interval, a name that is not the largest, none, and one below alpha are all counted.
func TestJudge(t *testing.T) {
	d, err := algo.Lookup(conquest.Name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, nil)
	if err != nil {
		t.Fatal(err)
	}
	const interval = uint64(1 << 21) // of a snapshot, ns
	accuse := func(port uint64, size, total uint64) (events []bpf.ConquestConquestEvent) {
		part, rate := float64(size)/float64(total), float64(total)/float64(6*ms)
		for n := range uint64(30) {
			at := 1020*ms + n*ms
			e := bpf.ConquestConquestEvent{Time: at, Delay: 6 * ms, Kind: uint32(bpf.ConquestConquestEventKindEVENT_CULPRIT), Culprit: 1}
			e.Key[1] = port << 48
			e.Reach = uint32(at/interval - (at-e.Delay)/interval)
			e.Edge = uint32((interval - (at-e.Delay)%interval) << 16 / interval)
			e.Oldest, e.OldestTotal = uint32(part*rate*float64(interval)), uint32(rate*float64(interval))
			left := rate * (float64(at%interval) + float64(interval)*(float64(e.Reach-1)+float64(e.Edge)/(1<<16)))
			e.Size, e.Total = uint64(part*left), uint64(left)
			events = append(events, e)
		}
		return events
	}
	for _, c := range []struct {
		name   string
		events []bpf.ConquestConquestEvent
		want   verdict
	}{
		{"right", accuse(1, 800_000, 1_000_000), verdict{Reports: 30, Bursts: 1, Named: 1}},
		{"wrong share", accuse(1, 990_000, 1_000_000), verdict{Reports: 30, Outside: 30, Bursts: 1, Named: 1, Wrong: 1}},
		{"wrong name", accuse(2, 200_000, 1_000_000), verdict{Reports: 30, Bursts: 1, Other: 1}},
		{"below alpha", accuse(3, 200_000, 1_000_000), verdict{Reports: 30, Outside: 30, Bursts: 1, Other: 1, Below: 1, Wrong: 1}},
		{"nobody", accuse(1, 20_000, 1_000_000), verdict{Reports: 30, Outside: 30, Bursts: 1, Silent: 1}},
	} {
		log, err := conquest.NewLog(v)
		if err != nil {
			t.Fatal(err)
		}
		got := judge(c.events, log, left(), nil, fate{})
		if rate := got.Rate; rate < 1.5 || rate > 1.7 { // 200 bytes a millisecond
			t.Errorf("%s: %g Mbit/s", c.name, rate)
		}
		if want := 10 * time.Millisecond; got.Median != want || got.Others != want || got.Longest != want {
			t.Errorf("%s: waits of %v, others' of %v", c.name, got.Median, got.Others)
		}
		if want := time.Millisecond; got.Still != want {
			t.Errorf("%s: stood still for %v", c.name, got.Still)
		}
		got.Median, got.Longest, got.Others, got.Still, got.Rate = 0, 0, 0, 0, 0
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Draws repeat, and stay inside of what the document states.
func TestDraw(t *testing.T) {
	kinds := map[string]bool{}
	for n := range 200 {
		c := draw(1, n)
		kinds[c.congestion] = true
		if c != draw(1, n) || c.rate < 5e6 || c.rate > 500e6 || c.limit < 50 || c.limit > 2000 || c.udp < .003 || c.udp > .4 {
			t.Errorf("%d: %v", n, c)
		}
	}
	if len(kinds) != 4 {
		t.Errorf("%v", kinds)
	}
}

// A mark is right if a packet of the flow left shortly before that bears it out.
func TestMarks(t *testing.T) {
	list := left()
	list[40].Mark, list[41].Mark = mark, mark
	list[0].Mark = mark // handed over before anything left
	list = append(list, departures.Departure{Enqueued: 1050 * ms, Now: 1110 * ms, Len: 1, Sport: 3, Mark: mark})
	var v verdict
	v.acted(newTruth(list), list, marked(list))
	if v.Marked != 4 || v.Innocent != 2 {
		t.Errorf("%+v", v)
	}
}

// Dropped packets are judged as marked ones are. What else was lost of flows that never had alpha was the queue's.
func TestDrops(t *testing.T) {
	list := left()
	dropped := []departures.Departure{{Enqueued: 1050 * ms, Sport: 1}, {Enqueued: 1050 * ms, Sport: 9}, {Enqueued: 1000 * ms, Sport: 1}}
	truth := newTruth(list)
	var v verdict
	v.acted(truth, list, dropped)
	v.losses(truth, list, dropped, fate{Lost: map[uint16]int{1: 5, 9: 4}, Overflow: 6})
	if v.Marked != 3 || v.Innocent != 2 || v.Overflow != 6 || v.Victims != 3 {
		t.Errorf("%+v", v)
	}
}
