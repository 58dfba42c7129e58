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

// Engine takes the windows of all algorithms and keeps findings from begin to end. It is safe for concurrent use.
type Engine struct {
	mu      sync.Mutex
	streams *finding.Streams
	offset  int64 // of the windows' clock to 1970

	round   []finding.Reading
	events  map[string]finding.Reading // streams of measures of which one window is evidence, whose round was not diagnosed
	sources map[string]bool            // of this round
	known   map[string]*source         // of all rounds
	end     int64                      // of the latest window

	open   map[string]*finding.Finding // by Key
	leads  map[string]string           // a finding's leading stream -> its Key
	unable map[string]int              // sentences of what could not be told -> rounds
	told   map[string]bool             // ... of this round
	idle   map[string]bool             // instances: whether no window had a packet
	done   int                         // rounds

	subjects []string // of the latest round: networks and hosts that it could tell something of
}

// source is whose windows come: an algorithm of an instance.
type source struct {
	end, length int64 // of its latest window, ns; the longest one's length
	missed      int   // rounds in a row that waited for it and went without
}

// New is an engine without a past.
func New(promises ...finding.Promise) *Engine {
	return &Engine{streams: finding.NewStreams(promises...), sources: map[string]bool{}, known: map[string]*source{}, events: map[string]finding.Reading{}, open: map[string]*finding.Finding{}, leads: map[string]string{},
		unable: map[string]int{}, told: map[string]bool{}, idle: map[string]bool{}}
}

// Promise replaces the promises.
func (e *Engine) Promise(promises []finding.Promise) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams.Promises = promises
}

// SetClock says how the windows' clock stands to 1970.
func (e *Engine) SetClock(c report.Clock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.offset = c.UnixOffsetNS
}

// Window is what rules made of a line: all of it that the engine needs.
type Window struct {
	Source     string // algorithm, instance, and what it matches
	Instance   string
	Start, End int64
	Packets    uint64
	Seen       finding.Seen
}

// Apply lets an algorithm's rule read a line. It is pure.
func Apply(l report.Line) Window {
	w := Window{Source: l.Algorithm + "\x00" + l.Key(), Instance: l.Place(), Start: l.Window.Start, End: l.Window.End, Packets: l.Packets.Seen}
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

// Line takes a window of an algorithm and returns what began or ended. Findings of a round of windows are made when all algorithms have had
// theirs, or one has its next.
func (e *Engine) Line(l report.Line) []finding.Finding { return e.Take(Apply(l)) }

// Take is Line for what Apply has made of it.
func (e *Engine) Take(w Window) (changed []finding.Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sources[w.Source] {
		changed = e.close()
	}
	e.sources[w.Source] = true
	e.end = max(e.end, w.End+e.offset)
	e.meet(w)
	for _, text := range w.Seen.Unable {
		e.told[text] = e.told[text] || w.Packets > 0 // an interface without traffic is listed as such
	}
	idle, known := e.idle[w.Instance]
	e.idle[w.Instance] = w.Packets == 0 && (idle || !known)
	e.round = append(e.round, e.streams.Window(w.Source, w.Seen.Measures, w.Start+e.offset, w.End+e.offset)...)
	if e.done > 0 && len(e.lacking()) == 0 {
		changed = append(changed, e.close()...)
	}
	return changed
}

// meet remembers when a source's next window is due.
func (e *Engine) meet(w Window) {
	s := e.known[w.Source]
	if s == nil {
		s = &source{}
		e.known[w.Source] = s
	}
	s.end, s.length, s.missed = w.End+e.offset, max(s.length, w.End-w.Start), 0
}

// patience is how many of the shortest windows a round waits for a source whose next window is due: windows of sessions that began at different times end up
// to one apart.
const patience = 1.5

// lacking are the sources that this round has to wait for: their next window ends with it. Longer windows are not in each round.
func (e *Engine) lacking() (names []string) {
	shortest := int64(math.MaxInt64)
	for _, s := range e.known {
		shortest = min(shortest, s.length)
	}
	for name, s := range e.known {
		if !e.sources[name] && float64(s.end+s.length-e.end) < patience*float64(shortest) {
			names = append(names, name)
		}
	}
	return names
}

// Flush ends a round without waiting for anybody, at the end of a run.
func (e *Engine) Flush() []finding.Finding {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sources) == 0 {
		return nil
	}
	return e.close()
}

// given is how many rounds in a row lack a source that has ended.
const given = 2

// close diagnoses a round. One that lacks a window (an algorithm ended, or the run does) shows half of what others would explain: it begins and ends
// nothing. What one window is evidence of (an alert, a process that stood still) is there once, so the next whole round has it as well.
func (e *Engine) close() (changed []finding.Finding) {
	round, lacking := e.round, e.lacking()
	e.done++
	e.sources, e.round = map[string]bool{}, nil
	e.count()
	for _, name := range lacking {
		if e.known[name].missed++; e.known[name].missed >= given {
			delete(e.known, name)
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

// count remembers what this round could not show.
func (e *Engine) count() {
	for text, traffic := range e.told {
		if !traffic {
			continue
		}
		if e.unable[text]++; len(e.unable) > maxUnable {
			clear(e.unable)
		}
	}
	clear(e.told)
}

// settle compares what is there with what goes on.
func (e *Engine) settle(now []finding.Finding) (changed []finding.Finding) {
	there := map[string]bool{}
	for i := range now {
		f := now[i]
		key := f.Key()
		if k, goes := e.leads[f.Lead]; goes && e.open[k] != nil { // the kind of a finding stays as it began
			key = k
		}
		if there[key] {
			continue
		}
		if old := e.open[key]; old != nil {
			there[key] = true
			e.goesOn(old, f)
			continue
		}
		if !f.Fresh || f.Kind == finding.LossInQueue && e.filled(f.Interface, now) {
			continue // its cause has gone, and what is left is the memory of the test; or it has its finding
		}
		there[key] = true
		f.State = finding.Begins
		e.open[key], e.leads[f.Lead] = &f, key
		changed = append(changed, f)
	}
	return append(changed, e.ended(there)...)
}

// filled reports whether the queue of an interface still stands because of the user that was found to fill it: what it drops belongs to that, also while the
// user's share of it is lower for a window.
func (e *Engine) filled(iface string, now []finding.Finding) bool {
	return slices.ContainsFunc(now, func(f finding.Finding) bool {
		old := e.open[e.leads[f.Lead]]
		return old != nil && old.Kind == finding.UnfairUser && old.Interface == iface
	})
}

// goesOn updates a finding: the worst value stays.
func (e *Engine) goesOn(old *finding.Finding, f finding.Finding) {
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

// Open are the findings that go on, the gravest first.
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

// maxUnable bounds how many sentences are counted.
const maxUnable = 256

// Unable are sentences about what half of the windows or more could not show.
func (e *Engine) Unable() (list []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(e.unable)) {
		if n := e.unable[text]; 2*n >= e.done {
			list = append(list, fmt.Sprintf("%s (%d of %d windows)", text, n, e.done))
		}
	}
	return list
}

// Idle are the interfaces without traffic, and how many have some.
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

// mostSubjects bounds what Subjects lists.
const mostSubjects = 256

// subjects are networks and hosts of whose measures something was expected, each once, the largest networks first.
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

// Subjects are the networks and hosts of which the latest round of windows could show that something is wrong.
func (e *Engine) Subjects() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.subjects
}

// Rounds is how many rounds of windows were looked at.
func (e *Engine) Rounds() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done
}

// Pasts are the streams' pasts in the form of a store, in no more than room bytes; left is how many have no room. Recall gives one back.
func (e *Engine) Pasts(room int) (kept map[string][]byte, left int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams.Pasts(room)
}

// Recall gives a stream the past that a store has kept, unless it has one; now is ns since 1970.
func (e *Engine) Recall(key string, p *finding.Past, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams.Recall(key, p, now)
}
