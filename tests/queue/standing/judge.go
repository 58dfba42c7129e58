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
	Reports, Outside             int
	Bursts, Named, Other, Silent int
	Below                        int
}

func (v *verdict) add(o verdict) {
	v.Longest = max(v.Longest, o.Longest)
	v.Reports, v.Outside = v.Reports+o.Reports, v.Outside+o.Outside
	v.Bursts, v.Named, v.Other, v.Silent, v.Below = v.Bursts+o.Bursts, v.Named+o.Named, v.Other+o.Other, v.Silent+o.Silent, v.Below+o.Below
}

func (v verdict) cells() []string {
	list := []string{fmt.Sprintf("%v, %v", v.Median.Round(100*time.Microsecond), v.Longest.Round(100*time.Microsecond))}
	for _, n := range []int{v.Reports, v.Outside, v.Bursts, v.Named, v.Other, v.Silent, v.Below} {
		list = append(list, fmt.Sprint(n))
	}
	return list
}

func percent(n, of int) string { return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(max(1, of))) }

func (v verdict) say() string {
	return fmt.Sprintf("Of %d bursts longer than %v the largest flow is named first in %s (95 are wanted), another one in %d, nobody in %d; a flow below alpha is first in %d (0). Of %d reports %s are inside of their interval (95).\n",
		v.Bursts, time.Duration(shortest), percent(v.Named, v.Bursts), v.Other, v.Silent, v.Below, v.Reports, percent(v.Reports-v.Outside, v.Reports))
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
func judge(events []bpf.ConquestConquestEvent, log *conquest.Log, list []departures.Departure) (v verdict) {
	t := newTruth(list)
	var waits []time.Duration
	for _, d := range list {
		waits = append(waits, time.Duration(d.Now-d.Enqueued))
	}
	slices.Sort(waits)
	if len(waits) > 0 {
		v.Median, v.Longest = waits[len(waits)/2], waits[len(waits)-1]
	}
	for i := range events {
		e := &events[i]
		low, high := log.Hear(e)
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
	return v
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
	case port == t.largest(b.Begin, b.Last+1):
		v.Named++
	default:
		v.Other++
	}
	if t.share(port, b.Begin, b.Last+1) < alpha {
		v.Below++
	}
}
