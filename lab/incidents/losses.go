package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/demo/traffic"
)

func download(r *rand.Rand) traffic.Ask {
	return traffic.Ask{Upload: 100, Answer: 20_000 + r.IntN(20_000)}
}

func upload(r *rand.Rand) traffic.Ask {
	return traffic.Ask{Upload: 20_000 + r.IntN(20_000), Answer: 100}
}

// busy lets hosts of a network upload, or download, from the start on, so that there is something to lose.
func (w *world) busy(n int, ask func(*rand.Rand) traffic.Ask) func(context.Context) {
	return func(ctx context.Context) {
		for _, a := range w.hosts[n][:3] {
			w.clients.Session(ctx, w.fork(), traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, 60*time.Millisecond, ask)
		}
	}
}

// lossBefore: what clients of a network send is lost before it reaches the device.
func lossBefore(w *world) *staged {
	n := w.r.IntN(four(w.clientNets))
	p, share := w.clientNets[n], w.share(.03, .08)
	w.early = append(w.early, w.busy(n, upload))
	return &staged{
		what:   fmt.Sprintf("%.1f %% of what %v sends is lost before the device", 100*share, p),
		start:  set(fault{w.up.near, stage.Fault{Match: hosts(p, source), Loss: share}}),
		expect: []want{{lossIsBefore, network(p)}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("segments with a hole in front of them", float64(len(f.during(all(from(p), data, lostBefore)))), 10),
				atMost("... before", float64(len(f.before(all(from(p), data, lostBefore)))), 3))
		},
	}
}

// lossAfter: what goes to servers of a network is lost behind the device.
func lossAfter(w *world) *staged {
	n := w.r.IntN(four(w.serverNets))
	p, share := w.serverNets[n], w.share(.03, .08)
	w.early = append(w.early, func(ctx context.Context) {
		for k := range 6 {
			pair := traffic.Pair{From: w.client4(w.r), To: netip.AddrPortFrom(w.targets[n][k%serversOf], traffic.HTTPS)}
			w.clients.Session(ctx, w.fork(), pair, 80*time.Millisecond, upload)
		}
	})
	return &staged{
		what:   fmt.Sprintf("%.1f %% of what goes to %v is lost after the device", 100*share, p),
		start:  set(fault{w.up.far, stage.Fault{Match: hosts(p, destination), Loss: share}}),
		expect: []want{{lossIsAfter, network(p)}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("segments that pass again", float64(len(f.during(all(to(p), data, retransmitted)))), 15),
				atMost("segments to there with a hole in front", float64(len(f.during(all(to(p), data, lostBefore)))), 3))
		},
	}
}

// lossHere: the device's own queue is too short for what its senders burst.
func lossHere(w *world) *staged {
	w.options.Rate, w.options.Limit = 1e6*w.share(16, 24), 50+w.r.IntN(20)
	n := w.r.IntN(four(w.clientNets))
	return &staged{
		what: fmt.Sprintf("four hosts of %v upload through a queue of %d packets at %.0f Mbit/s, which overflows", w.clientNets[n], w.options.Limit, w.options.Rate/1e6),
		start: func(ctx context.Context) {
			for _, a := range w.hosts[n][:4] {
				w.clients.Upload(ctx, traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, 0, 0, traffic.Congestion("cubic"))
			}
		},
		expect: []want{{lossIsHere, here}},
		also:   []want{{linkIsFull, here}},
		hidden: true, capturedAlso: []want{{lossIsBefore, anything}}, // it is before the place of the capture
		argued: func(f *facts) []want { return []want{{networkSlow, lateIn(f, w.clientNets)}} }, // and what waits in it is late there
		proof: func(f *facts) error {
			return errors.Join(atLeast("packets that tc counts as dropped", float64(f.after.dropped-f.calm.dropped), 20), atMost("... before", float64(f.calm.dropped), 0))
		},
	}
}

// reordered: packets overtake each other before the device; nothing is lost.
func reordered(w *world) *staged {
	n := w.r.IntN(four(w.clientNets))
	p, share, by := w.clientNets[n], w.share(.04, .10), w.between(1500*time.Microsecond, 2500*time.Microsecond)
	w.early = append(w.early, w.busy(n, upload))
	return &staged{
		what:   fmt.Sprintf("%.1f %% of the data from %v arrive %v later than what was sent after them; nothing is lost", 100*share, p, by.Round(100*time.Microsecond)),
		start:  set(fault{w.up.near, stage.Fault{Match: tcpData(hosts(p, source)), Hold: share, HoldBy: by}}),
		expect: []want{{reorderedAlone, network(p)}},
		proof: func(f *facts) error {
			return atLeast("segments that tshark finds out of order or takes for lost", float64(len(f.during(all(from(p), data, func(r row) bool { return r.outOfOrder || r.lostBefore })))), 15)
		},
	}
}

// deadServer: nothing of a server's answers arrives any more, and it gets nothing.
func deadServer(w *world) *staged {
	a := w.server4()
	return &staged{
		what: fmt.Sprintf("server %v is dead: SYNs to it stay unanswered", a),
		start: set(fault{w.up.far, stage.Fault{Match: hosts(one(a), destination), Loss: 1}},
			fault{w.down.far, stage.Fault{Match: hosts(one(a), source), Loss: 1}}),
		expect: []want{{notAnswered, hostOf(a)}},
		also:   []want{{lossIsAfter, hostOf(a)}}, // what connections that were open send again
		proof: func(f *facts) error {
			return errors.Join(atLeast("SYNs to it", float64(len(f.during(all(to(one(a)), row.isSYN)))), 15),
				atMost("SYN-ACKs from it", float64(len(f.during(all(from(one(a)), row.isSYNACK)))), 2))
		},
	}
}

// storm: so much is lost that a large part of what passes is repetitions.
func storm(w *world) *staged {
	n := w.r.IntN(four(w.serverNets))
	p, share := w.serverNets[n], w.share(.35, .5)
	w.early = append(w.early, func(ctx context.Context) {
		for k := range 8 {
			pair := traffic.Pair{From: w.client4(w.r), To: netip.AddrPortFrom(w.targets[n][k%serversOf], traffic.HTTPS)}
			w.clients.Session(ctx, w.fork(), pair, 60*time.Millisecond, upload)
		}
	})
	return &staged{
		what:   fmt.Sprintf("%.0f %% of what goes to %v is lost after the device: senders repeat most of it", 100*share, p),
		start:  set(fault{w.up.far, stage.Fault{Match: hosts(p, destination), Loss: share}}),
		expect: []want{{lossIsAfter, network(p)}},
		also:   []want{{notAnswered, network(p)}}, // of the SYNs so many are lost, too
		proof: func(f *facts) error {
			sent := len(f.during(all(to(p), data)))
			return atLeast("share of the segments that pass again", float64(len(f.during(all(to(p), data, retransmitted))))/float64(max(sent, 1)), .15)
		},
	}
}

// lateIn is a network whose ACKs tshark finds late: each of these networks that it holds, by as much as is worth a finding.
func lateIn(f *facts, networks []netip.Prefix) subject {
	late := map[netip.Prefix]bool{}
	for _, p := range networks {
		acks := all(from(p), answered, func(r row) bool { return r.payload == 0 && !r.isSYN() && !r.isSYNACK() })
		before, during := median(f.before(acks), ackRTT), median(f.during(acks), ackRTT)
		late[p] = before > 0 && during >= before+before/2 && during >= before+2*time.Millisecond
	}
	return subject{"networks whose ACKs tshark finds late", func(name string) bool {
		q, err := netip.ParsePrefix(name)
		some := false
		for p, is := range late {
			if err == nil && q.Overlaps(p) {
				if some = true; !is {
					return false
				}
			}
		}
		return some
	}}
}
