package beaucoup

import (
	"fmt"
	"maps"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words and texts of a snapshot. Queries are identified by their index in the list.
const (
	counterWords = "counters"
	stateWords   = "state"   // collectors alive, evicted; changes of the queries
	queryWords   = "queries" // queryWidth a query: runs, M, N, P, P after ties, mark
	eventWords   = "events"  // eventWidth an event: query, time, age, coupons, alert, key
	haveWords    = "have"    // haveWidth a query with alerts: query, collectors with 0, 1, ... coupons
	nameWords    = "names"   // hashes of DNS names
	totalWords   = "totals"  // totalWidth a collector that has alerted: query, alert, first coupon, until when (ns), coupons, tail, new ones, state, key
	spanWords    = "spans"   // merged, spanWidth a collector: query, first coupon (ns since 1970), coupons, part, key

	queryTexts   = "queries"
	nameTexts    = "names"
	troubleTexts = "trouble"

	queryWidth = 6
	eventWidth = 5 + compile.WordCount
	haveWidth  = 66
	totalWidth = 8 + compile.WordCount
	spanWidth  = 4 + compile.WordCount
)

// collected moves queries, events, and the collectors' counts that alerts are judged by, to a snapshot.
func (i *instance) collected(s *snapshot.Snapshot, now int64) error {
	s.Texts = map[string][]string{}
	var queries snapshot.Words
	type asked struct {
		text                 string
		collector, effective compile.Collector
		mark                 uint64
	}
	type known struct {
		query     *compile.Compiled
		effective compile.Collector
	}
	at, before := map[asked]uint64{}, map[known]uint64{}
	add := func(c *compile.Compiled, effective compile.Collector, runs uint64) uint64 {
		if n, added := before[known{c, effective}]; added {
			return n
		}
		a := asked{c.Text(), c.Collector, effective, compile.Salt(i.seed, i.epoch, "mark", c.Definition()+i.family())}
		n, added := at[a]
		if !added {
			n = uint64(len(at))
			at[a] = n
			s.Texts[queryTexts] = append(s.Texts[queryTexts], a.text)
			queries = append(queries, runs, uint64(c.Collector.M), uint64(c.Collector.N), math.Float64bits(c.Collector.P), math.Float64bits(effective.P), a.mark)
		}
		before[known{c, effective}] = n
		return n
	}
	for k := range i.program.Queries {
		c := &i.program.Queries[k]
		add(c, i.program.Effective(c), 1)
	}
	alerted := map[uint64]*compile.Compiled{}
	events := make(snapshot.Words, 0, eventWidth*len(i.events))
	for k := range i.events {
		e := &i.events[k]
		query := add(e.query, e.effective, 0)
		events = append(append(events, query, e.Time, e.Age, e.Coupons, uint64(e.Alert)), e.Key[:]...)
		if e.Alert != 0 {
			alerted[query] = e.query
		}
	}
	i.events = i.events[:0]
	if err := i.counted(s, now, func(c *compile.Compiled, effective compile.Collector) uint64 {
		query := add(c, effective, 0)
		alerted[query] = c
		return query
	}); err != nil {
		return err
	}
	s.Words[queryWords], s.Words[eventWords], s.Words[haveWords] = queries, events, snapshot.Words{}
	for _, hash := range slices.Sorted(maps.Keys(i.names)) {
		s.Words[nameWords], s.Texts[nameTexts] = append(s.Words[nameWords], hash), append(s.Texts[nameTexts], i.names[hash])
	}
	if len(alerted) == 0 {
		return nil
	}
	have, err := i.coupons()
	if err != nil {
		return err
	}
	for _, query := range slices.Sorted(maps.Keys(alerted)) {
		w := append(s.Words[haveWords], query)
		for _, n := range have[alerted[query].ID] {
			w = append(w, uint64(n))
		}
		s.Words[haveWords] = w
	}
	return nil
}

// leastP bounds the probabilities in a snapshot: coupons have at least 2^-24, of which ties leave a part.
const leastP = 1e-12

// open reads a snapshot and finds the alerts.
func (c *config) open(s *snapshot.Snapshot) (*estimator, error) {
	r := s.Read()
	e := &estimator{config: c, offset: s.Offset, trouble: s.Texts[troubleTexts], effective: map[*compile.Compiled]compile.Collector{}, marks: map[*compile.Compiled]uint64{},
		active: map[*compile.Compiled]bool{}, have: map[*compile.Compiled][65]int{}}
	e.counts = r.Words(counterWords, int(bpf.BeaucoupBeaucoupCounterBEAUCOUP_COUNTS))
	state := r.Words(stateWords, 3)
	e.alive, e.evicted, e.changes = int(min(state[0], math.MaxInt32)), state[1], state[2]
	e.readNames(s, r)
	e.readQueries(s, r)
	for _, w := range r.Rows(eventWords, eventWidth) {
		if q := e.at(r, w[0]); q != nil {
			e.events = append(e.events, tagged{event{Time: w[1], Age: w[2], Coupons: w[3], Alert: uint32(min(w[4], 1)), Key: [compile.WordCount]uint64(w[5:])}, q, e.effective[q]})
		}
	}
	for _, w := range r.Rows(haveWords, haveWidth) {
		if q := e.at(r, w[0]); q != nil {
			var have [65]int
			for k := range have {
				have[k] = int(min(w[k+1], 1<<32))
			}
			e.have[q] = have
		}
	}
	for _, w := range r.Rows(totalWords, totalWidth) {
		if q := e.at(r, w[0]); q != nil {
			e.counted = append(e.counted, total{counting: counting{query: q, effective: e.effective[q], alerted: int64(w[1]), start: int64(w[2]), until: int64(w[3]),
				coupons: w[4], tail: w[5], grown: int(min(w[6], math.MaxInt32)), state: phase(min(w[7], uint64(gone))), key: compile.Words(w[8:])}})
		}
	}
	for _, w := range r.Rows(spanWords, spanWidth) {
		if q := e.at(r, w[0]); q != nil {
			e.spans = append(e.spans, spanned{vector{q, e.effective[q], compile.Words(w[4:]), w[2], int64(w[1])}, int(min(w[3], math.MaxInt32))})
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	e.last, e.vectors = e.take()
	e.judge(e.last)
	e.totals()
	e.assign()
	return e, nil
}

// readNames: a snapshot has names with their hashes, because it does not contain the seed.
func (e *estimator) readNames(s *snapshot.Snapshot, r *snapshot.Reader) {
	e.names = map[uint64]string{}
	texts := s.Texts[nameTexts]
	for n, w := range r.Rows(nameWords, 1) {
		if n >= len(texts) {
			r.Refuse("%d names are missing", len(s.Words[nameWords])-len(texts))
			return
		}
		e.names[w[0]] = texts[n]
	}
}

func (e *estimator) readQueries(s *snapshot.Snapshot, r *snapshot.Reader) {
	texts, rows := s.Texts[queryTexts], r.Rows(queryWords, queryWidth)
	if len(texts) != len(rows) || len(rows) > mostQueries {
		r.Refuse("%d queries with %d texts", len(rows), len(texts))
		return
	}
	for n, w := range rows {
		q, err := compile.ParseQuery(texts[n])
		if err != nil {
			r.Refuse("%v", err)
			return
		}
		c := &compile.Compiled{Query: q, Collector: compile.Collector{M: int(min(w[1], 65)), N: int(min(w[2], 65)), P: math.Float64frombits(w[3])}}
		effective := c.Collector
		effective.P = math.Float64frombits(w[4])
		if m := c.Collector.M; c.Collector.N < 1 || c.Collector.N > m || m > 64 || !(c.Collector.P >= leastP && c.Collector.P <= 1) ||
			!(effective.P >= leastP && effective.P <= 1) {
			r.Refuse("query %s with %d of %d coupons of %g", q.Name, c.Collector.N, m, c.Collector.P)
			return
		}
		e.queries = append(e.queries, c)
		e.effective[c], e.marks[c] = effective, w[5]
		if w[0] == 1 {
			e.active[c] = true
		}
	}
}

// mostQueries bounds the queries of a snapshot, which may be of many successive programs.
const mostQueries = 512 * compile.MaxQueries

func (e *estimator) at(r *snapshot.Reader, query uint64) *compile.Compiled {
	if query >= uint64(len(e.queries)) {
		r.Refuse("an event of query %d, there are %d", query, len(e.queries))
		return nil
	}
	return e.queries[query]
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	e, err := c.open(s)
	if err != nil {
		return algo.Result{}, err
	}
	result := algo.Result{Used: e.counts[bpf.BeaucoupBeaucoupCounterBEAUCOUP_PACKETS], Lost: lost(e.counts, e.evicted)}
	if s.Parts == 1 {
		result.Body = e.body()
		return result, nil
	}
	m, err := e.merger(s.Parts)
	if err != nil {
		return algo.Result{}, fmt.Errorf("read snapshot of beaucoup: %w: %w", snapshot.ErrDamaged, err)
	}
	result.Body = m.Report()
	return result, nil
}

// spanned is a collector of one of the merged windows.
type spanned struct {
	vector
	part int
}

// merger merges the collectors of all parts.
func (e *estimator) merger(parts int) (*Merger, error) {
	m := NewMerger()
	m.windows = parts
	for _, v := range e.spans {
		c := v.query
		m.hosts = v.part
		row := exported{Query: c.Name, Key: c.Key.Name(v.key, e.names), Coupons: fmt.Sprintf("%016x", v.coupons), Definition: fmt.Sprintf("%016x", e.marks[c]),
			N: c.Collector.N, M: c.Collector.M, P: v.effective.P, Start: v.start, Window: int64(c.Window)}
		if err := m.add(row, 0); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// CheckMerge implements algo.MergeChecker.
func (c *config) CheckMerge() error {
	if c.export {
		return nil
	}
	return fmt.Errorf("%w: without beaucoup.export=true the coupons of keys without an alert are not in the snapshot", algo.ErrMerge)
}

// Merge implements algo.Merger: it stores the collectors of both snapshots. A coupon counts as collected if any host has it (section 4.6), but the
// begin of a query's window is known only when all snapshots are merged. Hosts need the same queries and seeds, and must export, since otherwise the
// keys of coupons are unknown.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	if err := algo.SameHashes(a, b); err != nil {
		return nil, err
	}
	if err := c.CheckMerge(); err != nil {
		return nil, err
	}
	s := snapshot.Together(a, b)
	s.Texts = map[string][]string{}
	var queries, spans snapshot.Words
	at, marks, part := map[string]uint64{}, map[string]uint64{}, uint64(0)
	names := map[uint64]string{}
	for _, one := range []*snapshot.Snapshot{a, b} {
		e, err := c.open(one)
		if err != nil {
			return nil, err
		}
		maps.Copy(names, e.names)
		index := map[*compile.Compiled]uint64{}
		for n, q := range e.queries {
			text := q.Text()
			if mark, known := marks[q.Name]; known && mark != e.marks[q] {
				return nil, fmt.Errorf("%w: query %s is not the same on all hosts: give them the same queries, in the same order", algo.ErrMerge, q.Name)
			}
			marks[q.Name] = e.marks[q]
			if _, known := at[text]; !known {
				at[text] = uint64(len(s.Texts[queryTexts]))
				s.Texts[queryTexts] = append(s.Texts[queryTexts], text)
				queries = append(queries, one.Words[queryWords][n*queryWidth:][:queryWidth]...)
			}
			index[q] = at[text]
		}
		for _, v := range e.collectors(one) {
			spans = append(append(spans, index[v.query], uint64(v.start), v.coupons, part+uint64(v.part)), v.key[:]...)
		}
		part += uint64(one.Parts)
	}
	s.Words[counterWords] = snapshot.Sum(a.Words[counterWords], b.Words[counterWords])
	s.Words[stateWords] = snapshot.Sum(a.Words[stateWords], b.Words[stateWords])
	s.Words[queryWords], s.Words[spanWords] = queries, spans
	for _, hash := range slices.Sorted(maps.Keys(names)) {
		s.Words[nameWords], s.Texts[nameTexts] = append(s.Words[nameWords], hash), append(s.Texts[nameTexts], names[hash])
	}
	return s, nil
}

// collectors of a snapshot, with times in ns since 1970: those of its parts, or of its own events.
func (e *estimator) collectors(s *snapshot.Snapshot) []spanned {
	if s.Parts > 1 {
		return e.spans
	}
	var all []spanned
	for _, v := range e.vectors {
		v.start += s.Offset
		all = append(all, spanned{vector: v})
	}
	return all
}
