package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/demo/traffic"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// oneWay: the servers' answers take another path from now on.
func oneWay(w *world) *staged {
	return &staged{
		what:   "answers of all servers take a path past the device",
		start:  func(context.Context) { w.failed(w.stage.Past()) },
		expect: []want{{directionMissing, here}},
		proof: func(f *facts) error {
			back := func(r row) bool { return w.options.Servers.Contains(r.src) || w.options.Servers6.Contains(r.src) }
			late := func(r row) bool { return r.at.After(f.onset.Add(500*time.Millisecond)) && back(r) }
			return errors.Join(atLeast("packets from servers before", float64(len(f.before(back))), 100), atMost("... since", float64(len(f.during(late))), 0),
				atLeast("packets to servers since", float64(len(f.during(func(r row) bool { return !back(r) }))), 100))
		},
	}
}

// tunnels: a part of the traffic is wrapped into GRE from now on, which is not looked into unless it is asked for.
func tunnels(w *world) *staged {
	a, b, rate := anyOf(w.r, w.targets[0]), w.hosts[0][0], w.share(500, 900)
	ends := [2]netip.Addr{netip.AddrFrom4([4]byte{172, 31, 2, 2}), netip.AddrFrom4([4]byte{172, 31, 1, 1})}
	return &staged{
		what: fmt.Sprintf("%.0f packets a second arrive in a GRE tunnel", rate),
		start: func(ctx context.Context) {
			seq := uint32(1)
			w.inject(ctx, true, rate, func(r *rand.Rand) *builder.Spec {
				seq += 500
				return &builder.Spec{Outer: &builder.Outer{Kind: builder.GRE, Src: ends[0], Dst: ends[1]}, IP: builder.IP{Src: a, Dst: b},
					TCP: &builder.TCP{SrcPort: traffic.HTTPS, DstPort: 40000, Seq: seq, Ack: 1, Flags: packet.ACK, Window: 500}, PayloadLen: 500}
			})
		},
		expect: []want{{unparsed, here}},
		proof: func(f *facts) error {
			inGRE := func(r row) bool { return strings.Contains(r.protocols, ":gre") }
			return atLeast("share in GRE", float64(len(f.during(inGRE)))/float64(len(f.during(func(row) bool { return true }))), .1)
		},
	}
}

// tooSmall: far more flows than the tables hold.
func tooSmall(w *world) *staged {
	rate := 4000.
	return &staged{
		what: fmt.Sprintf("%.0f packets a second of flows that have two or three packets each", rate),
		start: func(ctx context.Context) {
			w.inject(ctx, false, rate, func(r *rand.Rand) *builder.Spec {
				from := netip.AddrPortFrom(w.hosts[r.IntN(four(w.clientNets))][r.IntN(hostsOfNet)], uint16(1024+r.IntN(60000)))
				to := netip.AddrPortFrom(anyOf(r, w.targets[r.IntN(four(w.serverNets))]), traffic.HTTPS)
				s := syn(r, from, to)
				s.TCP.Flags, s.TCP.Options, s.PayloadLen = packet.ACK, nil, 40
				return s
			})
		},
		expect: []want{{tableTooSmall, anything}},
		proof: func(f *facts) error {
			return atLeast("different flows", float64(different(f.during(data), func(r row) [2]netip.AddrPort {
				return [2]netip.AddrPort{netip.AddrPortFrom(r.src, r.sport), netip.AddrPortFrom(r.dst, r.dport)}
			})), 10000)
		},
	}
}

// quiet: nothing happens.
func quiet(*world) *staged {
	return &staged{what: "nothing", start: func(context.Context) {}, proof: func(f *facts) error {
		return errors.Join(atMost("packets lost in the queue", float64(f.after.dropped), 0), atMost("share of retransmissions", float64(len(f.during(retransmitted)))/float64(len(f.rows)), .002))
	}}
}

// louder: twice the usual traffic in the same proportions, which is no incident.
func louder(w *world) *staged {
	return &staged{what: "three halves of the usual traffic, in the same proportions", start: func(ctx context.Context) {
		w.clients.Exchanges(ctx, w.fork(), exchanges/2, w.exchange)
		w.clients.Questions(ctx, w.fork(), questions/2, func(r *rand.Rand) traffic.Pair { return traffic.Pair{From: w.client4(r), To: anyOf(r, w.resolvers)} })
	}, proof: func(f *facts) error {
		return atMost("share of retransmissions", float64(len(f.during(retransmitted)))/float64(len(f.rows)), .002)
	}}
}

// promise: a network has been too slow for what is promised of it for as long as anybody remembers; nothing changes.
func promise(percentile string) func(*world) *staged {
	return func(w *world) *staged { return w.promise(percentile) }
}

func (w *world) promise(percentile string) *staged {
	n := w.r.IntN(four(w.serverNets))
	p, d := w.serverNets[n], w.between(40*time.Millisecond, 80*time.Millisecond)
	w.delays[p] = d
	return &staged{
		what:  fmt.Sprintf("%v is %v away, as always, and %s < 50ms is promised", p, 2*d.Round(time.Millisecond), percentile),
		start: func(context.Context) {}, always: true,
		args:   []string{"--promise", p.String() + " " + percentile + " < 50ms"},
		expect: []want{{promiseBroken, network(p)}},
		proof: func(f *facts) error {
			is := all(from(p), answered, row.isSYNACK)
			return atLeast("median delay of SYN-ACKs, s", median(f.during(is), ackRTT).Seconds(), .06)
		},
	}
}

// late: xdpmon itself gets no processor for a while.
func late(w *world) *staged {
	d := w.between(3*time.Second, 4*time.Second)
	return &staged{
		what: fmt.Sprintf("xdpmon is stopped for %v", d.Round(100*time.Millisecond)),
		start: func(ctx context.Context) {
			if w.pause != nil {
				w.pause(ctx, d)
			}
		},
		expect: []want{{windowsLate, anything}}, hidden: true,
	}
}

// fullAndLossy: a full link, and losses before the device that it hides. The uploads that losses need take 10 to 12 Mbit/s from the start on: the link has twice
// as much, or it would be full before the incident. In a capture behind the queue both are segments that are missing: their place is the
// network that loses them where most are its own, and the capture where they are not.
func fullAndLossy(w *world) *staged {
	s := together(full, lossBefore)(w)
	w.options.Rate, w.options.Limit = 2*w.options.Rate, 2*w.options.Limit
	s.what += fmt.Sprintf("; the link has twice the rate, %.0f Mbit/s", w.options.Rate/1e6)
	lost := s.captured[0].subject
	s.captured[0].subject = subject{lost.what + ", or the capture", func(name string) bool { return lost.right(name) || here.right(name) }}
	return s
}

// together: two incidents at once.
func together(first, second func(*world) *staged) func(*world) *staged {
	return func(w *world) *staged {
		a, b := first(w), second(w)
		return &staged{
			what:   a.what + "; after it " + b.what,
			start:  func(ctx context.Context) { a.start(ctx); b.start(ctx) },
			expect: append(a.expect, b.expect...), also: append(a.also, b.also...),
			captured: append(a.inCapture(), b.inCapture()...), capturedAlso: append(a.capturedAlso, b.capturedAlso...),
			hidden: a.hidden && b.hidden,
			proof:  func(f *facts) error { return errors.Join(a.proof(f), b.proof(f)) },
		}
	}
}
