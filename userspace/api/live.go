package api

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// live holds the latest window of every algorithm and instance, and the shapes of reports.
type live struct {
	mu     sync.Mutex
	runs   map[string]*report.Run // by instance; "" is for all
	latest map[place]*window
	shapes map[place]*shape // of an instance; key "" is what any instance of the algorithm has
	last   report.Clock
}

type place struct{ key, algorithm string }

// window is a finished window; it is encoded when a client requests it for the first time.
type window struct {
	line report.Line

	once sync.Once
	text []byte // as in a store
	err  error
}

func newLive() *live {
	return &live{runs: map[string]*report.Run{}, latest: map[place]*window{}, shapes: map[place]*shape{}}
}

func (l *live) start(r report.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[r.Instance], l.last = &r, r.Clock
}

func (l *live) clock() report.Clock {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *live) add(line report.Line) {
	line.Snapshot = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	own, every := place{line.Key(), line.Algorithm}, place{"", line.Algorithm}
	before := l.latest[own]
	l.latest[own] = &window{line: line}
	if before != nil && line.Encoding != nil && before.line.Encoding == line.Encoding {
		return // it has the same names: an interface without traffic
	}
	l.shapes[own] = newShape(&line.Report, l.shapes[own].body()) // the newest first: an instance that started again may have other parameters, and so other titles
	if l.shapes[every] == nil {
		l.shapes[every] = newShape()
	}
	l.shapes[every].learn(&line.Report)
}

func (l *live) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, key)
	for p := range l.latest {
		if p.key == key {
			delete(l.latest, p)
			delete(l.shapes, p)
		}
	}
}

func (l *live) window(p place) *window {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest[p]
}

// windows are all windows, by instance and algorithm.
func (l *live) windows() []*window {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.latest), func(a, b *window) int {
		return cmp.Or(strings.Compare(a.line.Key(), b.line.Key()), strings.Compare(a.line.Algorithm, b.line.Algorithm))
	})
}

// run is the description that an instance was started with.
func (l *live) run(key string) *report.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.runs[key]; r != nil {
		return r
	}
	instance, _, _ := strings.Cut(key, "/")
	return cmp.Or(l.runs[instance], l.runs[""])
}

// shape is that of an instance's reports, whose parameters decide on titles and units, completed from other instances of the algorithm: a stored
// window may have more than this run has seen.
func (l *live) shape(p place) *shape {
	l.mu.Lock()
	defer l.mu.Unlock()
	return newShape(l.shapes[p].body(), l.shapes[place{"", p.algorithm}].body())
}

// record is the window in the form of a store.
func (w *window) record(c report.Clock) ([]byte, error) {
	w.once.Do(func() { w.text, w.err = w.line.Record(c) })
	return w.text, w.err
}

// mostShapes bounds the names stored for one algorithm's reports: they are few, except tables of configured prefixes and slices.
const mostShapes = 512

// shape describes an algorithm's reports: names, units and intervals of everything in any of its windows.
type shape struct {
	values        []report.Value
	distributions []report.Distribution
	tables        []report.Table
	known         map[string]bool
}

// newShape learns from reports, the first of which decides.
func newShape(reports ...*report.Body) *shape {
	s := &shape{known: map[string]bool{}}
	for _, b := range reports {
		s.learn(b)
	}
	return s
}

// body is a report with all that the shape knows; nil knows nothing.
func (s *shape) body() *report.Body {
	if s == nil {
		return &report.Body{}
	}
	return &report.Body{Values: s.values, Distributions: s.distributions, Tables: s.tables}
}

// fresh reports whether a name is new, and adds it.
func (s *shape) fresh(kind, name string) bool {
	if s.known[kind+name] || len(s.known) >= mostShapes {
		return false
	}
	s.known[kind+name] = true
	return true
}

func (s *shape) learn(b *report.Body) {
	for _, v := range b.Values {
		if s.fresh("v", v.Name) {
			v.Value = nil
			s.values = append(s.values, v)
		}
	}
	for _, d := range b.Distributions {
		if s.fresh("d", d.Name) {
			d.Buckets = nil
			s.distributions = append(s.distributions, d)
		}
	}
	for _, t := range b.Tables {
		if s.fresh("t", t.Name) {
			t.Rows = nil
			s.tables = append(s.tables, t)
		}
	}
}
