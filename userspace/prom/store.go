package prom

import (
	"math"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Store holds the latest window of every algorithm and interface, and the totals since the start. It is
// safe for concurrent use.
type Store struct {
	now func() time.Time

	mu        sync.Mutex
	run       report.Run
	series    map[seriesKey]*series
	findings  []finding.Finding // active, the most severe first
	diagnosed bool              // findings are looked for: their number is served even if it is 0
	start     time.Time
	latest    time.Time // arrival of the latest window
	past      bool      // windows are stored, and /history is served
	rows      bool
	details   bool

	histograms Histograms
	limit      int              // of series per scrape
	beyond     func(series int) // called when a scrape exceeds the limit for the first time
	dropping   bool
	descs      map[uint64]*prometheus.Desc
	served     int // number of metrics in the latest scrape
	// attached is whether the programs are attached now, by interface of a live run; nil in a replay.
	attached map[string]bool
	dropped  func() []Drops // what the kernel drops; nil: not counted
}

type seriesKey struct{ algorithm, instance string } // instance: report.Identity.Key

// series is one algorithm on one instance.
type series struct {
	key        seriesKey
	line       report.Line // latest
	arrived    time.Time
	windows    float64
	seen       float64
	parsed     float64
	used       float64
	segments   float64
	bytes      float64
	verdicts   *report.Verdicts // nil: no algorithm acted on packets
	passed     float64
	reasons    map[string]float64
	lost       map[string]float64
	counters   map[string]float64   // by Value.Name
	rows       map[string]*rowCount // of Column.Counter, by table, column and the row's labels
	histograms map[string]*histogram
}

// NewStore returns an empty store; now is the clock (time.Now).
func NewStore(now func() time.Time) *Store {
	return &Store{now: now, start: now(), series: map[seriesKey]*series{}, limit: DefaultLimit, descs: map[uint64]*prometheus.Desc{}}
}

// Rows also serves tables whose rows are from traffic (flows, addresses): over time, as many series as there are such rows.
func (s *Store) Rows() { s.rows = true }

// ShowRows is Rows for a run whose configuration may change.
func (s *Store) ShowRows(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = on
}

// Details also serves metrics of the measurement: gauges of details, kernel memory, percentiles of further distributions.
func (s *Store) Details(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.details = on
}

// DefaultLimit is the limit of a scrape's series: twice those of a hundred interfaces with seven algorithms.
const DefaultLimit = 50_000

// Limit bounds the series of a scrape. Those beyond it are not served; their number is xdpmon_metrics_dropped_series, and beyond is called once
// (nil: not).
func (s *Store) Limit(series int, beyond func(dropped int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.beyond = series, beyond
}

// limited is called at the end of each scrape; the caller holds the lock.
func (s *Store) limited(dropped int) {
	if dropped > 0 && !s.dropping && s.beyond != nil {
		s.beyond(dropped)
	}
	s.dropping = dropped > 0
}

// ServeHistograms sets the form of histograms.
func (s *Store) ServeHistograms(form Histograms) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histograms = form
}

// Findings replaces the active findings.
func (s *Store) Findings(open []finding.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings, s.diagnosed = open, true
}

// Start stores the description of the run, for the info metric and the page.
func (s *Store) Start(run report.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = run
}

// Live marks a run on interfaces: it is not healthy before one is attached.
func (s *Store) Live() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached = map[string]bool{}
}

// Attached records whether the programs are attached to an interface of a live run.
func (s *Store) Attached(iface string, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached[iface] = now
}

// Forget removes a closed instance with its series.
func (s *Store) Forget(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.series {
		if key.instance == instance {
			delete(s.series, key)
		}
	}
}

// Gone removes an interface that is no longer configured.
func (s *Store) Gone(iface string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attached, iface)
}

// missing lists the interfaces that are not attached; some is whether any is attached. A replay has none missing.
func (s *Store) missing() (names []string, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	some = s.attached == nil
	for name, now := range s.attached {
		if now {
			some = true
		} else {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names, some
}

// Add accumulates a finished window.
func (s *Store) Add(l report.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = s.now()
	s.at(seriesKey{l.Algorithm, l.Key()}).add(l, s.latest, s.start)
}

func (s *Store) at(key seriesKey) *series {
	one, ok := s.series[key]
	if !ok {
		one = &series{key: key, reasons: map[string]float64{}, lost: map[string]float64{},
			counters: map[string]float64{}, histograms: map[string]*histogram{}}
		s.series[key] = one
	}
	return one
}

func (o *series) add(l report.Line, now, start time.Time) {
	o.line, o.arrived = l, now
	o.windows++
	o.seen += float64(l.Packets.Seen)
	o.parsed += float64(l.Packets.Parsed)
	o.segments += float64(l.Packets.Segments)
	o.used += float64(l.Packets.Used)
	o.bytes += float64(l.Packets.Bytes)
	if v := l.Packets.Verdicts; v != nil {
		o.verdicts = o.verdicts.Plus(v)
		o.passed += float64(l.Packets.Passed())
	}
	accumulate(o.reasons, l.Packets.Reasons)
	accumulate(o.lost, l.Lost)
	for _, v := range l.Report.Values {
		if f, ok := report.Number(v.Value); ok && v.Kind == report.Counter && finite(f) {
			o.counters[v.Name] += math.Max(0, f) // an estimate may be negative; a counter must not decrease
		}
	}
	o.count(l.Report.Tables, now)
	for _, d := range l.Report.Distributions {
		if _, ok := o.histograms[d.Name]; !ok {
			o.histograms[d.Name] = newHistogram(d.Unit, start)
		}
		o.histograms[d.Name].add(d)
	}
}

// rowCount is the total of a row since it was added.
type rowCount struct {
	sum  float64
	last time.Time // time of the latest increment
}

// count adds up the rows of a window. The total of a removed row (a removed query) is dropped.
func (o *series) count(tables []report.Table, now time.Time) {
	before := o.rows
	o.rows = map[string]*rowCount{}
	for _, t := range tables {
		for i, c := range t.Columns {
			if !c.Counter || !t.Settings {
				continue
			}
			for _, row := range t.Rows {
				key := rowKey(t, c, row)
				one := before[key]
				if one == nil {
					one = &rowCount{}
				}
				o.rows[key] = one
				if f, ok := report.Number(cell(row, i)); ok && f > 0 && finite(f) {
					one.sum, one.last = one.sum+f, now
				}
			}
		}
	}
}

func rowKey(t report.Table, c report.Column, row []any) string {
	key := t.Name + "\x00" + c.Name
	for _, l := range rowLabels(t, row) {
		key += "\x00" + l.value
	}
	return key
}

func accumulate(sums map[string]float64, counts map[string]uint64) {
	for name, n := range counts {
		sums[name] += float64(n)
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Fresh reports whether windows arrive on time: ok if the latest is not older than three windows and
// ten seconds, or if a run of one window has not ended.
func (s *Store) Fresh() (age time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.latest
	if since.IsZero() {
		since = s.start
	}
	age = s.now().Sub(since)
	window := time.Duration(s.run.WindowNS)
	return age, window == 0 || age <= 3*window+10*time.Second
}

// sorted lists the series in a fixed order; the caller holds the lock.
func (s *Store) sorted() []*series {
	all := make([]*series, 0, len(s.series))
	for _, one := range s.series {
		all = append(all, one)
	}
	sort.Slice(all, func(i, j int) bool {
		if c := strings.Compare(all[i].key.algorithm, all[j].key.algorithm); c != 0 {
			return c < 0
		}
		return all[i].key.instance < all[j].key.instance
	})
	return all
}
