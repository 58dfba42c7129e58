package traffic

import (
	"math"
	"slices"
	"time"
)

// leanFlow is one connection. The order of the fields keeps it small: there are hundreds of thousands.
type leanFlow struct {
	start  int64 // ns, of the first train
	rtt    int64 // ns, without additions
	period int64 // ns between the starts of trains, on average
	rates  [leanKinds]float32
	mean   float32 // segments of a train
	left   uint32  // segments that were never sent
	train  uint32  // ... of the train that runs
	number uint32  // of the next segment
	held   leanSegment
	wait   uint8 // one more than the segments that are to overtake the one that is held; 0: none is held
	passed bool  // one has
	ids    idKind
	v6     bool
	head   bool   // of a train: retransmissions are first
	id     uint16 // of the next packet of the data's direction
	ackID  uint16 // ... of the other
	began  int64  // ns, start of the train that runs
}

// leanSegment is a segment that was sent.
type leanSegment struct {
	number uint32
	id     uint16
}

// sizes gives every flow its segments, so that with their acknowledgements they are about as many as requested.
func (m *Lean) sizes() {
	shares := make([]float64, len(m.flows))
	for i := range shares {
		shares[i] = math.Pow(float64(i+1)+m.opts.Offset, -m.opts.Skew)
	}
	want := float64(m.opts.Packets) / (2 - m.opts.Unanswered) / (1 + m.opts.Mirror)
	low, high := 0.0, want/shares[len(shares)-1]
	for range 60 {
		middle, sum := (low+high)/2, 0.0
		for _, s := range shares {
			sum += max(1, middle*s)
		}
		if sum < want {
			low = middle
		} else {
			high = middle
		}
	}
	for i, s := range shares {
		m.flows[i].left = uint32(math.Round(max(1, low*s)))
	}
}

// Round trips are log-normal with a median of 40 ms, cut at 2 and 300 ms.
const (
	leanMedian = 40e6 // ns
	leanSigma  = 0.9  // of the logarithm
)

// leanTrain is the mean length of trains where the flow's size and time do not ask for longer ones.
const leanTrain = 8

// character draws what a flow is like.
func (m *Lean) character(id uint32) {
	f, r, span := &m.flows[id], m.rng, float64(m.opts.Span)
	f.rtt = int64(min(max(leanMedian*math.Exp(leanSigma*r.NormFloat64()), 2e6), 300e6))
	for k := range f.rates {
		f.rates[k] = float32(m.opts.Background)
	}
	f.rates[LeanDelay] = 0
	n := float64(f.left)
	f.mean = leanTrain
	lasts := n / leanTrain * (float64(f.rtt) + 200e6*r.ExpFloat64()) // mice have a few trains, elephants last
	if lasts = min(lasts, span*0.95); n > 100 {
		lasts = span * (0.3 + 0.65*r.Float64())
		f.mean = float32(max(leanTrain, n*float64(f.rtt)/lasts)) // no train before the acknowledgement of the last one
	}
	f.period = max(f.rtt, int64(lasts*float64(f.mean)/n))
	f.start = Start + int64(r.Float64()*(span-lasts))
	f.v6 = r.Float64() < m.opts.V6
	switch u := r.Float64(); {
	case u < m.opts.ZeroID:
		f.ids = idZero
	case u < m.opts.ZeroID+m.opts.RandomID:
		f.ids = idRandom
	}
	f.id, f.ackID = uint16(r.Uint32()), uint16(r.Uint32())
}

// choose makes some of the large flows suffer.
func (m *Lean) choose() {
	severity := [leanKinds]float64{float64(m.opts.Delay) / float64(time.Millisecond), m.opts.Loss, m.opts.Late, m.opts.Again}
	for kind, s := range severity {
		picked := m.rng.Perm(m.opts.Heavy)[:m.opts.Victims] // drawn in any case: the same flows at every severity
		if s == 0 {
			continue
		}
		slices.Sort(picked)
		m.victims[kind] = picked
		for _, rank := range picked {
			m.flows[rank].rates[kind] = float32(s)
		}
	}
}

// leanDecades are the decades over which shares that do not depend on sizes are spread.
const leanDecades = 3

// spread gives every flow its own shares, whatever its size.
func (m *Lean) spread() {
	if m.opts.Most == 0 {
		return
	}
	draw := newRand(m.opts.Seed, 16) // apart, so that sizes, times and round trips are those of the other models
	for i := range m.flows {
		for _, kind := range []LeanKind{LeanLoss, LeanLate, LeanAgain} {
			m.flows[i].rates[kind] = float32(m.opts.Most * math.Pow(10, -leanDecades*draw.Float64()))
		}
	}
}

func (m *Lean) sort() {
	m.order = make([]uint32, len(m.flows))
	for i := range m.order {
		m.order[i] = uint32(i)
	}
	slices.SortFunc(m.order, func(a, b uint32) int {
		if d := m.flows[a].start - m.flows[b].start; d != 0 {
			return int(d)
		}
		return int(a) - int(b)
	})
}
