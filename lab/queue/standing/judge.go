package main

import (
	"fmt"
	"slices"
	"time"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// Bursts that are judged are longer than shortest; alpha is conquest's default.
const (
	shortest = int64(20 * time.Millisecond)
	alpha    = 1.0 / 16
)

// verdict counts what was right.
type verdict struct {
	Median, Longest              time.Duration // wait
	Others                       time.Duration // median of all flows but the largest
	Still                        time.Duration // the longest time in which nothing left though something waited: of a low rate, or of a machine that stood still
	Rate                         float64       // of the largest flow, Mbit/s
	Reports, Outside             int
	Bursts, Named, Other, Silent int
	Below                        int
	Wrong                        int // bursts whose share is outside of its interval
	Marked, Innocent             int // packets
	Overflow                     int // packets that the queue itself dropped
	Victims                      int // datagrams among these of flows that never had alpha
}

func (v *verdict) add(o verdict) {
	v.Longest, v.Still = max(v.Longest, o.Longest), max(v.Still, o.Still)
	v.Reports, v.Outside = v.Reports+o.Reports, v.Outside+o.Outside
	v.Bursts, v.Named, v.Other, v.Silent, v.Below = v.Bursts+o.Bursts, v.Named+o.Named, v.Other+o.Other, v.Silent+o.Silent, v.Below+o.Below
	v.Wrong += o.Wrong
	v.Marked, v.Innocent = v.Marked+o.Marked, v.Innocent+o.Innocent
	v.Overflow, v.Victims = v.Overflow+o.Overflow, v.Victims+o.Victims
}

func (v verdict) cells() []string {
	list := []string{fmt.Sprintf("%v, %v", v.Median.Round(100*time.Microsecond), v.Longest.Round(100*time.Microsecond)), fmt.Sprint(v.Others.Round(100 * time.Microsecond)), fmt.Sprint(v.Still.Round(100 * time.Microsecond)), fmt.Sprintf("%.1f", v.Rate)}
	for _, n := range []int{v.Reports, v.Outside, v.Bursts, v.Named, v.Other, v.Silent, v.Below, v.Wrong, v.Marked, v.Innocent, v.Overflow, v.Victims} {
		list = append(list, fmt.Sprint(n))
	}
	return list
}

func percent(n, of int) string { return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(max(1, of))) }

func (v verdict) say() string {
	return fmt.Sprintf("Of %d bursts longer than %v the largest flow is named first in %s (95 are wanted), another one in %d, nobody in %d; a flow below alpha is first in %d (0), and of %d its share of the burst is outside of its interval. Of %d reports %s are inside of their interval (95). Of %d packets that were acted upon %d were of a flow that did not have alpha (0, of 102 flows in 2,048 columns); the queue itself dropped %d, of which %d were datagrams of flows that never had alpha.\n",
		v.Bursts, time.Duration(shortest), percent(v.Named, v.Bursts), v.Other, v.Silent, v.Below, v.Wrong, v.Reports, percent(v.Reports-v.Outside, v.Reports), v.Marked, v.Innocent, v.Overflow, v.Victims)
}

// truth is what left, by the flow's source port.
type truth struct {
	all   *passed
	flows map[uint16]*passed
}

// passed is what left of somebody: bytes up to and with each departure.
type passed struct {
	times []int64
	bytes []uint64
}

func (p *passed) add(time int64, bytes uint64) {
	if n := len(p.bytes); n > 0 {
		bytes += p.bytes[n-1]
	}
	p.times, p.bytes = append(p.times, time), append(p.bytes, bytes)
}

// between is what left in [from, to).
func (p *passed) between(from, to int64) uint64 {
	before := func(time int64) uint64 {
		if n, _ := slices.BinarySearch(p.times, time); n > 0 {
			return p.bytes[n-1]
		}
		return 0
	}
	return before(to) - before(from)
}

func newTruth(list []departures.Departure) *truth {
	slices.SortStableFunc(list, func(a, b departures.Departure) int { return int(max(-1, min(1, int64(a.Now-b.Now)))) })
	t := &truth{&passed{}, map[uint16]*passed{}}
	for _, d := range list {
		f := t.flows[d.Sport]
		if f == nil {
			f = &passed{}
			t.flows[d.Sport] = f
		}
		f.add(int64(d.Now), uint64(d.Len))
		t.all.add(int64(d.Now), uint64(d.Len))
	}
	return t
}

// share of a flow of what left in [from, to).
func (t *truth) share(port uint16, from, to int64) float64 {
	f := t.flows[port]
	if f == nil {
		return 0
	}
	return float64(f.between(from, to)) / float64(max(1, t.all.between(from, to)))
}

// largest is the flow of which most left.
func (t *truth) largest(from, to int64) (port uint16) {
	most := uint64(0)
	for p, f := range t.flows {
		if n := f.between(from, to); n > most {
			port, most = p, n
		}
	}
	return port
}

// portOf the flow of a 5-tuple's key: its second word begins with the ports.
func portOf(key heavy.Key) uint16 { return uint16(key[1] >> 48) }

// judge compares all that was reported.
func judge(events []bpf.ConquestConquestEvent, log *conquest.Log, list, condemned []departures.Departure, f fate) (v verdict) {
	t := newTruth(list)
	if len(list) > 0 {
		v.waits(t, list)
	}
	for i := range events {
		e := &events[i]
		low, high := log.Record(e)
		if e.Kind != uint32(bpf.ConquestConquestEventKindEVENT_CULPRIT) {
			continue
		}
		v.Reports++
		if share := t.share(portOf(e.Key), int64(e.Time-e.Delay), int64(e.Time)); share < low-1e-9 || share > high+1e-9 {
			v.Outside++
		}
	}
	for _, b := range log.Bursts() {
		v.burst(t, b)
	}
	v.acted(t, list, append(marked(list), condemned...))
	v.losses(t, list, condemned, f)
	return v
}

// losses counts datagrams that were handed to the queue, and lost, of flows that never had alpha while a packet of theirs waited.
func (v *verdict) losses(t *truth, list, condemned []departures.Departure, f fate) {
	v.Overflow = int(f.Overflow)
	guilty := map[uint16]bool{}
	for _, d := range list {
		guilty[d.Sport] = guilty[d.Sport] || t.share(d.Sport, int64(d.Enqueued), int64(d.Now)) >= alpha
	}
	dropped := map[uint16]int{}
	for _, d := range condemned {
		dropped[d.Sport]++
	}
	for port, n := range f.Lost {
		if !guilty[port] {
			v.Victims += n - dropped[port]
		}
	}
}

// waits of all, of all but the largest flow, and that one's rate. The list is in order.
func (v *verdict) waits(t *truth, list []departures.Departure) {
	begin, end := int64(list[0].Now), int64(list[len(list)-1].Now)
	largest := t.largest(begin, end+1)
	v.Rate = float64(t.flows[largest].between(begin, end)) * 8e3 / float64(max(1, end-begin))
	var all, others []time.Duration
	for n, d := range list {
		if n > 0 && d.Enqueued <= list[n-1].Now {
			v.Still = max(v.Still, time.Duration(d.Now-list[n-1].Now))
		}
		wait := time.Duration(d.Now - d.Enqueued)
		if all = append(all, wait); d.Sport != largest {
			others = append(others, wait)
		}
	}
	slices.Sort(all)
	slices.Sort(others)
	v.Median, v.Longest = all[len(all)/2], all[len(all)-1]
	if len(others) > 0 {
		v.Others = others[len(others)/2]
	}
}

func marked(list []departures.Departure) (some []departures.Departure) {
	for _, d := range list {
		if d.Mark == mark {
			some = append(some, d)
		}
	}
	return some
}

// acted counts packets that were marked or dropped when they were handed over, and those of them that no packet of their flow bears out which left in the time that
// a verdict holds and after which the flow had alpha.
func (v *verdict) acted(t *truth, list, packets []departures.Departure) {
	const hold = uint64(10*time.Millisecond + 100*time.Microsecond) // and what lies between two programs and two ticks
	guilty := map[uint16][]uint64{}
	for _, d := range list {
		if t.share(d.Sport, int64(d.Enqueued), int64(d.Now)) >= alpha {
			guilty[d.Sport] = append(guilty[d.Sport], d.Now)
		}
	}
	for _, d := range packets {
		v.Marked++
		times := guilty[d.Sport]
		if n, _ := slices.BinarySearch(times, d.Enqueued-hold); n == len(times) || times[n] > d.Enqueued {
			v.Innocent++
		}
	}
}

func (v *verdict) burst(t *truth, b conquest.Named) {
	if b.Last-b.Begin <= shortest {
		return
	}
	v.Bursts++
	port := portOf(b.Key)
	switch {
	case !b.Known:
		v.Silent++
		return
	case port == t.largest(b.From, b.Last+1):
		v.Named++
	default:
		v.Other++
	}
	share := t.share(port, b.From, b.Last+1)
	if share < alpha {
		v.Below++
	}
	if share < b.Low-1e-9 || share > b.High+1e-9 {
		v.Wrong++
	}
}
