package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/algo/describe"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// Bounds of answers.
const (
	mostPoints    = 2000
	usualPoints   = 300
	mostTableRows = 1000
	mostFindings  = 500
	mostRecords   = 10000
)

var (
	paramKey       = param{name: "key", kind: text, required: true, help: "the instance, as in /instances"}
	paramAlgorithm = param{name: "algorithm", kind: text, required: true, help: "the algorithm's name"}
	paramAt        = param{name: "at", kind: moment, help: "the window that ended last before this time: RFC 3339, or a duration before now (90m); default: the latest"}
	paramFrom      = param{name: "from", kind: moment, help: "ended at this time or later: RFC 3339, or a duration before now (90m)"}
	paramTo        = param{name: "to", kind: moment, help: "ended before this time"}
)

func optional(p param) param { p.required = false; return p }

// table is the table of routes.
func (a *API) table() []route {
	return []route{
		{path: "/instances", summary: "What is measured, with the latest window of each algorithm", answer: Instances{}, handle: a.instances},
		{path: "/reports", summary: "One window of one algorithm, with names, units, intervals and help of everything in it", params: []param{paramKey, paramAlgorithm, paramAt}, answer: Report{}, handle: a.report},
		{path: "/windows", summary: "Fields of windows over time; one window of each step if there are more windows than points",
			params: []param{paramKey, paramAlgorithm, paramFrom, paramTo, {name: "step", kind: length, help: "one window of each step: the first to end in it"},
				{name: "points", kind: integer, most: mostPoints, help: "maximum of rows (300); without step, the range is divided by it"},
				{name: "fields", kind: list, required: true, help: "paths in a window: packets.seen, report.delay_ns.p99, report.TABLE[ROW].COLUMN"}},
			answer: Series{}, handle: a.windows},
		{path: "/tables", summary: "One table of a window, in pages", params: []param{paramKey, paramAlgorithm, paramAt, {name: "table", kind: text, required: true, help: "its name, as in /reports"},
			{name: "offset", kind: integer, most: 1 << 30, help: "rows to skip"}, {name: "limit", kind: integer, most: mostTableRows, help: "maximum of rows (100)"}}, answer: Table{}, handle: a.tableRows},
		{path: "/distributions", summary: "One distribution of a window with the steps of its cumulative form", params: []param{paramKey, paramAlgorithm, paramAt,
			{name: "distribution", kind: text, required: true, help: "its name, as in /reports"}}, answer: Distribution{}, handle: a.distribution},
		{path: "/findings", summary: "Active and ended findings, each once, in its latest state", params: []param{paramFrom, paramTo, {name: "open", kind: truth, help: "only active ones"},
			{name: "limit", kind: integer, most: mostFindings, help: "maximum of ended ones (200)"}}, answer: Findings{}, handle: a.findings},
		{path: "/health", summary: "State of the process, as /healthz", answer: Health{}, handle: a.health},
		{path: "/parameters", summary: "Algorithms, their parameters with help, and what each kind of loss counts", params: []param{optional(paramAlgorithm)}, answer: Parameters{}, handle: a.parameters},
		{path: "/records", summary: "Stored windows, a JSON object per line (docs/output.md); the header Xdpmon-More is true if there are more", media: "application/x-ndjson",
			params: []param{optional(paramAlgorithm), {name: "instance", kind: text, help: "its name"}, {name: "interface", kind: text, help: "one that is measured"}, paramFrom, paramTo,
				{name: "limit", kind: integer, most: mostRecords, help: "maximum of windows (10000)"}, {name: "newest", kind: truth, help: "the newest first"},
				{name: "snapshots", kind: truth, help: "snapshots, instead of windows"}}, raw: a.records},
		{path: "/stream", summary: "Server-sent events: window, finding, missed (number of events dropped because the client is too slow)", media: "text/event-stream",
			params: []param{{name: "key", kind: text, help: "windows of this instance only"}, {name: "algorithm", kind: text, help: "windows of this algorithm only"},
				{name: "whole", kind: truth, help: "whole windows as JSON lines, instead of instance and time"}}, raw: a.stream},
		{path: "/openapi.json", summary: "This description", raw: func(w http.ResponseWriter, r *http.Request, _ query) { respond(w, r, a.Description()) }},
	}
}

// Instances lists what is measured.
type Instances struct {
	Version   string     `json:"version"`
	Command   string     `json:"command" doc:"agent, coordinator, attach, demo"`
	NowMS     int64      `json:"now_ms" doc:"milliseconds since 1970, to the second"`
	Kept      bool       `json:"kept" doc:"windows are stored on disk"`
	Instances []Instance `json:"instances"`
}

// Instance is an instance with its latest windows.
type Instance struct {
	Key        string      `json:"key"`
	Instance   string      `json:"instance" doc:"its name"`
	Interfaces []string    `json:"interfaces"`
	Vantage    string      `json:"vantage,omitempty" doc:"a coordinator's set of hosts"`
	Guest      string      `json:"guest,omitempty" doc:"the guest that the interface belongs to"`
	WindowNS   int64       `json:"window_ns"`
	Algorithms []Measuring `json:"algorithms"`
}

// Measuring is the state of an algorithm on an instance.
type Measuring struct {
	Name          string         `json:"name"`
	Summary       string         `json:"summary"`
	Window        Window         `json:"window"`
	Seen          uint64         `json:"seen" doc:"packets of the latest window"`
	Bytes         uint64         `json:"bytes"`
	Used          uint64         `json:"used"`
	Lost          uint64         `json:"lost" doc:"sum of all kinds; /reports has each"`
	RegisterBytes int64          `json:"register_bytes"`
	KernelBytes   int64          `json:"kernel_bytes"`
	Hosts         *Hosts         `json:"hosts,omitempty"`
	Delay         *Delay         `json:"delay,omitempty" doc:"the first distribution of delays"`
	Loss          *Loss          `json:"loss,omitempty" doc:"packets lost on the path, if it measures that"`
	Queue         *QueueDelay    `json:"queue,omitempty" doc:"the longest delay in a queue, if it measures that"`
	Params        map[string]any `json:"params,omitempty"`
}

// Loss is a share of packets, with the fields that it is calculated from.
type Loss struct {
	Lost  string  `json:"lost" doc:"field for /windows"`
	Back  string  `json:"back,omitempty" doc:"field of those that arrived late, to be subtracted"`
	Among string  `json:"among" doc:"field of all"`
	Share float64 `json:"share" doc:"0 to 1"`
}

// QueueDelay is the summary of a delay.
type QueueDelay struct {
	Field string  `json:"field" doc:"for /windows"`
	Value float64 `json:"value" doc:"ns"`
}

// Hosts lists the hosts whose windows were merged.
type Hosts struct {
	Known   int      `json:"known"`
	Merged  int      `json:"merged"`
	Missing []string `json:"missing"`
}

// Delay is the summary of a distribution.
type Delay struct {
	Field string     `json:"field" doc:"for /windows"`
	Title string     `json:"title"`
	Of    []Quantile `json:"quantiles" doc:"p50 and p99, in ns"`
}

func (a *API) instances(context.Context, query) (any, error) {
	out := Instances{NowMS: a.opts.Now().Truncate(time.Second).UnixMilli(), Kept: a.opts.Store() != nil, Instances: []Instance{}}
	if r := a.live.run(""); r != nil {
		out.Version, out.Command = r.Version, r.Command
	}
	for _, w := range a.live.windows() {
		l := &w.line
		run := a.live.run(l.Key())
		if n := len(out.Instances); n == 0 || out.Instances[n-1].Key != l.Key() {
			i := Instance{Key: l.Key(), Instance: l.Instance, Interfaces: append([]string{}, l.Interfaces...), Vantage: l.Vantage, Guest: l.Guest.String()}
			if run != nil {
				i.WindowNS = shortest(run)
				out.Version, out.Command = run.Version, run.Command
			}
			out.Instances = append(out.Instances, i)
		}
		i := &out.Instances[len(out.Instances)-1]
		i.Algorithms = append(i.Algorithms, a.measuring(l, run))
	}
	return out, nil
}

func (a *API) measuring(l *report.Line, run *report.Run) Measuring {
	m := Measuring{Name: l.Algorithm, Window: a.window(l.Window), Seen: l.Packets.Seen, Bytes: l.Packets.Bytes, Used: l.Packets.Used, RegisterBytes: l.Memory.RegisterBytes, KernelBytes: l.Memory.KernelBytes}
	if d, err := algo.Lookup(l.Algorithm); err == nil {
		m.Summary = d.Summary
	}
	for _, n := range l.Lost {
		m.Lost += n
	}
	if h := l.Hosts; h != nil {
		m.Hosts = &Hosts{Known: h.Known, Merged: h.Merged, Missing: append([]string{}, h.MissingNames...)}
	}
	for _, d := range l.Report.Distributions {
		if d.Unit == report.Nanosecond {
			m.Delay = short(d)
			break
		}
	}
	m.Loss, m.Queue = lossOf(l), queueOf(l)
	if run != nil {
		for _, r := range run.Algorithms {
			if r.Name == l.Algorithm {
				m.Params = r.Params
			}
		}
	}
	return m
}

// lossOf is the loss that an algorithm measures, or the drops of an own queue; nil if neither is known.
func lossOf(l *report.Line) *Loss {
	names := l.Report.Overview
	if all := valueOf(&l.Report, names.Among); all > 0 {
		out := &Loss{Lost: "report." + names.Lost, Among: "report." + names.Among}
		lost := valueOf(&l.Report, names.Lost)
		if names.Back != "" {
			out.Back = "report." + names.Back
			lost -= valueOf(&l.Report, names.Back)
		}
		if lost >= 0 || lost < 0 {
			out.Share = max(0, lost) / all
			return out
		}
	}
	if q := l.Packets.Queue; q != nil && q.Carried > 0 {
		return &Loss{Lost: "packets.queue.dropped", Among: "packets.queue.carried", Share: float64(q.Dropped) / float64(q.Carried)}
	}
	return nil
}

func queueOf(l *report.Line) *QueueDelay {
	if v := valueOf(&l.Report, l.Report.Overview.Queue); v >= 0 {
		return &QueueDelay{Field: "report." + l.Report.Overview.Queue, Value: v}
	}
	return nil
}

// valueOf is a number of a report; NaN if there is none.
func valueOf(b *report.Body, name string) float64 {
	for _, v := range b.Values {
		if v.Name == name {
			if f, ok := report.Number(v.Value); ok {
				return f
			}
		}
	}
	return math.NaN()
}

// short is p50 and p99 of a distribution.
func short(d report.Distribution) *Delay {
	out := &Delay{Field: "report." + d.Name, Title: d.Title, Of: []Quantile{}}
	for _, q := range d.Quantiles {
		if (q.Name != "p50" && q.Name != "p99") || !q.Defined {
			continue
		}
		one := Quantile{Name: q.Name, Q: q.Q, Value: number(q.Value), Promise: promises[q.Promise]}
		if q.Bounded() {
			one.Low, one.High = number(q.Low), number(q.High)
		}
		out.Of = append(out.Of, one)
	}
	return out
}

func number(x float64) json.RawMessage {
	text, err := json.Marshal(x)
	if err != nil { // no number
		return json.RawMessage("null")
	}
	return text
}

func (a *API) window(w report.Window) Window {
	offset := a.opts.Clock().UnixOffsetNS
	return Window{StartMS: (w.Start + offset) / 1e6, EndMS: (w.End + offset) / 1e6, Number: w.Number, Stretched: w.Stretched, Cut: w.Cut}
}

var errFound = errors.New("found")

// find returns a window: the latest, or the last before a time.
func (a *API) find(ctx context.Context, q query) (text []byte, endMS int64, latest *window, err error) {
	p := place{q.text("key"), q.text("algorithm")}
	at := q.time("at")
	w := a.live.window(p)
	if w != nil && (at.IsZero() || at.UnixMilli() > a.window(w.line.Window).EndMS) {
		text, err = w.record(a.opts.Clock())
		return text, a.window(w.line.Window).EndMS, w, err
	}
	err = a.ask(ctx, func() error {
		return a.past().Each(store.Query{Key: p.key, Algorithm: p.algorithm, To: at, Newest: true, Limit: 1}, func(r store.Record) error {
			text, endMS = r.Line, r.End.UnixMilli()
			return errFound
		})
	})
	if errors.Is(err, errFound) {
		return text, endMS, nil, nil
	}
	if err == nil && at.IsZero() {
		err = problem(http.StatusNotFound, "%.100q has no window of %.100q: /instances lists what is measured", p.key, p.algorithm)
	} else if err == nil {
		err = problem(http.StatusNotFound, "no window of %.100q on %.100q is stored from before %s", p.algorithm, p.key, at.UTC().Format(time.RFC3339))
	}
	return nil, 0, nil, err
}

func (a *API) report(ctx context.Context, q query) (any, error) {
	text, endMS, _, err := a.find(ctx, q)
	if err != nil {
		return nil, err
	}
	r, err := read(text, endMS, a.live.shape(place{q.text("key"), q.text("algorithm")}))
	if err != nil {
		return nil, fmt.Errorf("read a window: %w", err)
	}
	return r, nil
}

func (a *API) tableRows(ctx context.Context, q query) (any, error) {
	text, _, _, err := a.find(ctx, q)
	if err != nil {
		return nil, err
	}
	s := a.live.shape(place{q.text("key"), q.text("algorithm")})
	at := slices.IndexFunc(s.tables, func(t report.Table) bool { return t.Name == q.text("table") })
	if at < 0 {
		return nil, wrong("table", "%s has no table %.100q", q.text("algorithm"), q.text("table"))
	}
	limit := q.integer("limit")
	if limit == 0 {
		limit = mostRows
	}
	return rows(member(text, "report."+s.tables[at].Name), s.tables[at], q.integer("offset"), limit), nil
}

func (a *API) distribution(ctx context.Context, q query) (any, error) {
	text, _, latest, err := a.find(ctx, q)
	if err != nil {
		return nil, err
	}
	s := a.live.shape(place{q.text("key"), q.text("algorithm")})
	at := slices.IndexFunc(s.distributions, func(d report.Distribution) bool { return d.Name == q.text("distribution") })
	if at < 0 {
		return nil, wrong("distribution", "%s has no distribution %.100q", q.text("algorithm"), q.text("distribution"))
	}
	var b body
	if err := json.Unmarshal(member(text, "report"), &b); err != nil {
		return nil, fmt.Errorf("read a window: %w", err)
	}
	d := b.distribution(s.distributions[at])
	d.From, d.Steps = "percentiles", percentiles(d.Quantiles)
	if latest != nil {
		for _, live := range latest.line.Report.Distributions {
			if live.Name == d.Name {
				d.From, d.Steps = "registers", steps(live.Buckets)
			}
		}
	}
	return d, nil
}

func percentiles(list []Quantile) []Step {
	out := []Step{}
	for _, q := range list {
		var x float64
		if bytes.Equal(q.Value, []byte("null")) || json.Unmarshal(q.Value, &x) != nil {
			continue
		}
		out = append(out, Step{x, q.Q})
	}
	return out
}

// steps are those at which the distribution rises, and those right before.
func steps(buckets []report.Bucket) []Step {
	out := []Step{}
	if len(buckets) == 0 {
		return out
	}
	all, before := buckets[len(buckets)-1].Cumulative, 0.
	for i, b := range buckets {
		if all > 0 && (b.Cumulative > before || i+1 < len(buckets) && buckets[i+1].Cumulative > b.Cumulative) {
			out = append(out, Step{b.Upper, b.Cumulative / all})
		}
		before = b.Cumulative
	}
	return out
}

// Findings lists active and ended findings.
type Findings struct {
	Findings []finding.Finding `json:"findings" doc:"active ones first, the most severe first; then ended ones, the latest first"`
	More     bool              `json:"more" doc:"there are more in this range"`
}

func (a *API) findings(ctx context.Context, q query) (any, error) {
	out := Findings{Findings: []finding.Finding{}}
	known := map[string]bool{}
	for _, f := range a.opts.Findings() {
		if known[f.ID] = true; q.time("to").IsZero() || f.Since < q.time("to").UnixNano() {
			out.Findings = append(out.Findings, f)
		}
	}
	if q.truth("open") {
		return out, nil
	}
	limit, n := q.integer("limit"), 0
	if limit == 0 {
		limit = 200
	}
	err := a.ask(ctx, func() error {
		return a.past().Each(store.Query{Algorithm: FindingRecords, From: q.time("from"), To: q.time("to"), Newest: true, Limit: limit}, func(r store.Record) error {
			var one struct{ Finding finding.Finding }
			if n++; json.Unmarshal(r.Line, &one) != nil || known[one.Finding.ID] {
				return nil // of a later version, or already included
			}
			known[one.Finding.ID] = true
			out.Findings = append(out.Findings, one.Finding)
			return nil
		})
	})
	out.More = n == limit
	return out, err
}

// Health is the state of the process.
type Health struct {
	Failing bool `json:"failing" doc:"/healthz answers 503"`
	Health  any  `json:"health" doc:"as /healthz: an agent's or a coordinator's"`
}

func (a *API) health(context.Context, query) (any, error) {
	h, failing := a.opts.Health()
	return Health{Failing: failing, Health: h}, nil
}

// Parameters are the algorithms of this program.
type Parameters struct {
	Algorithms []describe.Algorithm `json:"algorithms"`
}

func (a *API) parameters(_ context.Context, q query) (any, error) {
	out := Parameters{Algorithms: []describe.Algorithm{}}
	for _, d := range algo.All() {
		if name := q.text("algorithm"); name == "" || name == d.Name {
			one := describe.JSON(d)
			if one.Lost == nil {
				one.Lost = map[string]string{}
			}
			out.Algorithms = append(out.Algorithms, one)
		}
	}
	if len(out.Algorithms) == 0 && q.text("algorithm") != "" {
		return nil, wrong("algorithm", "no such algorithm %.100q: choose one of %s", q.text("algorithm"), strings.Join(algo.Names(), ", "))
	}
	return out, nil
}

// shortest is the length of a run's shortest windows, ns; 0: one window.
func shortest(r *report.Run) int64 {
	length := r.WindowNS
	for _, a := range r.Algorithms {
		if a.WindowNS != 0 && (length == 0 || a.WindowNS < length) {
			length = a.WindowNS
		}
	}
	return length
}
