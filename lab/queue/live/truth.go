package main

import (
	"slices"

	"github.com/xdpmon/xdpmon/lab/queue/scene"
	"github.com/xdpmon/xdpmon/lab/queue/witness"
)

// packet is one datagram's way through the queue, as its trace points show it. 0: not seen there.
type packet struct {
	port                    uint16
	seq                     uint32
	enqueue, dequeue, start int64 // ns
	cpu                     uint8 // where its transmission began
}

// ways puts sightings together, in the order of transmission; what did not leave is first.
func ways(all []witness.Sighting) []packet {
	type key struct {
		port uint16
		seq  uint32
	}
	at, list := map[key]int{}, []packet{}
	for _, s := range all {
		k := key{s.Port, s.Seq}
		n, known := at[k]
		if !known {
			n = len(list)
			at[k] = n
			list = append(list, packet{port: s.Port, seq: s.Seq})
		}
		p := &list[n]
		switch s.Kind {
		case witness.Enqueue:
			p.enqueue = int64(s.Time)
		case witness.Dequeue:
			p.dequeue = int64(s.Time)
		case witness.Start:
			p.start, p.cpu = int64(s.Time), s.Cpu
		}
	}
	slices.SortStableFunc(list, func(a, b packet) int { return int(max(-1, min(1, a.start-b.start))) })
	return slices.DeleteFunc(list, func(p packet) bool { return p.port < scene.FirstPort || p.enqueue == 0 })
}

// burst of the truth: as the report defines it.
type burst struct {
	begin, last, peak int64
	packets           map[uint16]int // that left from the longest delay before its beginning on
	waited            map[uint16]int // ... and waited tau themselves
}

// culprit is the bursty flow that had half of it or more; 0: flows of the background met by chance.
func (b burst) culprit() (port uint16) {
	for p, n := range b.packets {
		if p >= scene.BurstPort && n > b.packets[port] {
			port = p
		}
	}
	if 2*b.packets[port] < b.all() {
		return 0
	}
	return port
}

// all packets of it.
func (b burst) all() (n int) {
	for _, of := range b.packets {
		n += of
	}
	return n
}

// trueBursts of one transmit queue.
func trueBursts(list []packet) (found []burst) {
	open := false
	for n, p := range list {
		if p.start == 0 {
			continue
		}
		delay := p.start - p.enqueue
		switch {
		case delay >= int64(tau):
			if !open {
				b := burst{begin: p.start, packets: map[uint16]int{}, waited: map[uint16]int{}}
				for k := n - 1; k >= 0 && list[k].start >= p.enqueue; k-- {
					b.packets[list[k].port]++
				}
				found, open = append(found, b), true
			}
			b := &found[len(found)-1]
			b.last, b.peak = p.start, max(b.peak, delay)
			b.packets[p.port]++
			b.waited[p.port]++
		case delay < int64(tau)/2 && open && p.start-found[len(found)-1].last >= int64(tau)/2:
			open = false
		}
	}
	return found
}
