package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// host is a virtual host whose traffic has no incident: load and delays swing over the day and the week, noise is correlated over minutes, and some
// windows are odd. Its reports have the fields and intervals that rules read.
type host struct {
	r        *rand.Rand
	networks []network
	servers  []network // DNS
	clocks   []network // NTP: few questions a window
	walk     walk      // of load
	loss     walk
	prefixes []walk
	number   int
}

type network struct {
	name  string
	delay float64 // ns, at no load
	rate  float64 // answers a second at mean load
	noise walk
}

// walk is a first-order autoregression around 0.
type walk struct{ x, keep, step float64 }

func (w *walk) next(r *rand.Rand) float64 {
	w.x = w.keep*w.x + w.step*r.NormFloat64()
	return w.x
}

// steady is a walk with a standard deviation, correlated over a number of windows.
func steady(deviation, windows float64) walk {
	keep := math.Exp(-1 / windows)
	return walk{keep: keep, step: deviation * math.Sqrt(1-keep*keep)}
}

// What quiet traffic is like.
const (
	windowNS     = 10e9
	day          = 86400e9
	odd          = .004 // share of windows in which something short happens: a route flaps, a backup starts
	spread       = .6   // of single delays, log
	spreadLong   = 1.3  // of durations, log
	halfOfBin    = 1.045
	minutes      = 60e9 / windowNS
	lossOrdinary = 2e-4
)

func newHost(seed uint64) *host {
	r := rand.New(rand.NewPCG(seed, 77))
	h := &host{r: r, walk: steady(.15, 30*minutes), loss: steady(.7, 5*minutes)}
	for n := range 8 {
		h.networks = append(h.networks, network{fmt.Sprintf("10.%d.0.0/24", n), 2e6 * math.Exp(r.Float64()*4), .7 * math.Exp(r.NormFloat64()), steady(.07, 10*minutes)})
	}
	for n := range 2 {
		h.servers = append(h.servers, network{fmt.Sprintf("10.9.0.%d/32", 10+n), 2e6, 4, steady(.1, 10*minutes)})
	}
	for n := range 3 {
		h.clocks = append(h.clocks, network{fmt.Sprintf("10.9.1.%d/32", 10+n), 8e6, .2 * float64(n+1), steady(.1, 10*minutes)})
	}
	for range 6 {
		h.prefixes = append(h.prefixes, steady(.25, 20*minutes))
	}
	return h
}

// load is 0 to about 1: low at night and at weekends.
func (h *host) load(at float64) float64 {
	hour, weekday := math.Mod(at/3600e9, 24), int(at/day)%7
	l := .55 - .4*math.Cos(2*math.Pi*(hour-4)/24)
	if weekday >= 5 {
		l *= .6
	}
	return l * math.Exp(h.walk.next(h.r))
}

// poisson draws a number of events.
func (h *host) poisson(mean float64) float64 {
	if mean > 40 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*h.r.NormFloat64()))
	}
	n, p := 0., h.r.Float64()
	for limit := math.Exp(-mean); p > limit; n++ {
		p *= h.r.Float64()
	}
	return n
}

// burst is 1 in most windows, and several times that in odd ones.
func (h *host) burst(chance float64) float64 {
	if h.r.Float64() < chance {
		return math.Exp(math.Abs(h.r.NormFloat64()) * 1.2)
	}
	return 1
}

// window is the lines of the next window of all algorithms.
func (h *host) window() []report.Line {
	at := float64(h.number) * windowNS
	load := h.load(at)
	w := report.Window{Start: start + int64(at), End: start + int64(at+windowNS), Number: h.number}
	h.number++
	line := func(algorithm string, b report.Body, lost map[string]uint64) report.Line {
		n := uint64(20000 * load)
		return report.Line{Algorithm: algorithm, Identity: report.Identity{Interfaces: []string{"eth0"}}, Window: w, Packets: report.Packets{Seen: n, Parsed: n}, Report: b, Lost: lost}
	}
	late := 1 + .8*load*load // queues of the network at busy hours
	lines := []report.Line{
		line("fridge", h.delays("delay from SYN to SYN-ACK", h.networks, load, late, spread, .995), nil),
		line("fridge", h.closed(h.delays("delay from data to its ACK", h.networks, 3*load, late, spread*1.5, .7)), nil),
		line("fridge", h.delays("duration of TCP flows, SYN to FIN or RST", h.networks, load, 20*late, spreadLong, .95), nil),
		line("fridge", h.delays("delay of DNS answers", h.servers, load, late, 1, .99), nil),
		line("fridge", h.delays("delay of NTP answers", h.clocks, load, late, 1, .99), nil),
		line("lean", h.segments(load), map[string]uint64{"loss_not_followed": uint64(100 * load)}),
		line("hhh", h.shares(load), map[string]uint64{}),
		line("conquest", h.queue(load), map[string]uint64{}),
	}
	lines[len(lines)-1].Packets.Queue = h.drops(load)
	return lines
}

// drops are what the queue drops: hardly anything, in bursts.
func (h *host) drops(load float64) *report.Queue {
	carried := h.poisson(10000 * load)
	return &report.Queue{Carried: uint64(carried), Dropped: uint64(min(carried, h.poisson(carried*2e-4*load*h.burst(10*odd))))}
}

// start is Monday 2026-01-05: ns since 1970.
const start = 1767571200e9

func value(name string, v float64) report.Value { return report.Value{Name: name, Value: v} }

// delays of groups: medians of so many samples, in bins of a fridge with groups.
func (h *host) delays(title string, networks []network, load, late, spread, answered float64) report.Body {
	t := report.Table{Name: "groups"}
	for _, c := range []string{"group", "matched", "estimated", "estimated_low", "estimated_high", "p50_ns", "p50_low_ns", "p50_high_ns"} {
		t.Columns = append(t.Columns, report.Column{Name: c})
	}
	requests, answers := 0., 0.
	for i := range networks {
		n := &networks[i]
		asked := h.poisson(n.rate * load * windowNS / 1e9)
		got := 0.
		for range int(asked) {
			if h.r.Float64() < answered {
				got++
			}
		}
		requests, answers = requests+asked, answers+got
		if got == 0 {
			continue
		}
		p50 := n.delay * late * h.burst(odd) * math.Exp(n.noise.next(h.r)+1.25*spread/math.Sqrt(got)*h.r.NormFloat64())
		t.Rows = append(t.Rows, []any{n.name, got, got, got, got, p50, p50 / halfOfBin, p50 * halfOfBin})
	}
	return report.Body{Values: []report.Value{value("requests", requests), value("responses", answers), value("estimated", answers), value("matched", answers), value("inserted", requests)},
		Distributions: []report.Distribution{{Name: "delay_ns", Title: title}}, Tables: []report.Table{t}}
}

// closed adds zero windows: now and then a reader is away for a moment, and its host closes its window once, or some times in a row.
func (h *host) closed(b report.Body) report.Body {
	t, all := &b.Tables[0], 0.
	t.Columns = append(t.Columns, report.Column{Name: "zero_windows"})
	for i := range t.Rows {
		n := 0.
		if h.r.Float64() < 5*odd {
			n = h.poisson(1.5) * math.Round(h.burst(.2))
		}
		t.Rows[i], all = append(t.Rows[i], n), all+n
	}
	b.Values = append(b.Values, value("zero_windows", all))
	return b
}

// segments are lost, reordered and sent again: rarely, in bursts, and more at busy hours.
func (h *host) segments(load float64) report.Body {
	n := h.poisson(8000 * load)
	rate := lossOrdinary * (1 + load) * math.Exp(h.loss.next(h.r))
	holes := h.poisson(n * rate * h.burst(10*odd))
	behind := h.poisson(n * rate * h.burst(10*odd))
	again := h.poisson(n * rate * h.burst(10*odd)) // lost after
	return report.Body{Tables: []report.Table{h.lossy("loss", "src", "lost", 1460, holes), h.lossy("retrans", "dst", "retransmitted", 1, again)},
		Values: []report.Value{value("loss_gaps", holes+behind/3), value("loss_given_back", behind/3), value("loss_examined", n), value("retrans_examined", n), value("retransmitted", holes+again),
			value("ooo_examined", n), value("out_of_order", behind)}}
}

// lossy is whose segments are missing, or sent again: one network of eight has half of them, since what loses in bursts is one path.
func (h *host) lossy(name, end, column string, size, segments float64) report.Table {
	t := report.Table{Name: name}
	for _, c := range []string{end, column, column + "_at_least"} {
		t.Columns = append(t.Columns, report.Column{Name: c})
	}
	lost := make([]float64, len(h.networks))
	one := h.r.IntN(len(lost))
	for range int(segments) {
		at := one
		if h.r.IntN(2) == 0 {
			at = h.r.IntN(len(lost))
		}
		lost[at] += size
	}
	for n, events := range lost {
		if events > 0 {
			t.Rows = append(t.Rows, []any{fmt.Sprintf("10.%d.0.7", n), events, events})
		}
	}
	return t
}

// shares of networks wander.
func (h *host) shares(load float64) report.Body {
	total := 20000 * load
	t := report.Table{Name: "prefixes"}
	for _, c := range []string{"prefix", "conditioned", "conditioned_low", "conditioned_high", "standard_error"} {
		t.Columns = append(t.Columns, report.Column{Name: c})
	}
	for i := range h.prefixes {
		share := .04 * float64(i+1) * math.Exp(h.prefixes[i].next(h.r)) * h.burst(odd)
		if share > .01 {
			t.Rows = append(t.Rows, []any{fmt.Sprintf("10.%d.0.0/16", i), share * total, share * total * .9, share * total * 1.1, share * total * .03})
		}
	}
	return report.Body{Values: []report.Value{value("total", total)}, Tables: []report.Table{t}}
}

// queue stands for a moment now and then.
func (h *host) queue(load float64) report.Body {
	departures := h.poisson(10000 * load)
	share := .002 * load * h.burst(10*odd)
	if h.r.Float64() < odd {
		share = h.r.Float64() * .5 // an upload
	}
	return report.Body{Values: []report.Value{value("departures", departures), value("congested", math.Round(departures*math.Min(1, share))), value("tau_ns", 1e6)}}
}
