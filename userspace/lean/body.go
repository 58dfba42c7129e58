package lean

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/expect"
	"github.com/xdpmon/xdpmon/userspace/lean/limit"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func counter(name string, n uint64, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: unit, Kind: report.Counter, Help: help}
}

func gauge(name string, v any, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: v, Unit: unit, Help: help}
}

// flow is a candidate with its estimates from the sketch, in the report's unit.
type flow struct {
	key       heavy.Key
	value     float64
	se        float64 // standard error
	median    float64 // the paper's estimate, without subtraction of the others
	low, high float64 // bounds of what is counted; NaN: none
	count     float64 // latency with mean: delays
}

// mean delay, in ns; NaN when the second sketch estimates less than one delay.
func (f *flow) mean() float64 {
	if f.count < 1 {
		return math.NaN()
	}
	return math.Round(f.value / f.count)
}

// ranked is a statistic's answer: all candidates, largest first.
type ranked struct {
	flows []flow
	noise float64 // standard error that the sketch adds to every value
}

// decode reads a statistic's sketch for the flows that were named.
func (i *estimator) decode(s stat, named candidates, n counts) ranked {
	keys := slices.SortedFunc(maps.Keys(named), heavy.Key.Compare)
	places, events := make([]place, len(keys)), make([]float64, len(keys))
	for k, key := range keys {
		places[k], events[k] = named[key].at, named[key].value
	}
	d := i.estimates(s, places, n)
	d.Events = events
	return i.rank(s, keys, d, n)
}

// estimates reads the flows' values from the keyed counters or the sketch, whichever holds the statistic's counts.
func (i *estimator) estimates(s stat, places []place, n counts) sketch.Decoded {
	if k, ok := i.statistics[s].(keyed); ok {
		if d, used := k.decodeKeyed(i.array, places, n); used {
			return d
		}
	}
	sk := sketch.New(i.cells(registers[s]))
	if i.walks(s) {
		return sk.Alone(places)
	}
	d := sk.Decode(places)
	if s == latency && i.mean() {
		d.Delays = i.delays(places)
	}
	return d
}

// delays reads from the second sketch how many delays each flow had.
func (i *estimator) delays(places []place) []float64 {
	sk := sketch.New(i.cells(meanRegister))
	values := sk.Decode(places).Values
	for k := range values {
		values[k] /= sixteenths
	}
	return values
}

func (i *estimator) rank(s stat, keys []heavy.Key, d sketch.Decoded, n counts) ranked {
	st := i.statistics[s]
	r := ranked{noise: expect.MedianError * d.Noise * st.unit()}
	for k, key := range keys {
		variance := math.Pow(expect.MedianError*d.Noise, 2)
		if p, ok := st.(sampled); ok {
			variance += p.sampling(d.Values[k], d.Events[k], n)
		}
		f := flow{key: key, value: st.estimate(d.Values[k]) * st.unit(),
			se: math.Sqrt(variance) * st.unit(), median: st.estimate(d.Plain[k]) * st.unit()}
		if d.Delays != nil {
			f.count = d.Delays[k]
		}
		f.low, f.high = i.bounds(s, d.Values[k], expect.MedianError*d.Noise, n)
		r.flows = append(r.flows, f)
	}
	slices.SortFunc(r.flows, func(a, b flow) int {
		return cmp.Or(cmp.Compare(b.value, a.value), a.key.Compare(b.key))
	})
	return r
}

// common are the values that do not belong to one statistic.
func (c *config) common(n counts) []report.Value {
	return []report.Value{
		counter("packets", n.at(bpf.LeanLeanCounterLEAN_PACKETS), report.PacketUnit, "packets that the statistics looked at"),
		counter("aggregates", n.at(bpf.LeanLeanCounterLEAN_AGGREGATES), report.Count, "packets that stand for several segments (GSO, GRO)"),
		gauge("window_memory", int64(c.used()), report.Bytes, "tables, sketches and filters of one bank"),
	}
}

// describe adds a statistic to the window's result.
func (i *estimator) describe(result *algo.Result, s stat, r ranked, n counts) {
	st, b := i.statistics[s], &result.Body
	name := s.String()
	b.Values = append(b.Values,
		counter(name+"_events", n.of(bpf.LeanLeanCounterLEAN_EVENTS, s), report.Events, "finished events: delays, gaps, packets out of order or sent again"),
		gauge(name+"_candidates", len(r.flows), report.Flows, "flows that were reported, each once"),
		gauge(name+"_limit", i.limits[s]*st.unit(), st.value().Unit, "what a flow had to reach at the end of the window"),
		gauge(name+"_noise", r.noise, st.value().Unit, "standard error that the sketch adds to every flow"))
	b.Values = append(b.Values, st.values(n)...)
	b.Tables = append(b.Tables, i.table(s, r))
	b.Notes = append(b.Notes, i.notes(s, r, n)...)
	maps.Copy(result.Lost, st.lost(n))
	result.Lost[name+"_reports"] = n.of(bpf.LeanLeanCounterLEAN_UNREPORTED, s)
}

var titles = [stats]string{"Flows with the most delay", "Flows with the most loss", "Flows with the most packets out of order",
	"Flows with the most retransmissions"}

// columns of a statistic's table; the oracle's has the same labels and value.
func (c *config) columns(s stat) []report.Column {
	value, se := c.statistics[s].value(), report.Column{Name: "standard_error", Help: "standard error of the estimate: of the sketch, and of latency of sampling too"}
	se.Unit = value.Unit
	columns := append(c.spec.Columns(), value, se,
		report.Column{Name: "sketch_median", Unit: value.Unit, Help: "the sketch's estimate alone: the median of its five cells (section 4)"})
	if at := c.spec.Columns(); s != latency {
		least, most := value.Name+"_at_least", value.Name+"_at_most"
		columns[len(at)].Low, columns[len(at)].High, columns[len(at)].Promise = least, most, report.Bound
		columns = append(columns, report.Column{Name: least, Unit: value.Unit, Help: "the flow had more than this in 95 of 100 cases, and most often"},
			report.Column{Name: most, Unit: value.Unit, Help: "the flow had less than this in 95 of 100 cases, with what the tables did not follow"})
	} else if !c.walks(s) {
		columns[len(at)].Err = "standard_error"
	}
	if s == latency && c.mean() {
		columns = append(columns, report.Column{Name: "delays", Unit: report.Count, Help: "segments that were acknowledged, estimated"},
			report.Column{Name: "mean_ns", Unit: report.Nanosecond, Help: "total_ns / delays"})
	}
	return columns
}

func (i *estimator) table(s stat, r ranked) report.Table {
	t := report.Table{Name: s.String(), Title: titles[s], Whole: true, Columns: i.columns(s), Limit: i.top, Help: "most affected first"}
	for _, f := range i.listed(r) {
		row := append(i.spec.Cells(f.key), i.cell(s, f.value), i.cell(s, f.se), i.cell(s, f.median))
		if s != latency {
			row = append(row, i.cell(s, f.low), i.cell(s, f.high))
		}
		if s == latency && i.mean() {
			row = append(row, math.Round(f.count), f.mean())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// listed are the flows that have a place in the table.
func (c *config) listed(r ranked) []flow {
	list := r.flows[:min(len(r.flows), c.top)]
	if n := slices.IndexFunc(list, func(f flow) bool { return f.value <= 0 }); n >= 0 {
		return list[:n]
	}
	return list
}

// cell rounds a number as the report requires: ns are whole.
func (c *config) cell(s stat, x float64) any {
	if c.statistics[s].value().Unit == report.Nanosecond {
		return int64(math.Round(x))
	}
	return x
}

func (i *estimator) notes(s stat, r ranked, n counts) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if lost := n.of(bpf.LeanLeanCounterLEAN_UNREPORTED, s); lost > 0 {
		add("%d flows with %s were not reported because the ring was full: raise lean.ring", lost, s)
	}
	if len(r.flows) > (limit.Overload+1)*i.budget {
		add("%d flows were candidates for %s, more than the filter is made for: some may be missing; raise lean.memory or lower lean.candidates", len(r.flows), s)
	}
	return append(notes, i.statistics[s].notes(n)...)
}
