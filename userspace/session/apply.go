package session

import (
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

// Target is what a session can be changed to while it runs.
type Target struct {
	Algorithms []Selected
	Interfaces []string
	Window     time.Duration // 0: as it is
}

// Apply changes the session to a target, while traffic flows: what both have stays as it is, with its registers; an algorithm whose
// values differ is replaced; interfaces come and go. An algorithm that goes reports what it has as its last window, cut short, and
// one that comes begins in the middle of one. Another length of windows replaces all algorithms, and the window ends there. Either all of the algorithms change or none; an interface that cannot be attached
// to leaves everything as it was.
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

// exchange puts another chain in the place of the session's, if it is another.
func (s *Session) exchange(t Target) error {
	r := s.run
	resized := t.Window != 0 && t.Window != r.cfg.Window
	if resized {
		before := r.cfg.Window
		r.cfg.Window = t.Window
		if err := s.exchangeFor(t.Algorithms, true); err != nil {
			r.cfg.Window = before
			return err
		}
		s.cfg.Window = t.Window
		return nil
	}
	return s.exchangeFor(t.Algorithms, false)
}

// exchangeFor is exchange; anew keeps no algorithm as it is.
func (s *Session) exchangeFor(selected []Selected, anew bool) error {
	r := s.run
	next, objects, err := r.plan(selected, anew)
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
	return s.commit(x, next, anew)
}

// commit makes the exchange, and reports the windows that end with it; anew begins a window with it.
func (s *Session) commit(x *loader.Exchange, next []*member, anew bool) error {
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
			m.since, m.before = now, counts
			r.begin(m)
		}
	}
	retired := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return slices.Contains(next, m) })
	r.members = next
	w := r.window
	w.End, w.Last, w.Cut = now, true, true
	lines, err := r.lines(retired, w, r.inst.Control().Bank(), counts)
	if s.pin != nil {
		s.pin.Describe(objectsOf(next))
		err = errors.Join(err, s.manager.Commit())
	}
	if anew {
		r.window = report.Window{Start: now, Number: w.Number + 1}
	}
	for _, m := range retired {
		r.end(m)
	}
	for _, l := range lines {
		err = errors.Join(err, r.cfg.Emit(l))
	}
	return errors.Join(err, x.Close())
}

// plan finds the members that a selection keeps, and configures those that are new.
func (r *runner) plan(selected []Selected, anew bool) (next []*member, objects []loader.Object, err error) {
	for _, s := range selected {
		m := r.same(s)
		if m == nil || anew {
			if m, err = r.cfg.member(s, false); err != nil {
				return nil, nil, fmt.Errorf("configure %s: %w", s.Descriptor.Name, err)
			}
		}
		next, objects = append(next, m), append(objects, m.object)
	}
	return next, objects, nil
}

// same finds the member that runs an algorithm with these very values.
func (r *runner) same(s Selected) *member {
	for _, m := range r.members {
		if m.selected.Descriptor == s.Descriptor && equal(m.selected.Values, s.Values) {
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

// started is the window as a member saw it: one that came in the middle saw the rest of it.
func (m *member) started(w report.Window) report.Window {
	if m.since > w.Start {
		w.Start, w.Cut = m.since, true
	}
	return w
}
