package link

import (
	"container/heap"
	"fmt"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Window is a user who has so many packets under way, as connections on a local socket have: the next one is sent when one has left, and its acknowledgement has arrived.
type Window struct {
	Packets int
	Trip    time.Duration
	From    time.Duration
	Proto   packet.Valid // packet.TCP, or packet.UDP; 0: TCP
}

// Left is what left of users' bytes, by the milliseconds in which it did, and the packets that were dropped.
type Left struct {
	Users   []Flow
	Dropped []int         // ever
	Late    []int         // since settled
	Longest time.Duration // that a packet waited
}

// steerDepart is STEER_DEPART.
const steerDepart = 3

// settled is when limits are found.
const settled = time.Second

// timeout is how long a window with a loss waits.
const timeout = 200 * time.Millisecond

// Pace lets users send until the end: a packet leaves at the time of departure that it was given, as in a queue that keeps it.
func (l *Link) Pace(users []Window, end time.Duration) (*Left, error) {
	d := &Left{Users: make([]Flow, len(users)), Dropped: make([]int, len(users)), Late: make([]int, len(users))}
	queue := senders{}
	for n, u := range users {
		d.Users[n].Passed = make([]float64, int(end/Step))
		for slot := range u.Packets {
			s := l.sender(n, User{From: u.From, Rate: 1e12, Src: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), Proto: max(u.Proto, packet.TCP)})
			s.next += time.Duration(slot) * time.Microsecond
			queue = append(queue, s)
		}
	}
	heap.Init(&queue)
	for tick := time.Duration(0); queue[0].next < end; heap.Fix(&queue, 0) {
		s := queue[0]
		for ; tick <= s.next; tick += time.Duration(l.Algorithm.(algo.Controller).IntervalNS()) {
			if err := l.Algorithm.(algo.Controller).Tick(traffic.Start + int64(tick)); err != nil {
				return nil, err
			}
		}
		wait, passed, err := l.wait(&s.packet, s.next)
		if err != nil {
			return nil, err
		}
		if !passed {
			d.Dropped[s.user]++
			if s.next >= settled {
				d.Late[s.user]++
			}
			s.next += timeout
			continue
		}
		s.next += wait
		d.Longest = max(d.Longest, wait)
		if s.next < end {
			d.Users[s.user].Passed[s.next/Step] += float64(s.packet.Len)
		}
		s.next += users[s.user].Trip
	}
	return d, nil
}

// wait is how long a packet has to, and whether it passes.
func (l *Link) wait(p *packet.Packet, at time.Duration) (wait time.Duration, passed bool, err error) {
	var f packet.Frame
	p.Time = l.stamp(at)
	if err := l.packer.Frame(p, &f); err != nil {
		return 0, false, err
	}
	v, err := l.feed.Step(&f)
	if err != nil {
		return 0, false, fmt.Errorf("send packet: %w", err)
	}
	if v.Steering == steerDepart {
		wait = time.Duration(v.Steer)
	}
	return wait, v.Verdict != verdictDrop, nil
}
