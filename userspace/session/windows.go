package session

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// ErrWindows is wrapped where the lengths of a run's windows do not fit together.
var ErrWindows = errors.New("windows of several lengths")

// LengthOf is the length of an algorithm's windows, ns, in a run with windows of another; 0: one window until the end.
func LengthOf(s algo.Selected, window time.Duration) int64 {
	if s.Window != 0 {
		return s.Window
	}
	return int64(window)
}

// CheckWindows refuses lengths of which one is not a multiple of the shortest: windows of all algorithms end where one of the shortest
// ends, so that every packet that was seen is in one window of each algorithm.
func CheckWindows(algorithms []algo.Selected, window time.Duration) error {
	shortest := shortestOf(algorithms, window)
	lengths := map[int64]bool{shortest: true}
	for _, s := range algorithms {
		length := LengthOf(s, window)
		if length != 0 && length%shortest != 0 {
			return fmt.Errorf("%w: %v of %s is not a multiple of the shortest, %v", ErrWindows, time.Duration(length), s.Descriptor.Name, time.Duration(shortest))
		}
		if lengths[length] = true; len(lengths) > maps.Groups {
			return fmt.Errorf("%w: at most %d are possible", ErrWindows, maps.Groups)
		}
	}
	return nil
}

// Several reports whether algorithms have windows of different lengths.
func Several(algorithms []algo.Selected, window time.Duration) bool {
	return slices.ContainsFunc(algorithms, func(s algo.Selected) bool { return LengthOf(s, window) != LengthOf(algorithms[0], window) })
}

// shortestOf is the length of the shortest windows; 0: all algorithms have one window until the end.
func shortestOf(algorithms []algo.Selected, window time.Duration) (shortest int64) {
	for _, s := range algorithms {
		if length := LengthOf(s, window); shortest == 0 || length != 0 && length < shortest {
			shortest = length
		}
	}
	if len(algorithms) == 0 {
		return int64(window)
	}
	return shortest
}

// group is the algorithms of a run whose windows have one length. Group 0 has the shortest windows; those of the others end where one of them ends.
type group struct {
	number int   // as in loader.Object
	length int64 // ns; 0: one window until the end
	window report.Window
	counts loader.Counts // of the windows of group 0 that ended within the present window
}

// base is the group with the shortest windows.
func (r *runner) base() *group { return r.groups[0] }

// regroup begins anew with the groups of a selection.
func (r *runner) regroup(algorithms []Selected) error {
	if err := CheckWindows(algorithms, r.cfg.Window); err != nil {
		return err
	}
	r.groups = []*group{{length: shortestOf(algorithms, r.cfg.Window)}}
	return nil
}

// groupOf is the group of an algorithm, with the lowest free number if it is new.
func (r *runner) groupOf(s Selected) *group {
	length := LengthOf(s, r.cfg.Window)
	number := 0
	for _, g := range r.groups {
		if g.length == length {
			return g
		}
	}
	for slices.ContainsFunc(r.groups, func(g *group) bool { return g.number == number }) {
		number++
	}
	g := &group{number: number, length: length, window: report.Window{Start: r.base().window.Start}}
	r.groups = append(r.groups, g)
	return g
}

// prune removes groups that no member is in.
func (r *runner) prune() {
	r.groups = slices.DeleteFunc(r.groups, func(g *group) bool {
		return g.number != 0 && !slices.ContainsFunc(r.members, func(m *member) bool { return m.group == g })
	})
}

// begins sets the start of the first windows.
func (r *runner) begins(start int64) {
	for _, g := range r.groups {
		g.window, g.counts = report.Window{Start: start}, loader.Counts{}
	}
}

// ending are the groups whose windows end with one of group 0 at a time, up to half of that earlier or later. of is the time at which a group's window
// should end.
func (r *runner) ending(end int64, of func(*group) int64) (due []*group) {
	for _, g := range r.groups {
		if g.number == 0 || g.length != 0 && end >= of(g)-r.base().length/2 {
			due = append(due, g)
		}
	}
	return due
}

// closed is a window that ended, before its registers are read.
type closed struct {
	window report.Window
	bank   int
	counts loader.Counts
}

// closeWindows flips the banks of groups, reads the closed ones, and hands every algorithm's line to Emit.
func (r *runner) closeWindows(clock func() int64, last bool, due []*group) error {
	members := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return !slices.Contains(due, m.group) })
	end, err := r.closing(clock, members)
	if err != nil {
		return err
	}
	ended, err := r.flip(due)
	if err != nil {
		return err
	}
	for g, c := range ended {
		w := g.window
		w.End, w.Last = end, last
		w.Cut = r.aligned && !last && float64(end-w.Start)*tolerance < float64(g.length) // it began between two window ends that hosts share
		w.Stretched = g.length > 0 && float64(end-r.detaching-w.Start) > tolerance*float64(g.length)
		c.window = w
		g.window, g.counts = report.Window{Start: end, Number: w.Number + 1}, loader.Counts{}
	}
	lines, err := r.lines(members, func(m *member) closed { return *ended[m.group] })
	clear(r.lost)
	for _, line := range lines {
		if e := r.cfg.Emit(line); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// flip closes the banks of groups, and returns them with the packet counts of their windows.
func (r *runner) flip(due []*group) (map[*group]*closed, error) {
	numbers := make([]int, len(due))
	for i, g := range due {
		numbers[i] = g.number
	}
	banks, err := r.inst.Control().FlipGroups(numbers...)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(numbers, 0); i >= 0 {
		counts, err := r.inst.Counts(banks[i])
		if err != nil {
			return nil, err
		}
		r.seen, r.cut = r.seen+counts.Seen, r.cut+counts.Reasons["truncated"]
		for _, g := range r.groups {
			g.counts = g.counts.Plus(counts)
		}
	}
	ended := map[*group]*closed{}
	for i, g := range due {
		ended[g] = &closed{bank: banks[i], counts: g.counts}
	}
	return ended, nil
}

// soFar is the present window of a group, cut short now.
func (r *runner) soFar(g *group, now int64, counts loader.Counts) closed {
	w := g.window
	w.End, w.Last, w.Cut = now, true, true
	return closed{w, r.inst.Control().BankOf(g.number), g.counts.Plus(counts)}
}

// Describe sets the algorithms of a run's description, and the length of its windows: of algorithms that set none, or the shortest.
func Describe(run *report.Run, algorithms []Selected, window time.Duration) {
	run.WindowNS = shortestOf(algorithms, window)
	for _, s := range algorithms {
		run.Algorithms = append(run.Algorithms, report.RunAlgorithm{Name: s.Descriptor.Name, Params: s.Values.Map(), WindowNS: s.Window})
		if s.Window == 0 {
			run.WindowNS = int64(window)
		}
	}
}
