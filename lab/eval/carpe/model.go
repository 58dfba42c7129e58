package carpe

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// network is the model of section 5.1: switches at the edge, and flows that each have one they prefer.
type network struct {
	switches int
	affinity float64
	spread   bool // what does not pass the preferred switch passes all others, and not to one alternate
	even     bool // nobody prefers anything
	flows    int
	packets  float64
	skew     float64
	groups   int // prefixes of sources: switches are preferred by prefix, as routes are
}

var usual = network{switches: 10, affinity: .95, flows: 270_000, packets: 5e6, skew: 1, groups: 256}

// window is what the flows of one window had, and where.
type window struct {
	size  []int32 // by flow, the largest first on average
	parts []part
	group []int32 // by flow

	groups, switches int
}

// part is what one switch saw of a flow.
type part struct{ flow, at, packets int32 }

func (n network) window(seed uint64) *window {
	rng := rand.New(rand.NewPCG(seed, 0x15))
	w := &window{size: make([]int32, n.flows), group: make([]int32, n.flows), groups: n.groups, switches: n.switches}
	sum := 0.0
	for i := range n.flows {
		sum += math.Pow(float64(i+1), -n.skew)
	}
	seen := make([]int32, n.switches)
	for i := range n.flows {
		w.size[i] = poisson(rng, n.packets*math.Pow(float64(i+1), -n.skew)/sum)
		w.group[i] = int32(rng.IntN(n.groups))
		clear(seen)
		n.split(rng, int(w.group[i]), int(w.size[i]), seen)
		for at, packets := range seen {
			if packets > 0 {
				w.parts = append(w.parts, part{int32(i), int32(at), packets})
			}
		}
	}
	return w
}

// split deals a flow's packets out.
func (n network) split(rng *rand.Rand, group, packets int, seen []int32) {
	first := group * 7 % n.switches
	other := (first + 1 + group%(n.switches-1)) % n.switches
	away := packets
	if !n.even {
		away = int(binomial(rng, packets, 1-n.affinity))
	}
	seen[first] += int32(packets - away)
	if !n.even && !n.spread {
		seen[other] += int32(away)
		return
	}
	for range away {
		at := rng.IntN(n.switches)
		if !n.even && at == first {
			at = other
		}
		seen[at]++
	}
}

// threshold is the size of the flow at a percentile.
func (w *window) threshold(percentile float64) int32 {
	sorted := slices.Clone(w.size)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, int(percentile*float64(len(sorted))))]
}

// poisson draws, large ones by their normal form.
func poisson(rng *rand.Rand, mean float64) int32 {
	if mean > 200 {
		return int32(max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	n := int32(0)
	for left := rng.ExpFloat64(); left < mean; left += rng.ExpFloat64() {
		n++
	}
	return n
}

// wait is the packet, from 1, that is the first to be sampled with probability p.
func wait(rng *rand.Rand, p float64) int {
	if p >= 1 {
		return 1
	}
	return 1 + int(math.Log(1-rng.Float64())/math.Log1p(-p))
}

func binomial(rng *rand.Rand, n int, p float64) (k int32) {
	if p <= 0 {
		return 0
	}
	for at := wait(rng, p); at <= n; at += wait(rng, p) {
		k++
	}
	return k
}

// method is one way to find elephants. Its answer for a flow is what it believes the flow had.
type method struct {
	name     string
	epsilon  float64 // carpe, and locality-agnostic
	start    int     // 1/s; 1: every flow is counted
	locality bool
	rate     float64 // sampling
	all      bool    // report all
}

// outcome of one window.
type outcome struct {
	believed []float64 // by flow
	records  float64
	bytes    float64
	state    float64 // entries at the end
	counted  float64 // entries of somebody who counts all
	observed []bool  // by group and switch
}

// Bytes of records as messages of carpe have them (userspace/carpe): what a record is, the family, four numbers of a flow over IPv4; then units
// and observers. A sample has no more than its flow, a counter of report-all its number. Records travel together: for 1,400 bytes of them there
// are 78 of Ethernet, IPv4 and TCP.
const (
	flowBytes   = 15
	helloBytes  = 2 + 2 // a prefix of 16 bits
	updateBytes = helloBytes + 1
	framing     = 1 + 78./1400
)

func varint(n float64) float64 {
	bytes := 1.
	for ; n >= 128; n /= 128 {
		bytes++
	}
	return bytes
}

// run a method on a window. observers are what a switch has received of a group.
func (m method) run(w *window, threshold float64, informed func(group int32) int, seed uint64) *outcome {
	rng := rand.New(rand.NewPCG(seed, 0xca))
	o := &outcome{believed: make([]float64, len(w.size)), counted: float64(len(w.parts)), observed: make([]bool, w.groups*w.switches)}
	for _, p := range w.parts {
		switch {
		case m.all:
			o.believed[p.flow] += float64(p.packets)
			o.records++
			o.bytes += flowBytes + varint(float64(p.packets))
			o.state++
		case m.rate > 0:
			n := float64(binomial(rng, int(p.packets), m.rate))
			o.believed[p.flow] += n / m.rate
			o.records += n
			o.bytes += n * flowBytes
		default:
			m.hold(rng, o, w, p, threshold, informed(w.group[p.flow]))
		}
	}
	o.bytes *= framing
	return o
}

// hold is one flow at one switch: wait for a sample, count the bundle, and again.
func (m method) hold(rng *rand.Rand, o *outcome, w *window, p part, threshold float64, observers int) {
	tau := max(1, int(math.Round(m.epsilon*threshold/float64(observers))))
	left := int(p.packets)
	for {
		first := wait(rng, 1/float64(m.start))
		if first > left {
			return
		}
		o.observed[int(w.group[p.flow])*w.switches+int(p.at)] = true
		if left -= first; left < tau-m.start {
			o.state++
			return
		}
		left -= tau - m.start
		if rng.IntN(observers) == 0 {
			o.believed[p.flow] += float64(tau * observers)
			o.records++
			o.bytes += flowBytes + varint(float64(tau)) + 1
		}
	}
}

// score of a method over windows, at the best of all cuts.
type score struct {
	method
	f1, precision, recall float64
	bytes, records        float64 // a window
	hellos                float64 // bytes of hellos and updates a window, in bytes
	state                 float64 // share of counting all
	perElephant           float64 // reports
	cut                   float64 // share of the threshold from which on a flow is declared
}

// believe is a flow as a method sees it.
type believe struct {
	share    float64 // of the threshold
	elephant bool
}

// best tries every cut.
func (s *score) best(all []believe) {
	slices.SortFunc(all, func(a, b believe) int { return cmp.Compare(b.share, a.share) })
	elephants := 0.
	for _, b := range all {
		if b.elephant {
			elephants++
		}
	}
	right := 0.
	for n, b := range all {
		if b.elephant {
			right++
		}
		if n+1 < len(all) && all[n+1].share >= b.share*(1-1e-9) || b.share <= 0 {
			continue
		}
		precision, recall := right/float64(n+1), right/elephants
		if f1 := 2 * precision * recall / (precision + recall); right > 0 && f1 > s.f1 {
			s.f1, s.precision, s.recall, s.cut = f1, precision, recall, b.share
		}
	}
}
