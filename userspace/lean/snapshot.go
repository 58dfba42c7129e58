package lean

import (
	"fmt"
	"maps"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/rates"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words of a snapshot, beside the registers under their own names.
const (
	counterWords = "counters"
	limitWords   = "limits" // of each statistic, in the sketch's unit
	chanceWords  = "chance" // smallest and largest p, and insertions a second: of latency
	namedWords   = "named." // namedWidth a flow: key, place, event; in the keys' order
)

const namedWidth = heavy.KeyWords + 3

func (c candidates) words() snapshot.Words {
	w := make(snapshot.Words, 0, namedWidth*len(c))
	for _, key := range slices.SortedFunc(maps.Keys(c), heavy.Key.Compare) {
		f := c[key]
		w = append(append(w, key[:]...), f.at.Rows, f.at.Rest, math.Float64bits(f.value))
	}
	return w
}

func candidatesOf(r *snapshot.Reader, name string) candidates {
	c := candidates{}
	for _, w := range r.Rows(name, namedWidth) {
		f := candidate{at: place{Rows: w[heavy.KeyWords], Rest: w[heavy.KeyWords+1]}, value: math.Float64frombits(w[heavy.KeyWords+2])}
		if !(math.Abs(f.value) <= mostCounted) {
			r.Refuse("a flow with an event of %g", f.value)
			return c
		}
		c[heavy.Key(w[:heavy.KeyWords])] = f
	}
	return c
}

// mostCounted bounds the counts of a snapshot, so that sums over snapshots stay finite.
const mostCounted = math.MaxInt64

// arrays are the registers of a snapshot: cells of sketches, and counters under keys.
func (c *config) arrays() (sketches, others []string) {
	if c.rate {
		return nil, nil
	}
	for _, s := range c.on {
		names := rowNames(registers[s])
		sketches = append(sketches, names[:]...)
		if k, ok := c.statistics[s].(keyed); ok {
			others = append(others, k.keyedArrays()...)
		}
	}
	if c.mean() {
		names := rowNames(meanRegister)
		sketches = append(sketches, names[:]...)
	}
	return sketches, others
}

// estimator makes the report of one snapshot.
type estimator struct {
	*config
	words  *snapshot.Reader
	sized  map[string]int
	limits []float64
	named  named
	rated  [stats]map[heavy.Key]rates.Flow // by rate
	lost   []uint64                        // by rate: words whose flow is not known
	slow   uint64                          // by rate: ticks
}

// array reads a register from the snapshot.
func (i *estimator) array(name string) []uint64 { return i.words.Words(name, i.sized[name]) }

func (i *estimator) cells(register string) (words [sketch.Rows][]uint64) {
	for r, name := range rowNames(register) {
		words[r] = i.array(name)
	}
	return words
}

// open reads a snapshot. The statistics of an instance are those of its data plane: p and the rate are the snapshot's.
func (c *config) open(s *snapshot.Snapshot) (*estimator, counts, error) {
	e := &estimator{config: c, words: s.Read(), sized: c.sizes()}
	n := counts(e.words.Words(counterWords, int(bpf.LeanLeanCounterLEAN_COUNTS)))
	e.limits = e.words.Floats(limitWords, int(stats))
	if l := c.latency(); l != nil {
		e.config = c.at(e.words.Floats(chanceWords, 3), e.words)
	}
	if c.rate {
		e.openRates()
		return e, n, e.words.Err()
	}
	for _, s := range c.on {
		e.named[s] = candidatesOf(e.words, namedWords+s.String())
	}
	sketches, others := c.arrays()
	for _, name := range append(sketches, others...) { // all registers must be present
		e.array(name)
	}
	return e, n, e.words.Err()
}

// at is the configuration with the p and rate of a window.
func (c *config) at(chance []float64, r *snapshot.Reader) *config {
	now := *c
	l, p := *c.latency(), *c.latency().chance
	p.p, p.most, p.rate, p.slots = chance[0], chance[1], chance[2], max(c.layouts[latency].tables["lean_lat_fr"], 2)
	if !(p.p > 0 && p.p <= p.most && p.most <= 1 && p.rate >= 0) {
		r.Refuse("a share of %g of the segments, at %g a second", p.p, p.rate)
	}
	l.chance = &p
	now.statistics[latency] = &l
	return &now
}

// Report implements algo.Config: it estimates the reported flows from the sketches.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	e, n, err := c.open(s)
	if err != nil {
		return algo.Result{}, err
	}
	result := algo.Result{Used: n.at(bpf.LeanLeanCounterLEAN_PACKETS), Lost: map[string]uint64{}}
	result.Body.Values = c.common(n)
	if c.buckets > 0 {
		result.Body.Notes = c.bitsNotes(n)
	}
	for _, s := range c.on {
		if c.rate {
			e.describeRates(&result, s, n)
		} else {
			e.describe(&result, s, e.decode(s, e.named[s], n), n)
		}
	}
	result.Body = result.Body.Answering("loss_missing", "loss_share", "out_of_order", "retransmitted", "retransmitted_share")
	result.Body.Overview = report.Overview{Lost: "loss_gaps", Back: "loss_given_back", Among: "loss_examined"}
	return result, nil
}

// Losses implements algo.LossReporter: flows whose loss is larger than the sketch's noise explains.
func (c *config) Losses(s *snapshot.Snapshot) ([]algo.Loss, error) {
	if c.statistics[loss] == nil || c.rate {
		return nil, nil
	}
	e, n, err := c.open(s)
	if err != nil {
		return nil, err
	}
	var list []algo.Loss
	for _, f := range e.decode(loss, e.named[loss], n).flows {
		if f.value > 2*f.se {
			source, destination := c.spec.Addrs(f.key)
			list = append(list, algo.Loss{Source: source, Destination: destination, Lost: f.value})
		}
	}
	return list, nil
}

// Merge implements algo.Merger: it sums sketches cell by cell. Sketches are linear: with the same hashes the sum is the sketch of one host that
// finished the events of both. It is queried for the flows that any host has reported. A flow may stay below the limit of every host and exceed that
// of their sum, so limits add up.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if err := algo.SameHashes(a, b); err != nil {
		return nil, err
	}
	if r, ok := c.statistics[retrans].(*repetitions); ok && r.distinct {
		return nil, fmt.Errorf("%w: lean.retrans=distinct keeps one flow an entry, and two hosts may keep different ones there", algo.ErrMerge)
	}
	x, _, err := c.open(a)
	if err != nil {
		return nil, err
	}
	y, _, err := c.open(b)
	if err != nil {
		return nil, err
	}
	s := snapshot.Together(a, b)
	if c.rate {
		c.mergeRates(s, a, b, x, y)
	}
	sketches, others := c.arrays()
	for _, name := range append(sketches, counterWords) {
		s.Words[name] = snapshot.Sum(a.Words[name], b.Words[name])
	}
	for _, name := range others {
		s.Words[name] = sketch.KeyedSum(a.Words[name], b.Words[name])
	}
	limits := make([]float64, stats)
	for n := range limits {
		limits[n] = x.limits[n] + y.limits[n]
	}
	s.Words[limitWords] = snapshot.Floats(limits)
	for _, st := range c.on {
		if !c.rate {
			s.Words[namedWords+st.String()] = united(x.named[st], y.named[st]).words()
		}
	}
	if c.latency() != nil { // each host weighted its delays by its own p: the smallest p and the largest rate bound the error
		p, q := x.latency().chance, y.latency().chance
		s.Words[chanceWords] = snapshot.Floats([]float64{min(p.p, q.p), max(p.most, q.most), max(p.rate, q.rate)})
	}
	return s, nil
}

// united is the union of both candidates, each with the larger of its two events.
func united(a, b candidates) candidates {
	all := maps.Clone(a)
	for key, f := range b {
		if have, both := all[key]; both {
			f.value = max(f.value, have.value)
		}
		all[key] = f
	}
	return all
}
