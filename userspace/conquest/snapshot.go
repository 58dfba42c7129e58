package conquest

import (
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Words of a snapshot.
const (
	counterWords = "counters"
	burstWords   = "bursts"  // burstWidth each: queue, begin, last, peak, open, reports of flows that are not stored
	accusedWords = "accused" // accusedWidth each: burst, times, size, delay, first, last, three ends of the share, left, times and left before this window, key
	rampWords    = "ramps"   // rampWidth each: time, size, before, key
	lineWords    = "line"    // begin, step, longest delay of each slot
	restWords    = "rest"    // unlisted

	burstWidth   = 6
	accusedKey   = 12
	accusedWidth = accusedKey + heavy.KeyWords
	rampWidth    = 3 + heavy.KeyWords
)

const counters = int(bpf.ConquestConquestCounterCONQUEST_COUNTS)

// into writes a history into a snapshot.
func (h *history) into(s *snapshot.Snapshot) {
	var bursts, flows, ramps snapshot.Words
	for n, b := range h.bursts {
		open := uint64(0)
		if b.open {
			open = 1
		}
		bursts = append(bursts, uint64(b.queue), uint64(b.begin), uint64(b.last), uint64(b.peak), open, b.more)
		for _, a := range b.flows {
			flows = append(flows, uint64(n), a.times, a.size, uint64(a.delay), uint64(a.first), uint64(a.last),
				math.Float64bits(a.share.value), math.Float64bits(a.share.low), math.Float64bits(a.share.high),
				math.Float64bits(a.left), a.before.times, math.Float64bits(a.before.left))
			flows = append(flows, a.key[:]...)
		}
	}
	for _, r := range h.ramps {
		ramps = append(append(ramps, uint64(r.time), r.size, r.before), r.key[:]...)
	}
	line := snapshot.Words{uint64(h.lineAt), uint64(h.lineStep)}
	for _, delay := range h.line {
		line = append(line, uint64(delay))
	}
	s.Words[burstWords], s.Words[accusedWords], s.Words[rampWords], s.Words[lineWords] = bursts, flows, ramps, line
	s.Words[restWords] = snapshot.Words{h.unlisted}
}

// opened reads a snapshot back.
func opened(s *snapshot.Snapshot) (counts []uint64, h *history, err error) {
	r := s.Read()
	counts, h = r.Words(counterWords, counters), newHistory()
	for _, w := range r.Rows(burstWords, burstWidth) {
		h.bursts = append(h.bursts, burst{queue: uint32(w[0]), begin: int64(w[1]), last: int64(w[2]), peak: int64(w[3]), open: w[4] != 0, more: w[5]})
	}
	for _, w := range r.Rows(accusedWords, accusedWidth) {
		if w[0] >= uint64(len(h.bursts)) {
			r.Refuse("a flow of burst %d, there are %d", w[0], len(h.bursts))
			break
		}
		a := accused{tally: tally{w[1], math.Float64frombits(w[9])}, before: tally{w[10], math.Float64frombits(w[11])}, size: w[2], delay: int64(w[3]), first: int64(w[4]), last: int64(w[5]),
			share: share{math.Float64frombits(w[6]), math.Float64frombits(w[7]), math.Float64frombits(w[8])}}
		if !(a.share.value >= 0 && a.share.value <= 1 && a.share.low >= 0 && a.share.low <= 1 && a.share.high >= 0 && a.share.high <= 1) {
			r.Refuse("a flow with %g of the queue", a.share.value)
			break
		}
		if !(a.left >= a.before.left && a.before.left >= 0 && a.left <= math.MaxUint64 && a.times >= a.before.times) {
			r.Refuse("a flow of which %g left, %g of it before", a.left, a.before.left)
			break
		}
		copy(a.key[:], w[accusedKey:])
		b := &h.bursts[w[0]]
		b.flows = append(b.flows, a)
	}
	for _, w := range r.Rows(rampWords, rampWidth) {
		one := ramp{time: int64(w[0]), size: w[1], before: w[2]}
		copy(one.key[:], w[3:])
		h.ramps = append(h.ramps, one)
	}
	line := r.Words(lineWords, 2+lineSlots)
	h.lineAt, h.lineStep = int64(line[0]), int64(line[1])
	for i := range h.line {
		h.line[i] = int64(line[2+i])
	}
	h.unlisted = r.Words(restWords, 1)[0]
	return counts, h, r.Err()
}

// Merge implements algo.Merger: it puts the logs of two hosts, or of two windows, one beside the other: bursts of different queues have nothing in common, keys are
// whole, and times become ns since 1970.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	s := snapshot.Together(a, b)
	sum, all := make(snapshot.Words, counters), newHistory()
	for _, one := range []*snapshot.Snapshot{a, b} {
		counts, h, err := opened(one)
		if err != nil {
			return nil, err
		}
		sum = snapshot.Sum(sum, counts)
		all.join(h, one.Offset)
	}
	s.Words[counterWords] = sum
	all.into(s)
	return s, nil
}

// join adds what another one holds, whose clock began at offset.
func (h *history) join(o *history, offset int64) {
	for _, b := range o.bursts {
		b.begin, b.last, b.flows = b.begin+offset, b.last+offset, slices.Clone(b.flows)
		for i := range b.flows {
			b.flows[i].first, b.flows[i].last = b.flows[i].first+offset, b.flows[i].last+offset
		}
		if !h.continues(b) {
			h.keep(b)
		}
	}
	for _, r := range o.ramps {
		r.time += offset
		h.ramps = append(h.ramps, r)
	}
	slices.SortStableFunc(h.bursts, func(a, b burst) int { return int(max(-1, min(1, a.begin-b.begin))) })
	for i, delay := range o.line {
		if at := o.lineAt + offset + int64(i)*o.lineStep; delay > 0 {
			h.reach(at)
			h.mark(at, delay)
		}
	}
	h.unlisted += o.unlisted
}

// continues puts a burst that was open in one window together with what a later window has of it, which holds all of the earlier one.
func (h *history) continues(b burst) bool {
	n := slices.IndexFunc(h.bursts, func(o burst) bool {
		return o.queue == b.queue && max(o.begin-b.begin, b.begin-o.begin) <= burstTick && (o.open || b.open)
	})
	if n < 0 {
		return false
	}
	early, late := h.bursts[n], b
	if early.last > late.last || early.last == late.last && !early.open {
		early, late = late, early
	}
	late.flows = slices.Clone(late.flows)
	for i := range late.flows {
		f := &late.flows[i]
		for _, e := range early.flows {
			if e.key == f.key {
				f.before = e.before
			}
		}
	}
	h.bursts[n] = late
	return true
}

// reach lets the time line begin earlier.
func (h *history) reach(time int64) {
	if h.lineAt == 0 || time >= h.lineAt {
		return
	}
	old, at, step := h.line, h.lineAt, h.lineStep
	h.line, h.lineAt = [lineSlots]int64{}, time
	for i, delay := range old {
		if delay > 0 {
			h.mark(at+int64(i)*step, delay)
		}
	}
}
