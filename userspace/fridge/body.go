package fridge

import (
	"fmt"
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/fridge/samples"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Names, titles and help of the reported distributions, shared by estimate and truth.
func (c *config) delayLabel() delay.Label {
	return delay.Label{Name: "delay_ns", Title: c.rules.Kind.Title(), Unit: report.Nanosecond,
		Help: "delay from a request to its response"}
}

var (
	ackLabel = delay.Label{Name: "ack_delay_ns", Title: "delay from SYN-ACK to ACK", Unit: report.Nanosecond,
		Help: "second leg of a handshake: from the tap to the client and back"}
	handshakeLabel = delay.Label{Name: "handshake_delay_ns", Title: "whole handshake, SYN to ACK", Unit: report.Nanosecond,
		Help: "both legs of a handshake: from client to server and back"}
	bytesLabel = delay.Label{Name: "flow_bytes", Title: "bytes of finished flows", Unit: report.Bytes,
		Help: "bytes on the wire of finished flows, both directions"}
	packetsLabel = delay.Label{Name: "flow_segments", Title: "segments of finished flows", Unit: report.Segments,
		Help: "segments of finished flows, both directions"}
)

func (c *config) grouped() bool { return c.group.Kind != group.None }

func (c *config) volumes() bool { return c.rules.Kind == delay.TCPDuration }

// shuts reports whether zero windows are counted: only where the responses are ACKs of data.
func (c *config) shuts() bool { return c.rules.Kind == delay.TCPData }

// spectra are all distributions of a window, corrected.
type spectra struct {
	owners []uint64          // of the rows: keys of groups
	shut   []uint64          // of the rows: zero windows
	rows   []*delay.Spectrum // of the groups; without groups there is one for all
	total  *delay.Spectrum   // of all rows
	more   []*delay.Spectrum // the second leg and the sum, or a flow's volume
	merged bool              // sum of several hosts
	sent   samples.Window
}

// body reports a window.
func (e *estimator) body(n counts, s spectra, offset int64) report.Body {
	var b report.Body
	total := s.total
	b.Values = append(b.Values, e.values(n, total)...)
	b.Distributions = append(b.Distributions, total.Distribution(e.delayLabel()))
	for k, label := range e.moreLabels() {
		b.Distributions = append(b.Distributions, s.more[k].Distribution(label))
	}
	f := fit{state: fitUnknown, delay: math.NaN(), lives: math.NaN()}
	if !s.merged { // hosts may have different fridges
		f = e.fit(total)
	}
	b.Values = append(b.Values, f.values()...)
	b.Values = append(b.Values, e.settingValues(s)...)
	b.Values = append(b.Values, e.sampling().Values(s.sent)...)
	b.Values = append(b.Values, e.slaValues(total)...)
	if e.grouped() {
		b.Tables = append(b.Tables, e.groupTable(e.estimatedGroups(s)))
	}
	if e.samples > 0 {
		b.Tables = append(b.Tables, e.sampling().Tables(s.sent, b.Distributions[0].Quantiles, offset)...)
	}
	if len(e.parts) > 1 {
		b.Tables = append(b.Tables, e.partTable(n))
	}
	b.Notes = e.notes(n, total, f)
	return b.Answering("match_rate", "repeated", "sla.over", "sla.verdict")
}

// spectraOf corrects the counts of a window.
func (e *estimator) spectraOf(r reading) spectra {
	s := spectra{owners: r.owners, shut: r.shut, rows: make([]*delay.Spectrum, 1)}
	if e.grouped() {
		s.rows = make([]*delay.Spectrum, e.rows)
	}
	for row := range s.rows {
		s.rows[row] = e.spectrum(r.first, row, r.first.own)
	}
	s.sum(e.scale())
	s.total.Most = e.most(r.counts)
	s.more = e.further(r, s.total)
	return s
}

// sum the rows.
func (s *spectra) sum(scale delay.Scale) {
	s.total = delay.NewSpectrum(scale)
	for _, row := range s.rows {
		s.total.Add(row)
	}
}

// moreLabels are the labels of the distributions other than that of the delays.
func (c *config) moreLabels() []delay.Label {
	switch {
	case c.rules.Finals:
		return []delay.Label{ackLabel, handshakeLabel}
	case c.volumes():
		return []delay.Label{bytesLabel, packetsLabel}
	}
	return nil
}

// further are the spectra after that of the delays: the second leg and the sum, or a flow's volume.
func (e *estimator) further(r reading, total *delay.Spectrum) []*delay.Spectrum {
	mean := total.Mean()
	if total.Count() == 0 {
		mean = 0
	}
	switch {
	case e.rules.Finals:
		sum := e.spectrum(r.first, 1, r.first.own)
		second := e.spectrum(r.second, 0, func(bin int) float64 { return mean + r.second.own(bin) })
		e.complete(second, sum)
		second.Most, sum.Most = total.Most, total.Most
		return []*delay.Spectrum{second, sum}
	case e.volumes():
		lasted := func(int) float64 { return mean }
		bytes, packets := e.spectrum(r.sizes, 0, lasted), e.spectrum(r.lengths, 0, lasted)
		e.complete(bytes, total)
		e.complete(packets, total)
		bytes.Most, packets.Most = total.Most, total.Most
		return []*delay.Spectrum{bytes, packets}
	}
	return nil
}

// most bounds the number of answered requests: each has one request packet and one response packet.
func (e *estimator) most(c counts) float64 {
	return float64(min(c.at(bpf.FridgeFridgeCounterFRIDGE_REQUESTS), c.at(bpf.FridgeFridgeCounterFRIDGE_RESPONSES)))
}

func (e *estimator) complete(s, counted *delay.Spectrum) {
	if e.table {
		scaled(s, counted)
	}
}

const zeroWindowsHelp = "ACKs without data whose window is 0: the receiver accepts no data until its application reads"

func (e *estimator) values(c counts, total *delay.Spectrum) []report.Value {
	count := func(name string, n bpf.FridgeFridgeCounter, unit report.Unit, help string) report.Value {
		return report.Value{Name: name, Value: c.at(n), Unit: unit, Kind: report.Counter, Help: help}
	}
	estimated := total.Count()
	bounds := total.CountBounds()
	requests := float64(c.at(bpf.FridgeFridgeCounterFRIDGE_REQUESTS))
	values := []report.Value{
		count("matched", bpf.FridgeFridgeCounterFRIDGE_MATCHED, report.Responses, "responses that found their request: the raw samples"),
		{Name: "estimated", Value: estimated, Low: bounds.Low, High: bounds.High, Promise: bounds.Promise, Unit: report.Requests,
			Kind: report.Counter, Help: "requests that were answered, corrected for those that were overwritten"},
		count("requests", bpf.FridgeFridgeCounterFRIDGE_REQUESTS, report.Requests, "packets that ask, repeated ones included"),
		count("responses", bpf.FridgeFridgeCounterFRIDGE_RESPONSES, report.Responses, "response packets, including those without a request"),
		{Name: "match_rate", Value: answered(estimated, requests), Low: answered(bounds.Low, requests), High: answered(bounds.High, requests),
			Promise: bounds.Promise, Unit: report.Ratio, Help: "answered share of the requests; the first responses of a window belong to requests of the window before"},
		count("repeated", bpf.FridgeFridgeCounterFRIDGE_REPEATED, report.Requests, "requests that found their own record: sent again"),
		count("inserted", bpf.FridgeFridgeCounterFRIDGE_INSERTED, report.Requests, "requests that were put into a fridge"),
		count("evicted", bpf.FridgeFridgeCounterFRIDGE_EVICTED, report.Records, "records that were overwritten, answered or not"),
	}
	if e.shuts() {
		values = append(values, count("zero_windows", bpf.FridgeFridgeCounterFRIDGE_ZERO_WINDOWS, report.Count, zeroWindowsHelp))
	}
	if e.rules.Finals {
		values = append(values, count("repeated_replies", bpf.FridgeFridgeCounterFRIDGE_REPEATED_REPLY, report.Count, "SYN-ACKs sent again"))
	}
	return append(values, report.Value{Name: "longest_ns", Value: e.rules.Longest, Unit: report.Nanosecond,
		Help: "longest delay that can be measured; above it the clock wraps"},
		report.Value{Name: "histogram", Value: e.histogram(), Kind: report.Info, Help: "how samples are corrected and binned"})
}

// histogram describes the correction and resolution in use, which auto may have chosen.
func (c *config) histogram() string {
	correction := "exact"
	if c.table {
		correction = "table"
	}
	return fmt.Sprintf("%s, %d bins an octave", correction, 1<<c.mantissa)
}

// answered is the share of requests that were answered. A window may have more answers than requests, because requests from the end of the window
// before are answered in it; the larger of both numbers is the denominator.
func answered(n, requests float64) float64 { return ratio(n, max(n, requests)) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

func (e *estimator) slaValues(total *delay.Spectrum) []report.Value {
	if e.sla == nil {
		return nil
	}
	j := e.sla.Judge(total)
	return []report.Value{
		{Name: "sla.over", Value: j.Over, Low: j.Low, High: j.High, Unit: report.Ratio,
			Help: fmt.Sprintf("share of responses later than %s", report.Human(e.sla.Limit, report.Nanosecond))},
		{Name: "sla.verdict", Value: j.Verdict, Kind: report.Info, Help: "with 95 % confidence"},
	}
}

// partTable lists the settings and counters of each fridge.
func (e *estimator) partTable(c counts) report.Table {
	t := report.Table{Name: "fridges", Title: "fridges", Settings: true, Details: true, Limit: layout.Most, Help: "fridges of this instance",
		Columns: []report.Column{
			{Name: "fridge", Label: true, Help: "entries@probability"},
			{Name: "share", Unit: report.Ratio, Help: "share of the requests that are routed here"},
			{Name: "inserted", Unit: report.Requests, Metric: true, Help: "requests put in"},
			{Name: "lifetime_ns", Unit: report.Nanosecond, Metric: true, Help: "how long a record stays on average at this rate"},
		}}
	inserted := c.insertedBy()
	for k, p := range e.rates.parts {
		t.Rows = append(t.Rows, []any{fmt.Sprintf("%d:%s", k+1, p), p.Share, inserted[k], e.rates.lifetime(k)})
	}
	return t
}
