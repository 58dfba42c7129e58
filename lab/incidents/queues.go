package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/demo/traffic"
)

// unfair: one user has most of a link that others want.
func unfair(w *world) *staged {
	w.options.Rate, w.options.Limit = 1e6*w.share(12, 20), 60
	n := w.r.IntN(four(w.clientNets))
	a := w.hosts[n][5]
	for k := range four(w.clientNets) {
		w.early = append(w.early, w.steady(w.hosts[k][:2], k, .05*w.options.Rate/8))
	}
	return &staged{
		what: fmt.Sprintf("client %v opens 12 uploads through a link of %.0f Mbit/s that six others share", a, w.options.Rate/1e6),
		start: func(ctx context.Context) {
			for range 12 {
				w.clients.Upload(ctx, traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, 0, 0, traffic.Congestion("cubic"))
			}
		},
		expect: []want{{unfairUser, sender(a)}},
		hidden: true, capturedAlso: []want{{lossIsBefore, anything}, {networkSlow, anything}},
		proof: func(f *facts) error {
			out := f.during(func(r row) bool { return w.options.Clients.Contains(r.src) })
			return errors.Join(atLeast("its share of the bytes", float64(sum(f.during(from(one(a)))))/float64(sum(out)), .55),
				atLeast("packets that tc counts as dropped", float64(f.after.dropped-f.calm.dropped), 10))
		},
	}
}

// steady lets hosts upload at a rate each, from the start on.
func (w *world) steady(hosts []netip.Addr, n int, rate float64) func(context.Context) {
	return func(ctx context.Context) {
		for _, a := range hosts {
			w.clients.Upload(ctx, traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, rate, 0)
		}
	}
}

// full: many hosts fill the link, each as much as the others.
func full(w *world) *staged {
	w.options.Rate, w.options.Limit = 1e6*w.share(10, 16), 80
	return &staged{
		what: fmt.Sprintf("fifteen hosts upload through a link of %.0f Mbit/s, each as much as the others", w.options.Rate/1e6),
		start: func(ctx context.Context) {
			for n := range four(w.clientNets) {
				for _, a := range w.hosts[n][:5] {
					w.clients.Upload(ctx, traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, 0, 0, traffic.Congestion("cubic"))
				}
			}
		},
		expect: []want{{linkIsFull, here}},
		also:   []want{{lossIsHere, here}},
		hidden: true, capturedAlso: []want{{lossIsBefore, anything}, {networkSlow, anything}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("use of the link", w.use(f), .9), atMost("... before", w.usedBefore(f), .7), atLeast("packets that tc counts as dropped", float64(f.after.dropped-f.calm.dropped), 20))
		},
	}
}

// use is the share of the link's rate that tshark's bytes have, from a second after the onset on.
func (w *world) use(f *facts) float64 {
	from := f.onset.Add(time.Second)
	var bytes int
	var last time.Time
	for _, r := range f.rows {
		if r.at.After(from) && (w.options.Clients.Contains(r.src) || w.options.Clients6.Contains(r.src)) {
			bytes, last = bytes+r.bytes, r.at
		}
	}
	return float64(bytes) * 8 / last.Sub(from).Seconds() / w.options.Rate
}

// usedBefore is the same share until the onset.
func (w *world) usedBefore(f *facts) float64 {
	before := f.before(func(r row) bool { return w.options.Clients.Contains(r.src) || w.options.Clients6.Contains(r.src) })
	if len(before) == 0 {
		return 0
	}
	return float64(sum(before)) * 8 / before[len(before)-1].at.Sub(before[0].at).Seconds() / w.options.Rate
}

// standing: one upload fills a long queue and keeps it full.
func standing(w *world) *staged {
	w.options.Rate, w.options.Limit = 1e6*w.share(8, 14), 150+w.r.IntN(100)
	n := w.r.IntN(four(w.clientNets))
	a := w.hosts[n][4]
	return &staged{
		what: fmt.Sprintf("one upload of %v keeps a queue of %d packets at %.0f Mbit/s filled", a, w.options.Limit, w.options.Rate/1e6),
		start: func(ctx context.Context) {
			w.clients.Upload(ctx, traffic.Pair{From: a, To: w.pair(w.r, n, traffic.HTTPS).To}, 0, 0, traffic.Congestion("cubic"))
		},
		expect: []want{{unfairUser, sender(a)}},
		hidden: true, capturedAlso: []want{{lossIsBefore, anything}, {networkSlow, anything}},
		proof: func(f *facts) error {
			return errors.Join(atLeast("packets that wait, as tc has it at the end", float64(f.after.backlog), 20), atMost("... before", float64(f.calm.backlog), 10))
		},
	}
}

// microburst: one flow sends a burst now and then; the link is far from full.
func microburst(w *world) *staged {
	w.options.Rate, w.options.Limit = 1e6*w.share(15, 25), 400
	n := w.r.IntN(four(w.clientNets))
	a := w.hosts[n][3]
	count, every := 120+w.r.IntN(60), w.between(250*time.Millisecond, 350*time.Millisecond)
	to := netip.AddrPortFrom(anyOf(w.r, w.targets[0]), 9999)
	return &staged{
		what:   fmt.Sprintf("client %v sends %d datagrams at once every %v; the link of %.0f Mbit/s is far from full", a, count, every.Round(time.Millisecond), w.options.Rate/1e6),
		start:  func(ctx context.Context) { w.clients.Burst(ctx, traffic.Pair{From: a, To: to}, 1300, count, every) },
		expect: []want{{unfairUser, sender(a)}},
		hidden: true,
		proof: func(f *facts) error {
			is := all(from(one(a)), func(r row) bool { return r.dport == to.Port() })
			return errors.Join(atLeast("datagrams", float64(len(f.during(is))), 8*float64(count)), atMost("use of the link", w.use(f), .6))
		},
	}
}
