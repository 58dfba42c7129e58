package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Target is the configuration that a running session is changed to.
type Target struct {
	Algorithms []Selected
	Interfaces []string
	Window     time.Duration // of algorithms that set none; 0: unchanged
}

// Apply changes the session to a target, while traffic flows. Algorithms and interfaces in both configurations are kept, with their registers; an
// algorithm whose values differ is replaced; interfaces are attached and detached. A removed algorithm reports its last window, cut short; an added
// one starts in the middle of a window. Another length of the shortest windows replaces all algorithms and ends the running windows; another
// length of an algorithm's own replaces that one. Either all algorithms change or
// none; if an interface cannot be attached, nothing changes.
func (s *Session) Apply(ctx context.Context, t Target) error {
	return s.call(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		gone := without(s.cfg.Interfaces, t.Interfaces)
		fresh := without(t.Interfaces, s.cfg.Interfaces)
		if err := s.manager.Attach(fresh...); err != nil {
			return err
		}
		if err := s.exchange(t); err != nil {
			return errors.Join(err, s.manager.Detach(fresh...))
		}
		for _, name := range fresh {
			s.cfg.Changed(name, true)
		}
		err := s.manager.Detach(gone...)
		for _, name := range gone {
			s.cfg.Changed(name, false)
		}
		s.cfg.Interfaces, s.cfg.Algorithms = slices.Clone(t.Interfaces), slices.Clone(t.Algorithms)
		s.run.who = s.cfg.identity()
		return err
	})
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return slices.Contains(other, x) })
}

// exchange replaces the session's chain, if the target's differs.
func (s *Session) exchange(t Target) error {
	r := s.run
	before, groups := r.cfg.Window, slices.Clone(r.groups)
	r.cfg.Window = cmp.Or(t.Window, before)
	err := CheckWindows(t.Algorithms, r.cfg.Window)
	if err == nil {
		resized := len(t.Algorithms) > 0 && shortestOf(t.Algorithms, r.cfg.Window) != r.base().length
		err = s.exchangeFor(t.Algorithms, resized)
	}
	if err != nil {
		r.cfg.Window, r.groups = before, groups
		return err
	}
	s.cfg.Window = r.cfg.Window
	return nil
}

// exchangeFor is exchange; with all, every algorithm is replaced.
func (s *Session) exchangeFor(selected []Selected, all bool) error {
	r, was := s.run, s.run.base()
	if all {
		if err := r.regroup(selected); err != nil {
			return err
		}
	}
	next, objects, err := r.plan(selected, all)
	if err != nil {
		return err
	}
	if slices.Equal(next, r.members) {
		return nil
	}
	x, err := r.inst.Prepare(objects)
	if err != nil {
		return err
	}
	for _, m := range next {
		if slices.Contains(r.members, m) {
			continue
		}
		if err := r.bindFrom(x.Set, m); err != nil {
			return errors.Join(fmt.Errorf("start %s: %w", m.selected.Descriptor.Name, err), x.Close())
		}
	}
	return s.commit(x, next, all, was.window.Number)
}

// commit makes the exchange, and reports the windows that end with it; with all, new windows begin, after
// that of number.
func (s *Session) commit(x *loader.Exchange, next []*member, all bool, number int) error {
	r := s.run
	if err := x.Commit(); err != nil {
		return errors.Join(err, x.Close())
	}
	now := hostclock.Now()
	counts, err := r.inst.CountsSoFar()
	if err != nil {
		return errors.Join(err, x.Close())
	}
	for _, m := range next {
		if !slices.Contains(r.members, m) {
			m.since, m.before = now, m.group.counts.Plus(counts)
			r.begin(m)
		}
	}
	retired := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return slices.Contains(next, m) })
	r.members = next
	lines, err := r.lines(retired, func(m *member) closed { return r.soFar(m.group, now, counts) })
	if s.pin != nil {
		s.pin.Describe(objectsOf(next))
		err = errors.Join(err, s.manager.Commit())
	}
	if all {
		for _, g := range r.groups {
			g.window = report.Window{Start: now, Number: number + 1}
		}
		err = errors.Join(err, s.began())
	}
	r.prune()
	for _, m := range retired {
		r.end(m)
	}
	for _, l := range lines {
		err = errors.Join(err, r.cfg.Emit(l))
	}
	return errors.Join(err, x.Close())
}

// plan finds the members of a selection that already run, unless all are to be replaced, and configures the new ones.
func (r *runner) plan(selected []Selected, all bool) (next []*member, objects []loader.Object, err error) {
	for _, s := range selected {
		m := r.same(s)
		if m == nil || all {
			if m, err = r.member(s, false); err != nil {
				return nil, nil, fmt.Errorf("configure %s: %w", s.Descriptor.Name, err)
			}
		}
		next, objects = append(next, m), append(objects, m.object)
	}
	return next, objects, nil
}

// same finds the member that runs an algorithm with equal values.
func (r *runner) same(s Selected) *member {
	for _, m := range r.members {
		if m.selected.Descriptor == s.Descriptor && equal(m.selected.Values, s.Values) && m.group.length == LengthOf(s, r.cfg.Window) {
			return m
		}
	}
	return nil
}

func equal(a, b algo.Values) bool {
	x, y := a.Map(), b.Map()
	if len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if y[k] != v {
			return false
		}
	}
	return true
}

// started is the window as a member measured it: a member that was added within a window measured its remainder.
func (m *member) started(w report.Window) report.Window {
	if m.since > w.Start {
		w.Start, w.Cut = m.since, true
	}
	return w
}
