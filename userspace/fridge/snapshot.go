package fridge

import (
	"fmt"
	"math"
	"slices"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/layout"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// The words of a snapshot. A single window is stored as its registers, under their own names, with the rates and repetitions of earlier
// windows; a merged one as corrected distributions, because each was corrected by its own rates.
const (
	windowWords     = "windows"     // 1 + layout.Most numbers a window before this one, the latest last: ns, insertions
	gapWords        = "gaps"        // of windows before: repetitions by fridges and bins
	occurrenceWords = "occurrences" // ... and insertions

	counterWords = "counters"
	ownerWords   = "owners"      // merged: keys of groups
	shutWords    = "fridge_shut" // zero windows of the groups
	spectrumWord = "spectra"     // merged: rows, then the others
	mergedWords  = "merged"      // mergedCount numbers

	windowWidth = 1 + layout.Most
	mergedCount = 3 // most answers, lost repetitions, ns of all windows
)

// past holds rates and repetitions of earlier windows, for the correction of later ones.
type past struct {
	windows     []rateWindow
	gaps        []float64 // [fridge][bin]: repetitions that found their record, weighted by age
	occurrences []float64 // [fridge]
}

func newPast(fridges int) *past {
	return &past{gaps: make([]float64, fridges*delay.RepeatBins.Len()), occurrences: make([]float64, fridges)}
}

func (p *past) add(ns int64, inserted, repeats []uint64) {
	empty := p.empty(inserted)
	p.windows = appended(p.windows, ns, inserted[:len(p.occurrences)])
	if empty { // nothing is newer than what is remembered
		return
	}
	for n, found := range repeats {
		p.gaps[n] = remembered*p.gaps[n] + float64(found)
	}
	for k := range p.occurrences {
		p.occurrences[k] = remembered*p.occurrences[k] + float64(inserted[k])
	}
}

// forget the repetitions: with another probability as many insertions are another time.
func (p *past) forget() {
	clear(p.gaps)
	clear(p.occurrences)
}

// empty reports whether nothing was inserted in a window, nor in those before it that are stored.
func (p *past) empty(inserted []uint64) bool {
	return !slices.ContainsFunc(inserted, func(n uint64) bool { return n > 0 }) &&
		!slices.ContainsFunc(p.windows, func(w rateWindow) bool { return w.inserted != [layout.Most]float64{} })
}

// into stores what the correction of a window needs. For a window of an idle interface that is not how long the ones before it were, so that such snapshots are
// equal.
func (p *past) into(s *snapshot.Snapshot, inserted []uint64) {
	windows := p.windows
	if p.empty(inserted) {
		windows = nil
	}
	list := make([]float64, 0, windowWidth*len(windows))
	for _, w := range windows {
		list = append(append(list, w.ns), w.inserted[:]...)
	}
	s.Words[windowWords], s.Words[gapWords], s.Words[occurrenceWords] = snapshot.Floats(list), snapshot.Floats(p.gaps), snapshot.Floats(p.occurrences)
}

func pastOf(r *snapshot.Reader, fridges int) *past {
	p := &past{gaps: r.Floats(gapWords, fridges*delay.RepeatBins.Len()), occurrences: r.Floats(occurrenceWords, fridges)}
	rows := r.Rows(windowWords, windowWidth)
	if len(rows) > mostWindows {
		r.Refuse("%d windows, at most %d are stored", len(rows), mostWindows)
	}
	for _, w := range rows {
		f := snapshot.Words(w).Floats()
		if f[0] = max(f[0], 1); math.IsNaN(f[0]) {
			r.Refuse("a window of %g ns", f[0])
		}
		p.windows = append(p.windows, rateWindow{f[0], [layout.Most]float64(f[1:])})
	}
	return p
}

// open reads the registers of one window and corrects them, or reads the corrected distributions of a merged snapshot.
func (c *config) open(s *snapshot.Snapshot) (*estimator, counts, spectra, error) {
	r := s.Read()
	e := c.estimatorOf(s, r)
	if s.Parts > 1 {
		n, all := e.corrected(s, r)
		return e, n, all, r.Err()
	}
	n, p := c.readingOf(r), pastOf(r, len(c.parts))
	if err := r.Err(); err != nil {
		return nil, nil, spectra{}, err
	}
	all := e.window(n, p)
	if all.sent = c.sampling().Of(r); r.Err() != nil {
		return nil, nil, spectra{}, r.Err()
	}
	e.weigh(all.sent.List)
	return e, n.counts, all, nil
}

// window corrects a window, from what was known of the windows before it.
func (e *estimator) window(n reading, p *past) spectra {
	p.add(e.span[1]-e.span[0], n.counts.insertedBy(), n.repeats)
	e.rates.windows = p.windows
	e.rates.repeat(n.repeats, p, n.counts.at(bpf.FridgeFridgeCounterFRIDGE_REPEATED), n.counts.at(bpf.FridgeFridgeCounterFRIDGE_MATCHED), e.gap())
	e.lost = e.rates.lostRepeats()
	return e.spectraOf(n)
}

// corrected reads the distributions of a merged snapshot.
func (e *estimator) corrected(s *snapshot.Snapshot, r *snapshot.Reader) (counts, spectra) {
	n := counts(r.Words(counterWords, int(bpf.FridgeFridgeCounterFRIDGE_COUNTS)))
	all := spectra{merged: true, sent: e.sampling().Of(r)}
	groups := 1
	if e.grouped() {
		all.owners = s.Words[ownerWords]
		groups = len(all.owners)
		if e.shuts() {
			all.shut = r.Words(shutWords, groups)
		}
	}
	bins, more := e.scale().Bins.Len(), e.moreLabels()
	words := r.Floats(spectrumWord, (groups+len(more))*spectrumWidth(bins))
	next := func(scale delay.Scale) *delay.Spectrum {
		s := spectrumFrom(words[:spectrumWidth(bins)], scale)
		words = words[spectrumWidth(bins):]
		return s
	}
	for range groups {
		all.rows = append(all.rows, next(e.scale()))
	}
	scale := e.scale()
	if e.volumes() {
		scale = e.counts()
	}
	for range more {
		all.more = append(all.more, next(scale))
	}
	state := r.Floats(mergedWords, mergedCount)
	all.sum(e.scale())
	all.total.Most = state[0]
	for _, row := range all.rows {
		all.total.Predicted = larger(all.total.Predicted, row.Predicted)
	}
	for _, m := range all.more {
		m.Most = state[0]
	}
	e.lost = state[1]
	w := rateWindow{ns: max(1, state[2])}
	for k := range e.parts {
		w.inserted[k] = float64(n.insertedBy()[k])
	}
	e.rates.windows = []rateWindow{w}
	return n, all
}

func larger(a, b []float64) []float64 {
	if a == nil {
		return b
	}
	out := slices.Clone(a)
	for i := range out {
		out[i] = max(out[i], b[i])
	}
	return out
}

// spectrumWidth is a spectrum in numbers: doubt, cluster, and four of every bin.
func spectrumWidth(bins int) int { return 2 + 4*bins }

func spectrumFrom(w []float64, scale delay.Scale) *delay.Spectrum {
	s := delay.NewSpectrum(scale)
	n := len(s.Mass)
	s.Doubt, s.Cluster, w = w[0], w[1], w[2:]
	s.Mass, s.Square, s.Raw, s.Predicted = w[:n:n], w[n:2*n:2*n], w[2*n:3*n:3*n], w[3*n:]
	return s
}

func spectrumInto(w []float64, s *delay.Spectrum) []float64 {
	w = append(w, s.Doubt, s.Cluster)
	for _, list := range [][]float64{s.Mass, s.Square, s.Raw, s.Predicted} {
		w = append(w, list...)
	}
	return w
}

// Report implements algo.Config.
func (c *config) Report(s *snapshot.Snapshot) (algo.Result, error) {
	e, n, all, err := c.open(s)
	if err != nil {
		return algo.Result{}, err
	}
	lost := n.lost()
	e.changes(s, lost)
	if c.samples > 0 {
		lost["samples_refused"], lost["samples_lost"] = all.sent.Refused, all.sent.Lost
	}
	return algo.Result{Body: e.body(n, all, s.Offset), Used: n.used(), Lost: lost}, nil
}

// Merge implements algo.Merger: it sums corrected distributions. Each host's is unbiased, whatever its seeds and rates are, so their sum is unbiased,
// and the variances add. Groups are matched by key.
func (c *config) Merge(a, b *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	s := snapshot.Together(a, b)
	var sum spectra
	state, total := make([]float64, mergedCount), make(counts, bpf.FridgeFridgeCounterFRIDGE_COUNTS)
	for n, one := range []*snapshot.Snapshot{a, b} {
		e, counted, all, err := c.open(one)
		if err != nil {
			return nil, err
		}
		total = counts(snapshot.Sum(total, counted))
		state[0] += all.total.Most
		state[1] += e.lost
		state[2] += e.length(one)
		for i := range all.sent.List { // a merged snapshot is in Unix time
			all.sent.List[i].Time += one.Offset
		}
		if n == 0 {
			sum = all
			continue
		}
		sum.plus(all)
		sum.sent = c.sampling().Plus(sum.sent, all.sent)
	}
	s.Words[counterWords], s.Words[mergedWords], s.Words[ownerWords] = snapshot.Words(total), snapshot.Floats(state), sum.owners
	if c.shuts() && c.grouped() {
		s.Words[shutWords] = sum.shut
	}
	if c.samples > 0 {
		sum.sent.Into(s)
	}
	var words []float64
	for _, one := range slices.Concat(sum.rows, sum.more) {
		words = spectrumInto(words, one)
	}
	if slices.ContainsFunc(words, func(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) }) {
		return nil, fmt.Errorf("%w: a snapshot has so many survived insertions that its weights overflow", algo.ErrMerge)
	}
	s.Words[spectrumWord] = snapshot.Floats(words)
	return s, nil
}

// length of a window in ns; of a merged snapshot, the sum over its windows.
func (e *estimator) length(s *snapshot.Snapshot) float64 {
	if s.Parts > 1 {
		return e.rates.windows[0].ns
	}
	return float64(s.Window.End - s.Window.Start)
}

// plus adds the spectra of another host, group by group; the first row holds samples without a row of their own.
func (s *spectra) plus(o spectra) {
	at := map[uint64]int{}
	for row := 1; row < len(s.owners); row++ {
		at[s.owners[row]] = row
	}
	s.owners, s.shut = slices.Clone(s.owners), slices.Clone(s.shut)
	for row, other := range o.rows {
		to, known := row, true
		if row > 0 {
			to, known = at[o.owners[row]]
		}
		switch {
		case known:
			s.rows[to].Plus(other)
		case other.Samples() > 0 || o.shutOf(row) > 0:
			to = len(s.rows)
			at[o.owners[row]] = to
			s.owners, s.rows = append(s.owners, o.owners[row]), append(s.rows, other)
			if s.shut != nil {
				s.shut = append(s.shut, 0)
			}
		}
		if n := o.shutOf(row); n > 0 {
			s.shut[to] += n
		}
	}
	for k := range s.more {
		s.more[k].Plus(o.more[k])
	}
}

// shutOf is how many zero windows a row has; 0 where they are not counted.
func (s *spectra) shutOf(row int) uint64 {
	if s.shut == nil {
		return 0
	}
	return s.shut[row]
}
