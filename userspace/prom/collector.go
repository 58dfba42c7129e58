package prom

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Describe sends nothing: which metrics there are depends on the algorithms that run.
func (s *Store) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of all series.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &gathering{ch: ch, families: map[string]family{}, sent: map[string]bool{}}
	g.info(s.run)
	for _, one := range s.sorted() {
		g.labels = []label{{"algorithm", one.key.algorithm}, {"interface", one.key.iface}}
		g.accounts(one)
		g.body(one)
	}
}

type label struct{ name, value string }

// family is what all series of a metric must share. The first series decides; whoever disagrees about the type gets
// the algorithm into the metric's name, so that one algorithm's choice of words cannot spoil another's scrape.
type family struct {
	help  string
	value prometheus.ValueType
	hist  bool
}

// gathering is one scrape.
type gathering struct {
	ch       chan<- prometheus.Metric
	labels   []label
	families map[string]family
	sent     map[string]bool
}

func (g *gathering) info(run report.Run) {
	g.labels = nil
	g.gauge("xdpmon_info", "The running xdpmon; always 1.", 1,
		label{"version", run.Version}, label{"command", run.Command}, label{"kernel", run.Kernel})
}

// accounts are the metrics that every algorithm has.
func (g *gathering) accounts(o *series) {
	g.counter("xdpmon_windows_total", "Windows that were finished.", o.windows)
	g.counter("xdpmon_seen_packets_total", "Packets that passed the hook.", o.seen)
	g.counter("xdpmon_seen_bytes_total", "Bytes on the wire of the packets that passed the hook.", o.bytes)
	g.counter("xdpmon_parsed_packets_total", "Packets that were fully parsed.", o.parsed)
	g.counter("xdpmon_used_packets_total", "Packets that the algorithm took as input.", o.used)
	for _, name := range sortedKeys(o.reasons) {
		g.counter("xdpmon_unparsed_packets_total", "Packets that were not fully parsed, by reason.", o.reasons[name], label{"reason", name})
	}
	for _, name := range sortedKeys(o.lost) {
		g.counter("xdpmon_lost_total", "What the algorithm could not see or keep, by kind.", o.lost[name], label{"kind", name})
	}
	g.gauge("xdpmon_register_memory_bytes", "Size of the register arrays and tallies, all banks and CPUs.", float64(o.line.Memory.RegisterBytes))
	g.gauge("xdpmon_kernel_memory_bytes", "What the kernel allocates for the algorithm's maps.", float64(o.line.Memory.KernelBytes))
	w := o.line.Window
	g.gauge("xdpmon_window_seconds", "Length of the latest window.", float64(w.End-w.Start)/1e9)
	g.gauge("xdpmon_last_window_timestamp_seconds", "When the latest window was finished, seconds since 1970.", float64(o.arrived.UnixMilli())/1e3)
}

func sortedKeys(m map[string]float64) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// body are the metrics of what the algorithm reported.
func (g *gathering) body(o *series) {
	for _, v := range o.line.Report.Values {
		g.value(o, v)
	}
	for _, d := range o.line.Report.Distributions {
		g.distribution(o, d)
	}
	for _, t := range o.line.Report.Tables {
		g.table(t)
	}
}

func (g *gathering) value(o *series, v report.Value) {
	f, ok := report.Number(v.Value)
	if !ok || v.Kind == report.Info {
		return
	}
	name, help := metricName(v.Name, v.Unit), helpOr(v.Help, v.Name)
	if v.Kind == report.Counter {
		g.counter(name+"_total", help, base(o.counters[v.Name], v.Unit))
		return
	}
	g.gauge(name, help, base(f, v.Unit))
	g.bound(v.Name+"_low", v.Unit, v.Low, help+" (lower end of the 95 % confidence interval)")
	g.bound(v.Name+"_high", v.Unit, v.High, help+" (upper end of the 95 % confidence interval)")
}

func (g *gathering) bound(name string, unit report.Unit, value any, help string) {
	if f, ok := report.Number(value); ok {
		g.gauge(unitLast(name, unit), help, base(f, unit))
	}
}

// unitLast is metricName for a name with something behind its unit: delay_ns_low is xdpmon_delay_low_seconds.
func unitLast(name string, unit report.Unit) string {
	if abbreviation(unit) != "" {
		name = strings.Replace(name, abbreviation(unit)+"_", "_", 1)
	}
	return metricName(name, unit)
}

// distribution sends the accumulated histogram, and the percentiles of the latest window with their intervals.
func (g *gathering) distribution(o *series, d report.Distribution) {
	help := helpOr(d.Help, d.Title)
	g.histogram(metricName(d.Name, d.Unit), help+", corrected for what was not seen.", o.histograms[d.Name])
	for _, q := range d.Quantiles {
		if !q.Defined {
			continue
		}
		at := label{"q", strconv.FormatFloat(q.Q, 'g', -1, 64)}
		for _, v := range []struct {
			suffix, help string
			value        float64
		}{
			{"_window", "estimate", q.Value},
			{"_window_low", "lower end of the 95 % confidence interval", q.Low},
			{"_window_high", "upper end of the 95 % confidence interval", q.High},
		} {
			g.gauge(unitLast(d.Name+v.suffix, d.Unit), help+": percentile of the latest window, "+v.help+".", base(v.value, d.Unit), at)
		}
	}
}

// table sends the metric columns of the rows that the latest window has; a row is named by its label columns.
func (g *gathering) table(t report.Table) {
	rows := t.Rows
	if t.Limit > 0 {
		rows = rows[:min(t.Limit, len(rows))]
	}
	for _, row := range rows {
		labels := rowLabels(t, row)
		for i, c := range t.Columns {
			if f, ok := report.Number(cell(row, i)); ok && c.Metric && !c.Label {
				help := helpOr(c.Help, c.Name) + " (" + helpOr(t.Title, t.Name) + ", latest window)."
				g.gauge(metricName(t.Name+"_"+c.Name, c.Unit), help, base(f, c.Unit), labels...)
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
	desc, values, ok := g.describe(name, f, more)
	if !ok {
		return
	}
	if m, err := prometheus.NewConstMetric(desc, f.value, value, values...); err == nil {
		g.ch <- m
	}
}

func (g *gathering) histogram(name, help string, h *histogram) {
	if h == nil {
		return
	}
	desc, values, ok := g.describe(name, family{help: help, hist: true}, nil)
	if !ok {
		return
	}
	m := &histogramMetric{desc: desc, metric: &dto.Metric{Label: prometheus.MakeLabelPairs(desc, values)}}
	h.write(m.metric)
	g.ch <- m
}

// describe settles name and help within the scrape; ok is false for a series that was sent already.
func (g *gathering) describe(name string, f family, more []label) (desc *prometheus.Desc, values []string, ok bool) {
	known, taken := g.families[name]
	if taken && (known.value != f.value || known.hist != f.hist) && len(g.labels) > 0 {
		name = prefix + identifier(g.labels[0].value) + "_" + strings.TrimPrefix(name, prefix)
		known, taken = g.families[name]
	}
	if !taken {
		g.families[name] = f
		known = f
	}
	var names []string
	key := name
	for _, l := range append(append([]label{}, g.labels...), more...) {
		names = append(names, l.name)
		values = append(values, strings.ToValidUTF8(l.value, "\uFFFD"))
		key += "\x00" + l.name + "\x00" + l.value
	}
	if g.sent[key] {
		return nil, nil, false
	}
	g.sent[key] = true
	return prometheus.NewDesc(name, known.help, names, nil), values, true
}

// histogramMetric carries a finished protobuf histogram: the client library's own constructors make either a classic
// or a native one, and only whole counts.
type histogramMetric struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

// Desc returns the description of the series.
func (m *histogramMetric) Desc() *prometheus.Desc { return m.desc }

// Write copies the series out.
func (m *histogramMetric) Write(out *dto.Metric) error {
	out.Label, out.Histogram = m.metric.Label, m.metric.Histogram
	return nil
}
