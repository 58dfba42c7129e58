package prom

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Describe sends nothing: the set of metrics depends on the running algorithms.
func (s *Store) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &gathering{ch: ch, families: map[string]family{}, sent: make(map[uint64]struct{}, s.served), descs: s.descs, rows: s.rows, details: s.details, histograms: s.histograms, left: s.limit,
		latest: map[string]*series{}}
	g.info(s.run)
	g.attachments(s.run, s.attached)
	if s.dropped != nil {
		g.kernelDrops(s.dropped())
	}
	// Beyond the limit, rows are left out first, then reported values: losses and the age of windows are always served.
	all := s.sorted()
	if s.diagnosed {
		g.found(s.findings, identities(all))
	}
	for _, one := range all {
		if last := g.latest[one.key.instance]; last == nil || one.arrived.After(last.arrived) {
			g.latest[one.key.instance] = one
		}
	}
	for _, part := range []func(*series){g.common, g.reported, g.tables} {
		for _, one := range all {
			part(one)
		}
	}
	s.limited(g.dropped)
	g.left = math.MaxInt
	g.is(nil)
	g.gauge("xdpmon_metrics_dropped_series", "Series that are not served because there are more than the limit allows.", float64(g.dropped))
	s.served = len(g.sent)
}

// common sends the metrics that every algorithm has.
func (g *gathering) common(o *series) {
	g.of(o)
	g.is(g.labels[1:]) // all algorithms of an instance have the same packets and windows
	g.traffic(o)
	g.acted(o)
	g.window(g.latest[o.key.instance])
	g.of(o)
	g.accounts(o)
}

// of sets the labels of an algorithm on an instance.
func (g *gathering) of(o *series) {
	g.is(append([]label{{"algorithm", o.key.algorithm}}, identityLabels(o.line.Identity)...))
	g.stem = identifier(o.key.algorithm)
}

// reported sends the values and distributions of the latest window.
func (g *gathering) reported(o *series) {
	g.of(o)
	for _, v := range o.line.Report.Values {
		g.value(o, v)
	}
	for n, d := range o.line.Report.Distributions {
		g.histogram(g.name(d.Name, d.Unit), g.help(d.Help, d.Title)+", corrected for what was not seen.", o.histograms[d.Name])
		if n == 0 || g.details {
			g.percentiles(d)
		}
	}
}

func (g *gathering) tables(o *series) {
	g.of(o)
	for _, t := range o.line.Report.Tables {
		g.table(t)
		g.counted(o, t)
	}
}

// counted sends the counting columns of tables with bounded rows: the total, and the time of the latest increment.
func (g *gathering) counted(o *series, t report.Table) {
	for _, c := range t.Columns {
		if !c.Counter {
			continue
		}
		name, help := g.name(t.Name+"_"+c.Name, c.Unit), g.help(c.Help, c.Name)+"; one row of: "+helpOr(t.Help, t.Title)+"."
		for _, row := range t.Rows {
			n := o.rows[rowKey(t, c, row)]
			if n == nil {
				continue
			}
			labels := rowLabels(t, row)
			g.counter(name+"_total", help, base(n.sum, c.Unit), labels...)
			if !n.last.IsZero() {
				g.gauge(name+"_last_timestamp_seconds", "When this last rose, seconds since 1970; "+help, float64(n.last.UnixMilli())/1e3, labels...)
			}
		}
	}
}

type label struct{ name, value string }

// family is what all series of a metric have in common.
type family struct {
	help  string
	value prometheus.ValueType
	hist  bool
}

// gathering is the state of one scrape.
type gathering struct {
	ch       chan<- prometheus.Metric
	labels   []label
	stem     string // prefix of reported names: the algorithm
	rows     bool   // also rows whose labels are from traffic
	details  bool   // also metrics of the measurement itself
	families map[string]family
	sent     map[uint64]struct{}         // by name and labels
	descs    map[uint64]*prometheus.Desc // cached from earlier scrapes, by name, help and label names; nil: rejected
	pairs    []*dto.LabelPair            // labels in the form of protobuf, sorted by name
	left     int                         // number of series until the limit
	dropped  int

	histograms Histograms
	latest     map[string]*series // the series with the latest window, by instance: an algorithm may have been removed from it
}

func (g *gathering) info(run report.Run) {
	g.is(nil)
	g.gauge("xdpmon_info", "The running xdpmon; always 1.", 1,
		label{"version", run.Version}, label{"command", run.Command}, label{"kernel", run.Kernel})
}

// attachments report for each interface whether it is attached: a missing interface is distinguished from a stopped series.
func (g *gathering) attachments(run report.Run, attached map[string]bool) {
	for iface, now := range attached {
		value := 0.0
		if now {
			value = 1
		}
		g.is(identityLabels(report.Identity{Instance: run.InstanceOf(iface), Interfaces: []string{iface}}))
		g.gauge("xdpmon_interface_attached", "Whether the programs are attached to the interface: 1, or 0 while it is absent.", value)
	}
}

// mostFindings bounds the series of findings: the most severe are served, the others counted.
const mostFindings = 50

// identities maps the place that a finding names to the identity of its instance; a place with several instances is left out.
func identities(all []*series) map[string]report.Identity {
	known := map[string]report.Identity{}
	for _, one := range all {
		i := one.line.Identity
		if other, twice := known[i.Place()]; twice && other.Key() != i.Key() {
			known[i.Place()] = report.Identity{}
			continue
		}
		known[i.Place()] = i
	}
	return known
}

// found sends the active findings. Their subjects are from traffic, but findings are rare and end. The other labels of the interface are those of all its
// series.
func (g *gathering) found(open []finding.Finding, known map[string]report.Identity) {
	for _, f := range open[:min(len(open), mostFindings)] {
		g.is(slices.DeleteFunc(identityLabels(known[f.Interface]), func(l label) bool { return l.name == interfaceLabel }))
		g.gauge("xdpmon_finding", "An active finding; always 1.", 1, label{"kind", string(f.Kind)}, label{"severity", f.Severity.String()}, label{"subject", f.Subject.Name},
			label{"subject_type", f.Subject.Type}, label{"interface", f.Interface})
	}
	g.is(nil)
	g.gauge("xdpmon_findings", "Active findings, including those beyond the limit of xdpmon_finding.", float64(len(open)))
}

// traffic is what passed the hook. All algorithms of a chain see the same packets, so that it is sent once, without the label algorithm:
// a sum over the interfaces is correct.
func (g *gathering) traffic(o *series) {
	g.counter("xdpmon_seen_packets_total", "Packets that passed the hook; one packet may stand for several segments (GSO, GRO).", o.seen)
	g.counter("xdpmon_seen_segments_total", "Segments that the packets that passed the hook stand for; equal to the packets where nothing is merged (GSO, GRO).", o.segments)
	g.counter("xdpmon_seen_bytes_total", "Bytes on the wire of the packets that passed the hook.", o.bytes)
	g.counter("xdpmon_parsed_packets_total", "Packets that passed the hook and were parsed to the end.", o.parsed)
	for _, name := range sortedKeys(o.reasons) {
		g.counter("xdpmon_unparsed_packets_total", "Packets that passed the hook and were not parsed to the end, by reason.",
			o.reasons[name], label{"reason", name})
	}
}

// acted is what was done to packets, if an algorithm acts on them.
func (g *gathering) acted(o *series) {
	v := o.verdicts
	if v == nil {
		return
	}
	g.counter("xdpmon_passed_packets_total", "Packets that passed the hook and were let through, with an ECN mark or without, while an algorithm acted on packets.", o.passed)
	g.counter("xdpmon_dropped_packets_total", "Packets that passed the hook and were dropped there, because an algorithm of xdpmon decided so.", float64(v.Dropped))
	g.counter("xdpmon_dropped_bytes_total", "Bytes on the wire of the packets that were dropped at the hook, because an algorithm of xdpmon decided so.", float64(v.DroppedBytes))
	g.counter("xdpmon_marked_packets_total", "Packets whose ECN field was set to congestion experienced at the hook, because an algorithm of xdpmon decided so.", float64(v.Marked))
	g.counter("xdpmon_marked_before_packets_total", "Packets that an algorithm of xdpmon decided to mark and whose ECN field was congestion experienced already when they arrived.", float64(v.MarkedBefore))
	g.counter("xdpmon_steered_packets_total", "Packets that got another mark, priority or time of departure of the host's own at the hook, because an algorithm of xdpmon decided so.", float64(v.Steered))
	g.counter("xdpmon_unmarkable_packets_total", "Packets that an algorithm of xdpmon decided to mark and that passed without a mark: their sender does not understand ECN, or their header was out of reach.", float64(v.Unmarkable))
}

// accounts are the metrics that every algorithm has.
func (g *gathering) accounts(o *series) {
	g.counter("xdpmon_windows_total", "Measurement windows that were finished.", o.windows)
	if o.line.Packets.UsedSegments {
		g.counter("xdpmon_used_segments_total", "Segments that the algorithm took as input; one packet may stand for several (GSO, GRO).", o.used)
	} else {
		g.counter("xdpmon_used_packets_total", "Packets that the algorithm took as input.", o.used)
	}
	for _, name := range sortedKeys(o.lost) {
		g.counter("xdpmon_lost_events_total", "Times that the algorithm could not see or keep something, by kind; "+
			"kinds count different things, so do not add them up.", o.lost[name], label{"kind", name})
	}
	g.gauge("xdpmon_register_memory_bytes", "Size of the algorithm's register arrays and tallies, all banks and CPUs.", float64(o.line.Memory.RegisterBytes))
	if !g.details {
		return
	}
	g.gauge("xdpmon_kernel_memory_bytes", "What the kernel allocates for the algorithm's maps.", float64(o.line.Memory.KernelBytes))
}

// window is sent once per instance, like traffic.
func (g *gathering) window(o *series) {
	w := o.line.Window
	g.gauge("xdpmon_last_window_duration_seconds", "Length of the latest finished measurement window.", float64(w.End-w.Start)/1e9)
	g.gauge("xdpmon_last_window_timestamp_seconds", "When the latest measurement window was finished, seconds since 1970.", float64(o.arrived.UnixMilli())/1e3)
}

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (g *gathering) value(o *series, v report.Value) {
	f, ok := report.Number(v.Value)
	if !ok || v.Kind == report.Info {
		return
	}
	name, help := g.name(v.Name, v.Unit), g.help(v.Help, v.Name)
	if v.Kind == report.Counter {
		g.counter(name+"_total", help+".", base(o.counters[v.Name], v.Unit))
		return
	}
	if Detail(v) && !g.details {
		return
	}
	g.gauge(name, help+", in the latest window.", base(f, v.Unit))
	low, high := v.Promise.Suffixes()
	g.bound(v.Name+low, v.Unit, v.Low, help+", in the latest window: lower end"+ends(v.Promise)+".")
	g.bound(v.Name+high, v.Unit, v.High, help+", in the latest window: upper end"+ends(v.Promise)+".")
}

// name is the metric's name of a reported name.
func (g *gathering) name(name string, unit report.Unit) string {
	return metricName(g.stem+"_"+name, unit)
}

// help is a self-contained sentence: the algorithm, and what it counts.
func (g *gathering) help(help, other string) string {
	return strings.ReplaceAll(g.stem, "_", "-") + ": " + strings.TrimSuffix(helpOr(help, other), ".")
}

// ends describes the two ends of an estimate's interval.
func ends(p report.Promise) string {
	if p == report.Bound {
		return " of the bound that holds with 95 % confidence"
	}
	return " of the 95 % confidence interval"
}

func (g *gathering) bound(name string, unit report.Unit, value any, help string) {
	if f, ok := report.Number(value); ok {
		g.gauge(unitLast(g.stem+"_"+name, unit), help, base(f, unit))
	}
}

// unitLast is metricName for a name with a suffix after its unit: delay_ns_low is xdpmon_delay_low_seconds.
func unitLast(name string, unit report.Unit) string {
	if abbreviation(unit) != "" {
		name = strings.Replace(name, abbreviation(unit)+"_", "_", 1)
	}
	return metricName(name, unit)
}

// percentiles sends those of the latest window, with their intervals.
func (g *gathering) percentiles(d report.Distribution) {
	help := g.help(d.Help, d.Title)
	for _, q := range d.Quantiles {
		if !q.Defined {
			continue
		}
		at, help := label{"q", strconv.FormatFloat(q.Q, 'g', -1, 64)}, help+": percentile of the latest window, "
		send := func(suffix, what string, value float64) {
			g.gauge(unitLast(g.stem+"_"+d.Name+"_window"+suffix, d.Unit), help+what+".", base(value, d.Unit), at)
		}
		send("", "estimate", q.Value)
		if low, high := q.Promise.Suffixes(); q.Bounded() {
			send(low, "lower end"+ends(q.Promise), q.Low)
			send(high, "upper end"+ends(q.Promise), q.High)
		}
	}
}

// table sends the metric columns of the latest window's rows, labelled by its label columns. If these are addresses and flows, each row is a new series
// with personal data: such tables are served on request only.
func (g *gathering) table(t report.Table) {
	if !t.Settings && !g.rows {
		return
	}
	rows := t.Rows
	if t.Limit > 0 {
		rows = rows[:min(t.Limit, len(rows))]
	}
	for _, row := range rows {
		labels := rowLabels(t, row)
		for i, c := range t.Columns {
			if f, ok := report.Number(cell(row, i)); ok && c.Metric && !c.Label {
				help := g.help(c.Help, c.Name) + ", in the latest window; one row of: " + helpOr(t.Help, t.Title) + "."
				g.gauge(g.name(t.Name+"_"+c.Name, c.Unit), help, base(f, c.Unit), labels...)
			}
		}
	}
}

func rowLabels(t report.Table, row []any) []label {
	var labels []label
	for i, c := range t.Columns {
		if c.Label {
			labels = append(labels, label{labelName(c.Name), fmt.Sprint(cell(row, i))})
		}
	}
	return labels
}

func cell(row []any, i int) any {
	if i >= len(row) {
		return nil
	}
	return row[i]
}

func (g *gathering) gauge(name, help string, value float64, more ...label) {
	g.number(name, family{help, prometheus.GaugeValue, false}, value, more)
}

func (g *gathering) counter(name, help string, value float64, more ...label) {
	g.number(name, family{help, prometheus.CounterValue, false}, value, more)
}

func (g *gathering) number(name string, f family, value float64, more []label) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	desc, pairs, ok := g.describe(name, f, more, 1)
	if !ok {
		return
	}
	m := &metric{desc: desc, pairs: pairs}
	if f.value == prometheus.CounterValue {
		m.counter = &dto.Counter{Value: &value}
	} else {
		m.gauge = &dto.Gauge{Value: &value}
	}
	g.ch <- m
}

func (g *gathering) histogram(name, help string, h *histogram) {
	if h == nil {
		return
	}
	desc, pairs, ok := g.describe(name, family{help: help, hist: true}, nil, g.histograms.series(len(h.bounds)))
	if ok {
		g.ch <- &metric{desc: desc, pairs: pairs, histogram: h.write(g.histograms)}
	}
}

// is sets the labels of all following series. Hundreds share them, so that they are made once.
func (g *gathering) is(labels []label) {
	g.labels, g.pairs = labels, make([]*dto.LabelPair, 0, len(labels))
	for _, l := range labels {
		g.pairs = append(g.pairs, pairOf(l))
	}
	sortPairs(g.pairs)
}

func pairOf(l label) *dto.LabelPair {
	return &dto.LabelPair{Name: &l.name, Value: new(strings.ToValidUTF8(l.value, "\uFFFD"))}
}

func sortPairs(pairs []*dto.LabelPair) {
	slices.SortFunc(pairs, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// describe checks name and labels within the scrape. ok is false for a duplicate, for another type than earlier series of the name, and
// beyond the limit.
func (g *gathering) describe(name string, f family, more []label, count int) (desc *prometheus.Desc, pairs []*dto.LabelPair, ok bool) {
	known, taken := g.families[name]
	if taken && (known.value != f.value || known.hist != f.hist) {
		return nil, nil, false
	}
	if !taken {
		g.families[name] = f
		known = f
	}
	pairs = g.pairs
	if len(more) > 0 {
		pairs = make([]*dto.LabelPair, len(g.pairs), len(g.pairs)+len(more))
		copy(pairs, g.pairs)
		for _, l := range more {
			pairs = append(pairs, pairOf(l))
		}
		sortPairs(pairs)
	}
	var key, kind maphash.Hash
	key.SetSeed(hashSeed)
	kind.SetSeed(hashSeed)
	add(&key, name)
	add(&kind, name)
	add(&kind, known.help)
	for _, p := range pairs {
		add(&key, p.GetName())
		add(&key, p.GetValue())
		add(&kind, p.GetName())
	}
	if _, sent := g.sent[key.Sum64()]; sent {
		return nil, nil, false
	}
	g.sent[key.Sum64()] = struct{}{}
	if count > g.left {
		g.left = 0 // all following series are dropped, even if they would fit
		g.dropped += count
		return nil, nil, false
	}
	g.left -= count
	desc = g.desc(kind.Sum64(), name, known.help, pairs)
	return desc, pairs, desc != nil
}

// hashSeed is the seed of this process; hashes are compared within it. Two of a scrape's 50,000 series have equal 64-bit hashes with a chance of one in ten billion.
var hashSeed = maphash.MakeSeed()

func add(h *maphash.Hash, word string) {
	_, _ = h.WriteString(word)
	_ = h.WriteByte(0)
}

// desc returns a cached description or makes one: checking and hashing names is most of a scrape's cost. Invalid names and labels are rejected.
func (g *gathering) desc(kind uint64, name, help string, pairs []*dto.LabelPair) *prometheus.Desc {
	d, known := g.descs[kind]
	if known {
		return d
	}
	names, values := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		names[i], values[i] = p.GetName(), p.GetValue()
	}
	d = prometheus.NewDesc(name, help, names, nil)
	if _, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, 0, values...); err != nil {
		d = nil
	}
	g.descs[kind] = d
	return d
}

// metric is ready-made protobuf. The client library's own constructors make either a classic or a native histogram, and only integer counts; they check and
// sort labels, which is most of a scrape's cost, although hundreds of series share them.
type metric struct {
	desc      *prometheus.Desc
	pairs     []*dto.LabelPair
	counter   *dto.Counter
	gauge     *dto.Gauge
	histogram *dto.Histogram
}

// Desc returns the description of the series.
func (m *metric) Desc() *prometheus.Desc { return m.desc }

// Write copies the series to out.
func (m *metric) Write(out *dto.Metric) error {
	out.Label, out.Counter, out.Gauge, out.Histogram = m.pairs, m.counter, m.gauge, m.histogram
	return nil
}
