package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Engine reads the windows of all algorithms and tracks findings from start to end. It is safe for concurrent use.
type Engine struct {
	mu      sync.Mutex
	streams *finding.Streams
	offset  int64 // from the windows' clock to Unix time

	round   []finding.Reading
	events  map[string]finding.Reading // streams of measures of which one window is evidence, whose round was not diagnosed
	sources map[string]bool            // of this round
	known   map[string]*source         // of all rounds
	awaited string                     // a source that the round lacked when lacking was last called
	least   int64                      // shortest length of known, ns; 0: not known
	end     int64                      // of the latest window
	held    []Window                   // of later rounds, in the order of their arrival
	partial int                        // rounds that were closed without a window, after waiting for it

	open   map[string]*finding.Finding // by Key
	leads  map[string]string           // a finding's leading stream -> its Key
	unable map[string]int              // sentence about a limit of the measurement -> rounds
	limits map[string]bool             // the same for this round: whether there was traffic
	idle   map[string]bool             // instances: whether no window had a packet
	done   int                         // number of rounds

	subjects []string // of the latest round: networks and hosts that it could judge
}

// source is an algorithm of an instance, whose windows arrive here.
type source struct {
	end, length int64             // of its latest window, ns; the longest one's length, without stretched ones
	stretched   bool              // length is that of a stretched window, since there is no other
	missed      int               // consecutive rounds that waited for it without success
	readings    []finding.Reading // of its latest window, if its windows are longer than others
}

// New returns an engine without history.
func New(promises ...finding.Promise) *Engine {
	return &Engine{streams: finding.NewStreams(promises...), sources: map[string]bool{}, known: map[string]*source{}, events: map[string]finding.Reading{}, open: map[string]*finding.Finding{}, leads: map[string]string{},
		unable: map[string]int{}, limits: map[string]bool{}, idle: map[string]bool{}}
}

// Promise replaces the promises.
func (e *Engine) Promise(promises []finding.Promise) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams.Promises = promises
}

// SetClock sets the offset from the windows' clock to Unix time.
func (e *Engine) SetClock(c report.Clock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.offset = c.UnixOffsetNS
}

// Window is all that the engine needs of a line, after the algorithm's rule was applied.
type Window struct {
	Source     string // algorithm, instance, and what it matches
	Instance   string
	Start, End int64
	Stretched  bool
	Packets    uint64
	Seen       finding.Seen
}

// Apply applies an algorithm's rule to a line. It is pure.
func Apply(l report.Line) Window {
	w := Window{Source: l.Algorithm + "\x00" + l.Key(), Instance: l.Place(), Start: l.Window.Start, End: l.Window.End, Stretched: l.Window.Stretched, Packets: l.Packets.Seen}
	for _, d := range l.Report.Distributions {
		w.Source += "\x00" + d.Title
	}
	d, err := algo.Lookup(l.Algorithm)
	if err != nil || d.Findings == nil {
		return w
	}
	w.Seen = d.Findings(l)
	w.Seen.Measures = append(w.Seen.Measures, finding.Windowed(l)...)
	if text := finding.NotLookedInto(l); text != "" {
		w.Seen.Unable = append(w.Seen.Unable, text)
	}
	return w
}

// Line adds a window of an algorithm and returns the findings that started or ended. A round is diagnosed when all algorithms have
// delivered their window. Windows of the next round wait for a late one of this round (Engine.admit).
func (e *Engine) Line(l report.Line) []finding.Finding { return e.Take(Apply(l)) }

// Take is Line for the result of Apply.
func (e *Engine) Take(w Window) (changed []finding.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.admit(w)
}

// add puts a window into the round, and diagnoses the round if no window is missing.
func (e *Engine) add(w Window) []finding.Finding {
	e.sources[w.Source] = true
	e.end = max(e.end, w.End+e.offset)
	e.due(w)
	for _, text := range w.Seen.Unable {
		e.limits[text] = e.limits[text] || w.Packets > 0 // an interface without traffic is reported as such
	}
	e.streams.Expect(len(e.known))
	idle, known := e.idle[w.Instance]
	e.idle[w.Instance] = w.Packets == 0 && (idle || !known)
	readings := e.streams.Window(w.Source, w.Seen.Measures, w.Start+e.offset, w.End+e.offset)
	e.round = append(e.round, readings...)
	if s := e.known[w.Source]; e.longer(s) {
		s.readings = slices.Clone(readings)
	}
	if e.done > 0 && e.complete() {
		return e.close()
	}
	return nil
}

// due records when a source's next window is due. A stretched window does not change that: after a process stood still for two windows, its rounds would be closed
// without the sources that deliver last, and their findings would end.
func (e *Engine) due(w Window) {
	s := e.known[w.Source]
	if s == nil {
		s = &source{}
		e.known[w.Source] = s
	}
	was := s.length
	s.end, s.missed = w.End+e.offset, 0
	switch took := w.End - w.Start; {
	case s.length == 0 || s.stretched:
		s.length, s.stretched = took, w.Stretched
	case !w.Stretched:
		s.length = max(s.length, took)
	}
	switch {
	case s.length < e.least:
		e.least = s.length
	case was == e.least && s.length > was: // others may be longer, too
		e.least = 0
	}
}

// patience is how long a round waits for a source whose next window is due, in shortest windows: sessions that started at different times are up to one window
// apart.
const patience = 1.5

// longPatience is patience for a source with longer windows: one that ends later than this after the round is in the next one.
const longPatience = .5

// longer reports whether a source's windows are not in every round. What its latest window showed holds until its next one.
func (e *Engine) longer(s *source) bool { return !s.stretched && s.length >= 2*e.shortest()*9/10 }

// awaits reports whether the next window of a source ends with this round, so that the round has to wait for it.
func (e *Engine) awaits(s *source) bool {
	wait := patience
	if e.longer(s) {
		wait = longPatience
	}
	return float64(s.end+s.length-e.end) < wait*float64(e.shortest())
}

// lacking are the sources that the round has to wait for.
func (e *Engine) lacking() (names []string) {
	for name, s := range e.known {
		if !e.sources[name] && e.awaits(s) {
			names = append(names, name)
		}
	}
	return names
}

// carry adds to the round the latest readings of sources whose windows are longer, and have not ended with it.
func (e *Engine) carry() {
	for _, name := range slices.Sorted(maps.Keys(e.known)) {
		if s := e.known[name]; !e.sources[name] && e.longer(s) {
			e.round = append(e.round, s.readings...)
		}
	}
}

// complete reports whether no source is lacking. Usually the one that was missing before still is, and the others, of which there may be 1,200, need not be
// looked at with each window.
func (e *Engine) complete() bool {
	if s := e.known[e.awaited]; s != nil && !e.sources[e.awaited] && e.awaits(s) {
		return false
	}
	names := e.lacking()
	if len(names) > 0 {
		e.awaited = names[0]
	}
	return len(names) == 0
}

// shortest is the shortest window length of the known sources, ns; of none, a very large one.
func (e *Engine) shortest() int64 {
	if e.least != 0 {
		return e.least
	}
	shortest := int64(math.MaxInt64)
	for _, s := range e.known {
		shortest = min(shortest, s.length)
	}
	if len(e.known) > 0 {
		e.least = shortest
	}
	return shortest
}

// Flush diagnoses the last rounds without waiting for further windows, at the end of a run.
func (e *Engine) Flush() (changed []finding.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.sources) > 0 {
		changed = append(changed, e.close()...)
		changed = append(changed, e.release()...)
	}
	return changed
}

// missedRounds is the number of consecutive rounds without a source after which it is taken as ended.
const missedRounds = 2

// close diagnoses a round. If a window is missing (an algorithm or the run has ended), nothing starts or ends, since readings that would explain others are
// missing. Measures of which one window is evidence (an alert, a process that stood still) are evaluated again in the next complete round.
func (e *Engine) close() (changed []finding.Finding) {
	lacking := e.lacking()
	e.carry()
	round := e.round
	e.done++
	clear(e.sources)
	defer func() { // the next round has about as many
		clear(round)
		e.round = round[:0]
	}()
	e.count()
	for _, name := range lacking {
		if e.known[name].missed++; e.known[name].missed >= missedRounds {
			delete(e.known, name)
			e.least = 0
		}
	}
	for i := range round {
		r := &round[i]
		if !r.Certain && r.Enough == 0 {
			continue
		}
		if earlier, undiagnosed := e.events[finding.KeyOf(&r.Measure)]; r.Active && undiagnosed && !r.Apart {
			*r = earlier
		}
		if len(lacking) > 0 && r.Active && r.Apart {
			e.events[finding.KeyOf(&r.Measure)] = *r
		}
	}
	if len(lacking) > 0 {
		return nil
	}
	clear(e.events)
	e.subjects = subjects(round)
	return e.settle(Diagnose(round))
}

// count counts the sentences about limits of the measurement in this round.
func (e *Engine) count() {
	for text, traffic := range e.limits {
		if !traffic {
			continue
		}
		if e.unable[text]++; len(e.unable) > maxUnable {
			clear(e.unable)
		}
	}
	clear(e.limits)
}

// settle compares the findings of a round with the open ones.
func (e *Engine) settle(now []finding.Finding) (changed []finding.Finding) {
	there := map[string]bool{}
	for i := range now {
		f := now[i]
		key := f.Key()
		if k, goes := e.leads[f.Lead]; goes && e.open[k] != nil { // a finding keeps the kind that it started with
			key = k
		} else if k, part := e.partOf(f); part {
			key = k
		}
		if there[key] {
			continue
		}
		if old := e.open[key]; old != nil {
			there[key] = true
			e.update(old, f)
			continue
		}
		if !f.Fresh || f.Kind == finding.LossInQueue && e.filled(f.Interface, now) {
			continue // its cause has ended, and only the test's memory keeps it active; or it belongs to an open finding
		}
		there[key] = true
		f.State = finding.Begins
		e.open[key], e.leads[f.Lead] = &f, key
		changed = append(changed, f)
	}
	return append(changed, e.ended(there)...)
}

// partOf is the key of the heavy network that goes on and is a part of this one, or has it as a part: which of them has most changes with windows.
func (e *Engine) partOf(f finding.Finding) (string, bool) {
	p, err := netip.ParsePrefix(f.Subject.Name)
	if f.Kind != finding.HeavyNetwork || err != nil {
		return "", false
	}
	for _, key := range slices.Sorted(maps.Keys(e.open)) {
		old := e.open[key]
		if q, err := netip.ParsePrefix(old.Subject.Name); err == nil && old.Kind == finding.HeavyNetwork && q.Overlaps(p) {
			return key, true
		}
	}
	return "", false
}

// filled reports whether an open finding already attributes the queue of an interface to a user: drops belong to it, even if the user's share is lower for
// one window.
func (e *Engine) filled(iface string, now []finding.Finding) bool {
	return slices.ContainsFunc(now, func(f finding.Finding) bool {
		old := e.open[e.leads[f.Lead]]
		return old != nil && old.Kind == finding.UnfairUser && old.Interface == iface
	})
}

// update updates a finding and keeps the worst value.
func (e *Engine) update(old *finding.Finding, f finding.Finding) {
	old.State, old.Seen, old.Windows = finding.GoesOn, max(old.Seen, f.Seen), max(old.Windows, f.Windows)
	if f.Fresh && f.Harm >= old.Harm {
		old.Value, old.Expected, old.Harm, old.Because = f.Value, f.Expected, f.Harm, f.Because
	}
}

func (e *Engine) ended(there map[string]bool) (changed []finding.Finding) {
	for _, key := range slices.Sorted(maps.Keys(e.open)) {
		if f := e.open[key]; !there[key] {
			f.State, f.Until = finding.Ends, cmp.Or(f.Seen, e.end)
			changed = append(changed, *f)
			delete(e.open, key)
			delete(e.leads, f.Lead)
		}
	}
	return changed
}

// Open are the open findings, the most severe first.
func (e *Engine) Open() []finding.Finding {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]finding.Finding, 0, len(e.open))
	for _, f := range e.open {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b finding.Finding) int { return finding.Worse(&a, &b) })
	return list
}

// maxUnable bounds the number of counted sentences.
const maxUnable = 256

// Unable are sentences about limits that applied to at least half of the windows.
func (e *Engine) Unable() (list []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(e.unable)) {
		if n := e.unable[text]; 2*n >= e.done {
			list = append(list, fmt.Sprintf("%s (%d of %d windows)", text, n, e.done))
		}
	}
	if e.partial > 0 {
		list = append(list, fmt.Sprintf("what happened in %d of %d windows: this machine was too busy to read all tables in time, and no finding starts or ends in them (remedy: longer windows, or a higher priority for xdpmon)", e.partial, e.done))
	}
	return list
}

// Idle are the interfaces without traffic, and the number of the others.
func (e *Engine) Idle() (names []string, busy int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, idle := range e.idle {
		if idle {
			names = append(names, name)
		} else {
			busy++
		}
	}
	slices.Sort(names)
	return names, busy
}

// mostSubjects bounds the result of Subjects.
const mostSubjects = 256

// subjects are the networks and hosts with an expectation in this round, each once, the largest networks first.
func subjects(round []finding.Reading) (list []string) {
	seen := map[string]bool{}
	for i := range round {
		r := &round[i]
		if t := r.Subject.Type; (t == finding.Prefix || t == finding.Host) && r.Known && r.Weak == "" && !seen[r.Subject.Name] {
			seen[r.Subject.Name] = true
			list = append(list, r.Subject.Name)
		}
	}
	bits := func(name string) int {
		p, err := netip.ParsePrefix(name)
		if err != nil {
			return 128
		}
		return p.Bits()
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(bits(a), bits(b)), cmp.Compare(a, b)) })
	return list[:min(len(list), mostSubjects)]
}

// Subjects are the networks and hosts that the latest round could judge.
func (e *Engine) Subjects() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.subjects
}

// Rounds is the number of diagnosed rounds.
func (e *Engine) Rounds() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done
}

// Pasts are the streams' baselines in the form of a store, in at most room bytes; left is how many did not fit. Recall restores one.
func (e *Engine) Pasts(room int) (kept map[string][]byte, left int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams.Pasts(room)
}

// Recall restores a stream's baseline from a store, unless it has one; now is ns since 1970.
func (e *Engine) Recall(key string, p *finding.Past, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams.Recall(key, p, now)
}
