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

// Store holds the latest window of every algorithm and interface, and what has accumulated since the start. It is
// safe for concurrent use.
type Store struct {
	now func() time.Time

	mu        sync.Mutex
	run       report.Run
	series    map[seriesKey]*series
	findings  []finding.Finding // that go on, the gravest first
	diagnosed bool              // findings are looked for: none is 0, not nothing
	start     time.Time
	latest    time.Time // when the last window came
	past      bool      // windows are kept, and /history answers
	rows      bool
	details   bool

	histograms Histograms
	limit      int              // series of a scrape
	beyond     func(series int) // told when a scrape begins to be beyond the limit
	dropping   bool
	descs      map[uint64]*prometheus.Desc
	served     int // metrics of the latest scrape
	// attached are the interfaces of a live run, and whether the programs are on them now; nil for a replay.
	attached map[string]bool
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
	verdicts   *report.Verdicts // nil: nothing has acted on packets
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

// Rows makes metrics of tables whose rows are named by traffic, too (flows, addresses): as many series as it has, over time.
func (s *Store) Rows() { s.rows = true }

// ShowRows is Rows for a run that may change its mind.
func (s *Store) ShowRows(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = on
}

// Details makes metrics of how the measuring went, too: gauges of details, memory of the kernel, percentiles of further distributions.
func (s *Store) Details(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.details = on
}

// DefaultLimit of a scrape's series: twice what a hundred interfaces with seven algorithms have.
const DefaultLimit = 50_000

// Limit bounds the series of a scrape; what is beyond it is not served, counted in xdpmon_metrics_dropped_series, and told to beyond once
// (nil: nobody).
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

// ServeHistograms chooses their form.
func (s *Store) ServeHistograms(form Histograms) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histograms = form
}

// Findings replaces the findings that go on.
func (s *Store) Findings(open []finding.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings, s.diagnosed = open, true
}

// Start remembers what is running, for the info metric and the page.
func (s *Store) Start(run report.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = run
}

// Live says that this run is on interfaces: it is not healthy before one is attached.
func (s *Store) Live() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached = map[string]bool{}
}

// Attached remembers whether the programs are on an interface of a live run.
func (s *Store) Attached(iface string, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached[iface] = now
}

// Forget an instance that is no more: its series end.
func (s *Store) Forget(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.series {
		if key.instance == instance {
			delete(s.series, key)
		}
	}
}

// Gone forgets an interface that is not wanted any more.
func (s *Store) Gone(iface string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attached, iface)
}

// missing lists the interfaces that are not attached, and says whether any is. A replay misses none.
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
			o.counters[v.Name] += math.Max(0, f) // an estimate may be below 0; a counter may not fall
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

// rowCount is what a row of settings has counted since it is there.
type rowCount struct {
	sum  float64
	last time.Time // when it last rose
}

// count adds up the rows of a window. A row that is not there any more (a query that was removed) is forgotten.
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

// Fresh reports whether windows arrive as they should: ok when the last one is not older than three windows and
// ten seconds, or when a run of one window has not ended.
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
