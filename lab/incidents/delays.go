package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/demo/traffic"
)

// slowNear: the clients' network takes longer, both ways: the ACK of a handshake is late, the SYN-ACK is not.
func slowNear(w *world) *staged {
	n := w.r.IntN(four(w.clientNets))
	p, d := w.clientNets[n], w.between(60*time.Millisecond, 150*time.Millisecond)
	return &staged{
		what: fmt.Sprintf("packets of %v take %v more each way, on the clients' side", p, d.Round(time.Millisecond)),
		start: set(fault{w.up.near, stage.Fault{Match: hosts(p, source), Delay: d}},
			fault{w.down.near, stage.Fault{Match: hosts(p, destination), Delay: d}}),
		expect: []want{{networkSlow, network(p)}},
		proof: func(f *facts) error {
			acks := all(from(p), answered, func(r row) bool { return r.payload == 0 && !r.isSYN() })
			return errors.Join(atLeast("median delay of ACKs from there, s", rise(f, acks), 1.6*d.Seconds()),
				atMost("... of SYN-ACKs to there, s", rise(f, all(to(p), answered, row.isSYNACK)), .2*d.Seconds()))
		},
	}
}

// rise is by how much the median of the delay that tshark found rose, s.
func rise(f *facts, is func(row) bool) float64 {
	return (median(f.during(is), ackRTT) - median(f.before(is), ackRTT)).Seconds()
}

// slowFar: the same on the servers' side: SYN-ACKs and ACKs of data are late.
func slowFar(w *world) *staged {
	n := w.r.IntN(four(w.serverNets))
	p, d := w.serverNets[n], w.between(40*time.Millisecond, 120*time.Millisecond)
	return &staged{
		what:   fmt.Sprintf("packets of %v take %v more each way, on the servers' side", p, d.Round(time.Millisecond)),
		start:  set(fault{w.up.far, stage.Fault{Match: hosts(p, destination), Delay: d}}, fault{w.down.far, stage.Fault{Match: hosts(p, source), Delay: d}}),
		expect: []want{{networkSlow, network(p)}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("median delay of SYN-ACKs from there, s", rise(f, all(from(p), answered, row.isSYNACK)), 1.6*d.Seconds()),
				atLeast("... of ACKs of data, s", rise(f, all(from(p), answered, func(r row) bool { return !r.isSYNACK() && r.payload == 0 })), 1.6*d.Seconds()))
		},
	}
}

// slowToAccept: one server accepts late and answers late; its kernel acknowledges data at once.
func slowToAccept(w *world) *staged {
	a, d := w.server4(), w.between(120*time.Millisecond, 400*time.Millisecond)
	begin := set(fault{w.down.far, stage.Fault{Match: synAck(hosts(one(a), source)), Delay: d}})
	return &staged{
		what:   fmt.Sprintf("server %v sends SYN-ACKs and answers %v later; it acknowledges data at once", a, d.Round(time.Millisecond)),
		start:  func(ctx context.Context) { begin(ctx); w.servers.Slow(a, d) },
		expect: []want{{serverSlow, hostOf(a)}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("median delay of its SYN-ACKs, s", rise(f, all(from(one(a)), answered, row.isSYNACK)), .9*d.Seconds()),
				atMost("... of its ACKs of data, s", rise(f, all(from(one(a)), answered, func(r row) bool { return !r.isSYNACK() && r.payload == 0 })), .1*d.Seconds()))
		},
	}
}

// slowToAnswer: one server takes longer for its answers; its kernel shakes hands and acknowledges data at once.
func slowToAnswer(w *world) *staged {
	a, d := w.server4(), w.between(150*time.Millisecond, 500*time.Millisecond)
	return &staged{
		what:   fmt.Sprintf("server %v answers %v later; it shakes hands and acknowledges data at once", a, d.Round(time.Millisecond)),
		start:  func(context.Context) { w.servers.Slow(a, d) },
		expect: []want{{serverSlow, hostOf(a)}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("rise of the median time from a request to the first byte of its answer, s", (f.answerDelay(a, true)-f.answerDelay(a, false)).Seconds(), .9*d.Seconds()),
				atMost("... of its SYN-ACKs, s", rise(f, all(from(one(a)), answered, row.isSYNACK)), .1*d.Seconds()))
		},
	}
}

// slowReader: a client reads what it downloads slower than it arrives, and closes its window.
func slowReader(w *world) *staged {
	n := w.r.IntN(four(w.clientNets))
	a := anyOf(w.r, w.hosts[n])
	rate := 15_000 + w.r.IntN(25_000)
	return &staged{
		what: fmt.Sprintf("client %v downloads over four connections and reads %d kB/s of each: its windows close", a, rate/1000),
		start: func(ctx context.Context) {
			for range 4 {
				p := w.pair(w.r, n, traffic.HTTPS)
				p.From = a
				w.clients.Exchange(ctx, p, traffic.Ask{Upload: 100, Answer: 40e6, ReadRate: rate}, traffic.Receive(16<<10))
			}
		},
		expect: []want{{receiverSlow, hostOf(a)}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("zero windows from there", float64(len(f.during(all(from(one(a)), zeroWindow)))), 20),
				atMost("... before", float64(len(f.before(zeroWindow))), 0))
		},
	}
}

// lateAcks: a client takes data and acknowledges it late, while its handshakes are as quick as before.
func lateAcks(w *world) *staged {
	n := w.r.IntN(four(w.clientNets))
	a, d := anyOf(w.r, w.hosts[n]), w.between(150*time.Millisecond, 300*time.Millisecond)
	late := pureAck(hosts(one(a), source))
	begin := set(fault{w.up.near, stage.Fault{Match: late, Delay: d}})
	return &staged{
		what: fmt.Sprintf("client %v downloads, and its ACKs of data are sent %v later", a, d.Round(time.Millisecond)),
		start: func(ctx context.Context) {
			begin(ctx)
			for range 3 {
				w.clients.Session(ctx, w.fork(), traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, 50*time.Millisecond, download)
			}
		},
		expect: []want{{receiverSlow, hostOf(a)}},
		proof: func(f *facts) error {
			return atLeast("median delay of its ACKs, s", rise(f, all(from(one(a)), answered, func(r row) bool { return r.payload == 0 })), .8*d.Seconds())
		},
	}
}

// dnsSlow: one resolver takes longer.
func dnsSlow(w *world) *staged {
	at, d := w.resolvers[0], w.between(150*time.Millisecond, 600*time.Millisecond)
	return &staged{
		what:   fmt.Sprintf("resolver %v takes %v more", at.Addr(), d.Round(time.Millisecond)),
		start:  func(context.Context) { w.answers[at].Set(d, false) },
		expect: []want{{dnsIsSlow, exactly(at.Addr().String())}},
		proof: func(f *facts) error {
			is := all(from(one(at.Addr())), func(r row) bool { return r.dns && r.dnsTime > 0 })
			return atLeast("rise of the median of dns.time, s", (median(f.during(is), dnsTime) - median(f.before(is), dnsTime)).Seconds(), .9*d.Seconds())
		},
	}
}

// dnsSilent: one resolver answers nothing any more.
func dnsSilent(w *world) *staged {
	at := w.resolvers[0]
	return &staged{
		what:   fmt.Sprintf("resolver %v does not answer any more", at.Addr()),
		start:  func(context.Context) { w.answers[at].Set(0, true) },
		expect: []want{{dnsUnanswered, exactly(at.Addr().String())}},
		proof:  func(f *facts) error { return silent(f, at, func(r row) bool { return r.dns }) },
	}
}

// silent is a proof that there are questions and no answers, but for what was on its way.
func silent(f *facts, at netip.AddrPort, is func(row) bool) error {
	return errors.Join(atLeast("questions", float64(len(f.during(all(to(one(at.Addr())), is)))), 10),
		atLeast("answers before", float64(len(f.before(all(from(one(at.Addr())), is)))), 3),
		atMost("answers", float64(len(f.during(all(from(one(at.Addr())), is)))), 3))
}

func isNTP(r row) bool { return r.sport == traffic.NTP || r.dport == traffic.NTP }

// ntpSlow: one of the clocks answers late.
func ntpSlow(w *world) *staged {
	at, d := w.clocks[0], w.between(150*time.Millisecond, 500*time.Millisecond)
	return &staged{
		what:   fmt.Sprintf("time server %v takes %v more", at.Addr(), d.Round(time.Millisecond)),
		start:  func(context.Context) { w.answers[at].Set(d, false) },
		expect: []want{{ntpIsSlow, exactly(at.Addr().String())}},
		proof: func(f *facts) error {
			is := func(r row) bool { return isNTP(r) && (r.src == at.Addr() || r.dst == at.Addr()) }
			return atLeast("rise of the median time from a question to the next answer to that port, s", (ntpDelay(f, is, true) - ntpDelay(f, is, false)).Seconds(), .9*d.Seconds())
		},
	}
}

// ntpDelay pairs questions with answers by the client's port.
func ntpDelay(f *facts, is func(row) bool, during bool) time.Duration {
	asked := map[netip.AddrPort]time.Time{}
	var delays []row
	for _, r := range f.pick(is, during) {
		if r.dport == traffic.NTP {
			asked[netip.AddrPortFrom(r.src, r.sport)] = r.at
		} else if t, ok := asked[netip.AddrPortFrom(r.dst, r.dport)]; ok {
			delays = append(delays, row{ackRTT: r.at.Sub(t)})
		}
	}
	return median(delays, ackRTT)
}

// ntpSilent: one of the clocks answers nothing any more.
func ntpSilent(w *world) *staged {
	at := w.clocks[0]
	return &staged{
		what:   fmt.Sprintf("time server %v does not answer any more", at.Addr()),
		start:  func(context.Context) { w.answers[at].Set(0, true) },
		expect: []want{{ntpUnanswered, exactly(at.Addr().String())}},
		proof:  func(f *facts) error { return silent(f, at, isNTP) },
	}
}
