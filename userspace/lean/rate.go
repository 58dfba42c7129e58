package lean

import (
	"maps"
	"unsafe"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/lean/rates"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

const (
	rateWays    = 2
	rateSums    = "lean_lat_sum_r"
	rateSquares = "lean_lat_sq_r"
)

func rateWay(register string, way int) string { return register + "_r" + string(rune('0'+way)) }

// rateWidths are the arrays of all statistics by rate with the bytes of an entry.
var rateWidths = func() map[string]int {
	widths := map[string]int{rateSums: 8, rateSquares: 8}
	for _, register := range registers {
		for way := range rateWays {
			widths[rateWay(register, way)] = 8
		}
	}
	return widths
}()

// rateTables are the entries at 40,000 bytes: of what finds the events, and of the two ways. ooo sees its events within a train, so that few records
// suffice; loss and retrans miss what the train before had if its record is lost, and keep their records.
var rateTables = [stats]struct {
	ways   [rateWays]float64
	tables map[string][2]float64 // the sum of two, each a power of two
}{
	latency: {[rateWays]float64{512, 512}, map[string][2]float64{"lean_lat_fr": {2048}, rateSums: {512, 512}, rateSquares: {512, 512}}},
	loss:    {[rateWays]float64{512, 256}, map[string][2]float64{"lean_loss_own": {4096}, "lean_loss_last": {4096}, "lean_loss_order": {4096}}},
	ooo:     {[rateWays]float64{2048, 2048}, map[string][2]float64{"lean_ooo_way0": {256}, "lean_ooo_way1": {256}, "lean_ooo_max": {256, 256}}},
	retrans: {[rateWays]float64{512, 512}, map[string][2]float64{"lean_ret_way0": {1024}, "lean_ret_way1": {256}, "lean_ret_time": {1024, 256},
		"lean_ret_max": {1024, 256}, "lean_ret_cuts": {1024, 256}}},
}

// rateLayout divides scale times 40,000 bytes.
func rateLayout(s stat, scale float64) layout {
	l := layout{widths: maps.Clone(rateWidths), tables: map[string]int{}}
	for _, own := range []map[string]int{latencyWidths, lossWidths, oooWidths, retransWidths} {
		maps.Copy(l.widths, own)
	}
	for name, parts := range rateTables[s].tables {
		for _, n := range parts {
			if n > 0 {
				l.tables[name] += power(n * scale)
			}
		}
	}
	for way, n := range rateTables[s].ways {
		l.tables[rateWay(registers[s], way)] = power(n * scale)
	}
	if s == ooo || s == retrans {
		l.tables["lean_twin"] = twins
	}
	return l
}

// defaultForms refuses what has no rates: forms other than the default ones.
func defaultForms(v algo.Values) error {
	for _, form := range [][2]string{{"count", "packets"}, {"latency", "matched"}, {"loss", "gaps"}, {"ooo", "sketch"}, {"retrans", "sequence"}, {"keys", "bloom"}} {
		if v.Text(form[0]) != form[1] {
			return v.Error(form[0], form[1]+" with lean.by=rate")
		}
	}
	if v.Bool("mean") {
		return v.Error("mean", "false with lean.by=rate, which has the means")
	}
	return nil
}

// takes is a flow's entry.
func (i *instance) takes(b []byte) {
	var e bpf.LeanLeanRateReport
	if len(b) < int(unsafe.Sizeof(e)) {
		return
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b)
	s, way := stat(e.Stat&15), e.Stat>>4
	key, ok := i.keyOf(&event{Src: e.Src, Dst: e.Dst, Sport: e.Sport, Dport: e.Dport, Proto: e.Proto, Family: e.Family})
	if !ok || s >= stats || way >= rateWays {
		return
	}
	if entries := i.layouts[s].tables[rateWay(registers[s], int(way))]; entries > 0 {
		i.owners[e.Bank&1][s].Take(key, e.Rows, way, entries, e.Word, e.Sums, e.Squares)
	}
}

// ratesOf reads the words of flows that are still in a table.
func (i *instance) ratesOf(s stat, bank int) (o rates.Owners, err error) {
	o = i.owners[bank][s]
	i.owners[bank][s] = rates.Owners{}
	var sums [2][]uint64
	for n, name := range []string{rateSums, rateSquares} {
		if sums[n], err = i.set.ReadReset(name, bank); err != nil {
			return o, err
		}
	}
	first := 0
	for way := range rateWays {
		words, err := i.set.ReadReset(rateWay(registers[s], way), bank)
		if err != nil {
			return o, err
		}
		for n, word := range words {
			var sum, square uint64
			if s == latency {
				sum, square = sums[0][first+n], sums[1][first+n]
			}
			o.End(rates.Slot{Way: uint8(way), Index: uint32(n)}, word, sum, square)
		}
		first += len(words)
	}
	return o, nil
}

// ratesInto adds the flows of the tables by rate to the snapshot.
func (i *instance) ratesInto(s *snapshot.Snapshot, bank int, n counts) error {
	lost := make(snapshot.Words, stats)
	for _, st := range i.on {
		o, err := i.ratesOf(st, bank)
		if err != nil {
			return err
		}
		s.Words[ratedWords+st.String()], lost[st] = i.measure(st, n).Words(o.Flows, i.budget), o.Lost
	}
	s.Words[unnamedWords], s.Words[slowWords] = lost, snapshot.Words{uint64(i.slow.Ticks)}
	return nil
}

// followSlow moves the threshold of delays that are events.
func (i *instance) followSlow(n counts, closed bool) error {
	if i.rate && i.slow.Follow(n.of(bpf.LeanLeanCounterLEAN_EVENTS, latency), n.at(bpf.LeanLeanCounterLEAN_DELAY), n.of(bpf.LeanLeanCounterLEAN_CROWDED, latency), closed) {
		return i.slowest.Write(0, []uint64{uint64(i.slow.Ticks)})
	}
	return nil
}

// The words of a snapshot by rate.
const (
	ratedWords   = "rated."
	unnamedWords = "unnamed" // words of each statistic whose flow is not known
	slowWords    = "slow"    // ticks from which on a delay was an event, at the end of the window
)

// partial is a statistic that compares a share of a flow's packets only, or misses a share of their events.
type partial interface {
	followed(n counts) (share, missed float64)
}

// measure is how a statistic makes a rate.
func (c *config) measure(s stat, n counts) *rates.Measure {
	m := &rates.Measure{Followed: 1, Least: c.least}
	if s == latency {
		m.Tick = latencyTick
	}
	if p, ok := c.statistics[s].(partial); ok {
		m.Followed, m.Missed = p.followed(n)
	}
	return m
}

// openRates reads the flows of a snapshot.
func (i *estimator) openRates() {
	for _, s := range i.on {
		i.rated[s] = rates.Parse(i.words, ratedWords+s.String())
	}
	i.lost, i.slow = i.words.Words(unnamedWords, int(stats)), i.words.Words(slowWords, 1)[0]
}

// mergeRates adds what two hosts counted of each flow.
func (c *config) mergeRates(s, a, b *snapshot.Snapshot, x, y *estimator) {
	n := counts(snapshot.Sum(a.Words[counterWords], b.Words[counterWords]))
	for _, st := range c.on {
		flows := maps.Clone(x.rated[st])
		for key, f := range y.rated[st] {
			f.Add(flows[key])
			flows[key] = f
		}
		s.Words[ratedWords+st.String()] = c.measure(st, n).Words(flows, c.budget)
	}
	s.Words[unnamedWords] = snapshot.Sum(a.Words[unnamedWords], b.Words[unnamedWords])
	s.Words[slowWords] = snapshot.Words{max(x.slow, y.slow)}
}

// rateColumns are the columns that rank.
var rateColumns = [stats]report.Column{
	latency: {Name: "mean_ns", Unit: report.Nanosecond, Metric: true, Help: "mean delay between a segment and its ACK, of the segments that were followed"},
	loss:    {Name: "lost_share", Unit: report.Ratio, Metric: true, Help: "share of the flow's packets before which something is missing that did not arrive late"},
	ooo:     {Name: "out_of_order_share", Unit: report.Ratio, Metric: true, Help: "share of the flow's packets that were out of order"},
	retrans: {Name: "retransmitted_share", Unit: report.Ratio, Metric: true, Help: "share of the flow's packets that were sent again"},
}

var rateTitles = [stats]string{"Flows with the longest mean delay", "Flows with the largest share of loss", "Flows with the largest share of packets out of order",
	"Flows with the largest share of retransmissions"}

// describeRates adds a statistic to the window's result.
func (i *estimator) describeRates(result *algo.Result, s stat, n counts) {
	m, b, name := i.measure(s, n), &result.Body, s.String()
	list := m.List(i.rated[s])
	b.Values = append(b.Values,
		counter(name+"_events", n.of(bpf.LeanLeanCounterLEAN_EVENTS, s), report.Events, "finished events: delays, gaps, packets out of order or sent again"),
		gauge(name+"_flows", len(list), report.Flows, "flows with lean.least packets or more whose rate is known"))
	if s == latency {
		b.Values = append(b.Values, gauge("latency_threshold_ns", int64(i.slow)*latencyTick, report.Nanosecond, "delay from which on a flow gets a place in the table, at the end of the window"),
			counter("latency_long", n.at(bpf.LeanLeanCounterLEAN_SLOW), report.Count, "delays that were as long as the threshold"))
	}
	b.Values = append(b.Values, i.statistics[s].values(n)...)
	b.Tables = append(b.Tables, m.Table(i.spec, name, rateTitles[s], rateColumns[s], list, i.top))
	b.Notes = append(b.Notes, i.statistics[s].notes(n)...)
	maps.Copy(result.Lost, i.statistics[s].lost(n))
	result.Lost[name+"_reports"] = n.of(bpf.LeanLeanCounterLEAN_UNREPORTED, s)
	result.Lost[name+"_without_place"] = n.of(bpf.LeanLeanCounterLEAN_CROWDED, s)
	result.Lost[name+"_unnamed"] = i.lost[s]
}

// rateCell is a rate as its table has it.
func rateCell(s stat, x float64) any {
	m := rates.Measure{}
	if s == latency {
		m.Tick = latencyTick
	}
	return m.Cell(x)
}
