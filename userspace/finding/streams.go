package finding

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// Reading is a measure beside what was expected of it, and the result of the sequential test.
type Reading struct {
	Measure
	Expected Expected
	Known    bool // something is expected: a bound, a promise, or enough of a past
	Apart    bool // this window's interval lies beyond what is expected
	Active   bool // the test finds the symptom
	Since    int64
	Latest   int64 // end of the latest window that lay apart
	Windows  int   // that lay apart since then
	Broken   *Promise
	Gone     int // windows in a row, this one included, in which there was nothing of it for certain
}

// Times is how many times the expected the value is (or the other way round where small values are bad).
func (r *Reading) Times() float64 {
	a, b := r.Value.Value, r.Expected.Value
	if r.Lower {
		a, b = b, a
	}
	if !(b > 0) {
		b = 1e-3
	}
	return min(1e6, max(0, a/b))
}

// Streams are the pasts and tests of all subjects of an instance. Not safe for concurrent use.
type Streams struct {
	Promises []Promise
	streams  map[string]*stream
	sources  map[string]map[string]*stream // the same by the windows that they are in: each looks at its own alone
	families map[string]*family
	known    int   // sources that are expected
	recalled int   // streams that a store had
	windows  int64 // counts rounds, to find the streams that were silent longest
}

// stream is one measure of one subject.
type stream struct {
	past    Baseline
	test    Score
	odd     Odd
	since   int64
	latest  int64
	apart   int
	seen    int64 // round
	learned int
	refused int // windows apart that were not learned
	gone    int // windows in a row without it
	last    Measure
	source  string // of the windows that it is in
	began   int64  // when the test became active
	at      int64  // end of the latest window that the past learned
	length  int64  // of that window, ns
	kept    int64  // length of the windows of a recalled past, until the first window of this run; 0 else
}

// family is all subjects of a symptom in an instance.
type family struct {
	windows int
	seen    int64 // round
}

// Bounds of memory and time.
const (
	maxStreams   = 2048 // and streamsEach of each source
	streamsEach  = 6
	mostRecalled = 16384
	// accept is how long a deviation lasts until it is what is usual: ns.
	accept = 24 * 3600e9
)

// NewStreams are empty.
func NewStreams(promises ...Promise) *Streams {
	return &Streams{Promises: promises, streams: map[string]*stream{}, sources: map[string]map[string]*stream{}, families: map[string]*family{}}
}

// familyOf is the symptom in the windows of one source: several of an algorithm may watch an instance, and what all of them measure is not one stream.
func familyOf(m *Measure) string {
	return m.Instance + "\x00" + m.Algorithm + "\x00" + string(m.Symptom) + passOf(m.Source)
}

// passOf is what distinguishes sources of an algorithm and an instance: "/" and what follows these two.
func passOf(source string) string {
	if parts := strings.SplitN(source, "\x00", 3); len(parts) == 3 {
		return "/" + strings.ReplaceAll(parts[2], "\x00", "/")
	}
	return ""
}

// KeyOf names a measure's stream once Streams have set its source; a store keeps baselines under it.
func KeyOf(m *Measure) string { return familyOf(m) + "\x00" + m.Subject.Name }

// Window takes what a rule has made of one window of a source (an algorithm of an instance), with its begin and end (ns since 1970 where known), and reads it.
func (s *Streams) Window(source string, measures []Measure, begin, end int64) []Reading {
	s.windows++
	present, families, blind := map[string]bool{}, map[string]bool{}, map[string]Measure{}
	var readings []Reading
	for i := range measures {
		m := &measures[i]
		m.Source = source
		if m.Subject.Name == "" {
			blind[familyOf(m)] = *m
			families[familyOf(m)] = families[familyOf(m)] || m.Weak == "" && m.Value.High <= m.Absent
			continue
		}
		present[KeyOf(m)] = true
		families[familyOf(m)] = true
		readings = append(readings, s.read(source, m, begin, end))
	}
	readings = append(readings, s.silent(source, present, families, blind, begin, end)...)
	for name, shown := range families {
		if !shown {
			continue
		}
		f := s.families[name]
		if f == nil {
			f = &family{}
			s.families[name] = f
		}
		f.windows++
		f.seen = s.windows
	}
	s.forget()
	return readings
}

// silent feeds the subjects that a window does not list with what an absent one has, unless it can list none.
func (s *Streams) silent(source string, present, families map[string]bool, blind map[string]Measure, begin, end int64) (readings []Reading) {
	for _, key := range slices.Sorted(maps.Keys(s.sources[source])) {
		st := s.sources[source][key]
		if present[key] {
			continue
		}
		hidden := blind[familyOf(&st.last)]
		why := hidden.Weak
		families[familyOf(&st.last)] = families[familyOf(&st.last)] || why == ""
		if st.last.Certain {
			if r, on := s.lasting(st, end); on {
				readings = append(readings, r)
			}
			continue
		}
		m := st.last
		m.Blames = nil
		switch {
		case why != "":
			m.Weak = why
		case math.IsNaN(m.Absent):
			m.Weak = "nothing of it in this window"
		default:
			m.Value = Estimate{m.Absent, m.Absent, max(m.Absent, hidden.above(&m)), m.Value.Unit}
		}
		readings = append(readings, s.read(source, &m, begin, end))
	}
	return readings
}

// above is the most that a subject may have that the window does not list; m is of those without a row.
func (m *Measure) above(subject *Measure) float64 {
	if subject.Row > 0 && !slices.Contains(m.Rows, subject.Row) {
		return 0 // its row was free: what it had would be there
	}
	return m.Value.High
}

// hold is how long an event stays without being seen again: queries count in windows of up to 30 s, and raise one alert in each. ns.
const hold = 45e9

// lasting is an event of an earlier window that may still go on.
func (s *Streams) lasting(st *stream, end int64) (Reading, bool) {
	st.seen = s.windows
	if float64(end-st.latest) > hold {
		st.test = Score{}
		return Reading{}, false
	}
	return Reading{Measure: st.last, Expected: Expected{Estimate{st.last.Bound, math.NaN(), st.last.Bound, st.last.Value.Unit}, FromBound}, Known: true, Active: st.test.Active,
		Since: st.since, Latest: st.latest, Windows: st.apart}, st.test.Active
}

func (s *Streams) read(source string, m *Measure, begin, end int64) Reading {
	key := KeyOf(m)
	st := s.streams[key]
	if st == nil {
		st = &stream{}
		s.streams[key] = st
		if f := s.families[familyOf(m)]; f != nil && !math.IsNaN(m.Absent) {
			for range min(f.windows, latestWindows) { // a subject that is new has had nothing before
				st.past.Learn(m.Absent, 0)
			}
		}
	}
	s.belongs(key, st, source)
	st.seen, st.last = s.windows, *m
	st.recalled(end - begin)
	if st.gone++; !(m.Value.Value <= m.Absent && m.Value.High < 1) { // less than one answer
		st.gone = 0
	}
	r := Reading{Measure: *m, Gone: st.gone}
	deviation := s.compare(&r, st, end)
	s.judge(&r, st, deviation, begin, end)
	return r
}

// belongs moves a stream to the windows that it is in.
func (s *Streams) belongs(key string, st *stream, source string) {
	if st.source == source && s.sources[source][key] == st {
		return
	}
	s.release(key, st.source)
	if s.sources[source] == nil {
		s.sources[source] = map[string]*stream{}
	}
	s.sources[source][key] = st
	st.source = source
}

// compare finds what is expected and how far the value lies from it.
func (s *Streams) compare(r *Reading, st *stream, end int64) (deviation float64) {
	switch promise := s.promised(&r.Measure); {
	case r.Certain:
		r.Known, r.Apart, deviation = true, true, clip
		r.Expected = Expected{Estimate{r.Bound, math.NaN(), r.Bound, r.Value.Unit}, FromBound}
	case r.Weak != "":
		// It shows nothing, neither good nor bad.
	case promise != nil:
		r.Known, r.Expected = true, promise.Expected()
		if promise.Broken(r.Value) {
			r.Apart, r.Broken, deviation = true, promise, clip
		}
	case !math.IsNaN(r.Bound):
		r.Known = true
		r.Expected = Expected{Estimate{r.Bound, math.NaN(), r.Bound, r.Value.Unit}, FromBound}
		r.Apart = r.Value.Low > r.Bound
		if r.Lower {
			r.Expected.Low, r.Expected.High = r.Bound, math.NaN()
			r.Apart = r.Value.High < r.Bound
		}
		if r.Apart {
			deviation = clip
		}
	default:
		var u Usual
		if u, r.Known = st.past.Usual(end, r.Ratio); r.Known {
			r.Expected, r.Apart, deviation = u.Compare(&r.Measure)
		}
	}
	return deviation
}

// promised is the promise about a measure, the narrowest pattern first.
func (s *Streams) promised(m *Measure) (found *Promise) {
	for i := range s.Promises {
		p := &s.Promises[i]
		median := metricOf(m) == "p50" && strings.HasPrefix(p.Metric, "p") && p.Broken(m.Value) // higher percentiles are no smaller
		if (metricOf(m) == p.Metric || median) && p.Covers(m.Subject, m.Instance) && (found == nil || len(p.Pattern) > len(found.Pattern)) {
			found = p
		}
	}
	return found
}

// metricOf is the word that promises have for a measure.
func metricOf(m *Measure) string {
	switch m.Symptom {
	case HandshakeLate, DataLate, DNSLate, NTPLate:
		return "p50"
	case HandshakeLateP95:
		return "p95"
	case HandshakeLateP99:
		return "p99"
	case Holes, Resent:
		return "loss"
	case SliceUnfair:
		return "share"
	}
	return ""
}

// judge moves the test and lets the past learn.
func (s *Streams) judge(r *Reading, st *stream, deviation float64, begin, end int64) {
	before := st.test
	switch {
	case r.Certain || r.Apart && r.Enough > 0 && r.Value.Value >= r.Enough*r.Expected.Value:
		st.test = Score{alarm + over, true}
	case r.Known:
		needed := 2
		if r.Expected.Source == FromBaseline {
			needed = st.odd.Needed()
		}
		st.test.Step(r.Apart, deviation, needed)
		st.odd.Pass(before.Sum > 0 && !before.Active && !r.Apart) // what was far out has begun nothing
	case r.Weak != "" && st.test.Active:
		st.test.Step(false, 0, 2)
	}
	if r.Apart {
		if before.Sum == 0 {
			st.since, st.apart = begin, 0
		}
		st.latest = end
		st.apart++
	}
	if st.test.Active && !before.Active {
		st.began = end
	}
	if st.test.Active && end-st.began > accept {
		st.past, st.test = Baseline{}, Score{}
	}
	st.learn(r, begin, end)
	r.Active, r.Since, r.Latest, r.Windows = st.test.Active, st.since, st.latest, st.apart
}

// reluctance is of how many windows that lie apart and begin nothing one is learned: the first ones of a symptom must not become what is usual, and
// what stays must.
const reluctance = 4

func (st *stream) learn(r *Reading, begin, end int64) {
	if st.test.Sum > 0 || r.Weak != "" || r.Certain {
		return
	}
	if r.Apart {
		if st.refused++; st.refused < reluctance {
			return
		}
	}
	st.refused = 0
	st.past.Learn(r.Value.Value, end)
	st.learned++
	st.at, st.length = end, end-begin
}

// Expect sets the number of sources whose windows arrive. The bound of memory grows with it: 200 interfaces have a past each.
func (s *Streams) Expect(sources int) { s.known = sources }

// room is how many streams are kept. Those of an earlier run wait for the windows of their sources.
func (s *Streams) room() int { return max(maxStreams+streamsEach*s.known, s.recalled) }

// forget bounds memory: streams that were silent longest go first, those of symptoms that go on last. Families without a stream go if they were silent
// longer than all streams that stay.
func (s *Streams) forget() {
	extra := len(s.streams) - s.room()
	if extra <= 0 {
		return
	}
	type one struct {
		key string
		*stream
	}
	list := make([]one, 0, len(s.streams))
	for key, st := range s.streams {
		list = append(list, one{key, st})
	}
	slices.SortFunc(list, func(a, b one) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.seen, b.seen), cmp.Compare(a.key, b.key))
	})
	gone := list[:extra+s.room()/8]
	for _, st := range gone {
		s.release(st.key, st.source)
		delete(s.streams, st.key)
	}
	oldest, needed := s.windows, map[string]bool{}
	for _, st := range list[len(gone):] {
		oldest = min(oldest, st.seen)
		needed[st.key[:strings.LastIndexByte(st.key, 0)]] = true
	}
	for name, f := range s.families {
		if f.seen < oldest && !needed[name] {
			delete(s.families, name)
		}
	}
}

// release removes a stream from its source.
func (s *Streams) release(key, source string) {
	delete(s.sources[source], key)
	if len(s.sources[source]) == 0 {
		delete(s.sources, source)
	}
}

// rank is 1 for a stream whose symptom goes on.
func (st *stream) rank() int {
	if st.test.Active {
		return 1
	}
	return 0
}
