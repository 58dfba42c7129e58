package rttarray

import (
	"fmt"

	"github.com/cilium/ebpf"

	bpf "github.com/xdpmon/xdpmon/bpf/rttarray"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

type instance struct {
	*config
	head           snapshot.Head
	counters, hist *maps.Array
	words          [2][]uint64 // buffers
}

// New implements algo.Config.
func (c *config) New(env algo.Env) (algo.Instance, error) {
	return &instance{config: c, head: env.Head}, nil
}

// Configure implements algo.Instance.
func (i *instance) Configure(spec *ebpf.CollectionSpec) error {
	if err := maps.SetConstants(spec, i.constants()); err != nil {
		return err
	}
	for name, n := range i.sizes() {
		if err := maps.SetEntries(spec, name, uint32(n)); err != nil {
			return err
		}
	}
	return nil
}

// Needs implements algo.Instance.
func (i *instance) Needs() maps.Need { return i.rules.Kind.Needs() }

// Bind implements algo.Instance.
func (i *instance) Bind(set *maps.Set) (err error) {
	if i.counters, err = set.Array("rtt_counters"); err != nil {
		return err
	}
	i.hist, err = set.Array("rtt_hist")
	return err
}

// The words of a snapshot.
const (
	counterWords = "counters"
	histWords    = "hist"
)

// Read implements algo.Instance.
func (i *instance) Read(w report.Window, bank int) (_ *snapshot.Snapshot, err error) {
	for n, array := range []*maps.Array{i.counters, i.hist} {
		if i.words[n], err = array.ReadReset(bank, i.words[n]); err != nil {
			return nil, fmt.Errorf("read window: %w", err)
		}
	}
	s := snapshot.New(i.head, w)
	s.Words[counterWords], s.Words[histWords] = i.words[0], i.words[1]
	return s, nil
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	r := s.Read()
	n, hist := counts(r.Words(counterWords, int(bpf.RttArrayRttCounterRTT_COUNTS))), r.Words(histWords, c.sizes()["rtt_hist"])
	spectrum := c.spectrum(hist)
	if err := r.Err(); err != nil {
		return algo.Result{}, err
	}
	return algo.Result{
		Body: c.body(n, spectrum),
		Used: n[bpf.RttArrayRttCounterRTT_REQUESTS] + n[bpf.RttArrayRttCounterRTT_RESPONSES],
		Lost: map[string]uint64{
			"evicted":  n[bpf.RttArrayRttCounterRTT_EVICTED],
			"rejected": n[bpf.RttArrayRttCounterRTT_REJECTED],
			"too_long": n[bpf.RttArrayRttCounterRTT_TOO_LONG],
		},
	}, nil
}

// Merge implements algo.Merger: it sums counts. Nothing depends on the hashes of requests.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	for _, s := range []*snapshot.Snapshot{a, b} {
		if _, err := c.Report(s); err != nil {
			return nil, err
		}
	}
	s := snapshot.Together(a, b)
	for _, name := range []string{counterWords, histWords} {
		s.Words[name] = snapshot.Sum(a.Words[name], b.Words[name])
	}
	return s, nil
}

// counts by enum rtt_counter.
type counts []uint64

// spectrum of the samples, uncorrected; only a cascade corrects.
func (c *config) spectrum(words []uint64) *delay.Spectrum {
	s := delay.NewSpectrum(c.scale())
	// A sample with 0 survived insertions counts as one.
	bins, planes, factor := c.scale().Bins.Len(), 1, delay.Factor{Slots: 2, Inclusion: 1}
	if c.cascade() {
		planes, factor.Slots = delay.SurvivalBins, c.slots
	}
	for bin := range bins {
		var row [delay.SurvivalBins]uint64
		for p := range planes {
			row[p] = words[p*bins+bin]
		}
		sums := factor.Row(&row)
		s.Mass[bin], s.Square[bin], s.Raw[bin] = sums.Weight, sums.Square, sums.N
	}
	return s
}

// lost records: of requests with or without an answer, or that were repeated and are then measured from there.
func (n counts) lost() float64 {
	return float64(n[bpf.RttArrayRttCounterRTT_EVICTED] + n[bpf.RttArrayRttCounterRTT_REJECTED])
}

// most is the maximum number of answered requests.
func (n counts) most() float64 {
	packets := min(n[bpf.RttArrayRttCounterRTT_REQUESTS], n[bpf.RttArrayRttCounterRTT_RESPONSES])
	return min(float64(packets), float64(n[bpf.RttArrayRttCounterRTT_MATCHED])+n.lost())
}

// distribution widens the samples' bounds by the lost records, whose delays are unknown: all of them may have been shorter than
// every measured one, or longer.
func (c *config) distribution(s *delay.Spectrum, lost, most float64) report.Distribution {
	d := s.Distribution(c.label())
	raw := &delay.Spectrum{Scale: s.Scale, Mass: s.Raw, Square: s.Raw, Raw: s.Raw}
	d.CountErr, d.CountLow, d.CountHigh, d.CountPromise = 0, s.Samples(), most, report.Bound
	for i := range d.Quantiles {
		if q := &d.Quantiles[i]; q.Defined {
			q.Low, q.High = raw.Ranks(q.Q, lost)
			q.Promise = report.Bound
		}
	}
	return d
}

func (c *config) label() delay.Label {
	return delay.Label{Name: "delay_ns", Title: c.rules.Kind.Title(), Unit: report.Nanosecond, Help: "delay from a request to its response"}
}

func (c *config) body(n counts, s *delay.Spectrum) report.Body {
	count := func(name string, at bpf.RttArrayRttCounter, unit report.Unit, help string) report.Value {
		return report.Value{Name: name, Value: n[at], Unit: unit, Kind: report.Counter, Help: help}
	}
	most := n.most()
	b := report.Body{
		Values: []report.Value{
			count("matched", bpf.RttArrayRttCounterRTT_MATCHED, report.Responses, "responses that found their request"),
			{Name: "estimated", Value: s.Count(), Low: s.Samples(), High: most, Promise: report.Bound, Unit: report.Requests, Kind: report.Counter,
				Help: "requests that were answered: as many as matched, corrected with evict=cascade only"},
			count("requests", bpf.RttArrayRttCounterRTT_REQUESTS, report.Requests, "packets that ask, repeated ones included"),
			count("responses", bpf.RttArrayRttCounterRTT_RESPONSES, report.Responses, "response packets, including those without a request"),
			count("repeated", bpf.RttArrayRttCounterRTT_REPEATED, report.Requests, "requests that found their own record: sent again"),
			count("inserted", bpf.RttArrayRttCounterRTT_INSERTED, report.Requests, "requests that got a slot"),
			count("rejected", bpf.RttArrayRttCounterRTT_REJECTED, report.Requests, "requests that found no slot"),
			count("evicted", bpf.RttArrayRttCounterRTT_EVICTED, report.Records, "records that a newer request pushed out"),
			{Name: "longest_ns", Value: c.rules.Longest, Unit: report.Nanosecond, Help: "longest delay that can be measured"},
		},
		Distributions: []report.Distribution{c.distribution(s, n.lost(), most)},
	}
	if !c.cascade() {
		b.Notes = []string{"this is a baseline: slow responses are missing in it. Its bounds hold whatever was lost, and are wide where much " +
			"was. Use the fridge for answers."}
	}
	return b.Answering("matched", "repeated")
}

// Oracle implements algo.OracleProvider.
func (i *instance) Oracle() algo.Oracle {
	return &oracle{config: i.config, tracker: delay.NewTracker(i.rules)}
}

type oracle struct {
	*config
	tracker  *delay.Tracker
	requests uint64
	delays   []int64
}

// Packet implements algo.Oracle.
func (o *oracle) Packet(p *packet.Packet) {
	switch e := o.tracker.Packet(p); e.Outcome {
	case delay.Request, delay.Repeated:
		o.requests++
	case delay.Answered:
		o.delays = append(o.delays, e.Delay)
	}
}

// Window implements algo.Oracle.
func (o *oracle) Window(report.Window) report.Body {
	n := uint64(len(o.delays))
	b := report.Body{
		Values: []report.Value{
			{Name: "matched", Value: n, Unit: report.Responses, Kind: report.Counter, Help: "requests that were answered"},
			{Name: "estimated", Value: n, Unit: report.Requests, Kind: report.Counter, Help: "requests that were answered"},
			{Name: "requests", Value: o.requests, Unit: report.Requests, Kind: report.Counter, Help: "packets that ask"},
		},
		Distributions: []report.Distribution{delay.Exact(o.label(), o.delays)},
	}
	o.requests, o.delays = 0, o.delays[:0]
	return b
}
