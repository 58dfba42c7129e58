package diagnose

import (
	"slices"

	"github.com/xdpmon/xdpmon/userspace/finding"
)

// Bounds of the wait for a late window of a round.
const (
	// holding is how long after the end of a round the next windows may end and still wait for it, in shortest windows: the next one waits, the
	// one after it does not.
	holding = 1.5
	// maxHeld bounds the windows that wait: one of each source is usual.
	maxHeld = 4096
	// sameEnd is how much later than the others of its round a window ends at most, in shortest windows. One that ends later is of the next round: its
	// source has none for this one, because it was not read in time and its next window was longer. Without this bound a round would contain the
	// next window of that source, and would wait for it, from then on.
	// Less would close rounds without windows that are only read late by a part of their length.
	sameEnd = .8
)

// admit adds a window to its round. On a busy machine a source may deliver its next window before another has delivered the present one: the
// early window is held until the late one arrives, or until the wait exceeds its bounds. Windows in time are never held.
func (e *Engine) admit(w Window) (changed []finding.Finding) {
	for {
		switch {
		case !e.early(w.Source):
			if len(e.sources) > 0 && e.skipped(w) {
				changed = append(changed, e.giveUp()...)
				continue
			}
			changed = append(changed, e.add(w)...)
			return append(changed, e.release()...)
		case e.complete():
			changed = append(changed, e.close()...)
			changed = append(changed, e.release()...)
		case len(e.held) < maxHeld && !e.holds(w.Source) && float64(w.End+e.offset-e.end) < holding*float64(e.shortest()):
			e.held = append(e.held, w)
			return changed
		default:
			changed = append(changed, e.giveUp()...)
		}
	}
}

// holds reports whether a window of a source is held. Its next one ends the wait whatever their times are: a source may be behind the others by any time,
// as captures are that are read one after the other.
func (e *Engine) holds(source string) bool {
	return slices.ContainsFunc(e.held, func(h Window) bool { return h.Source == source })
}

// early reports whether a source has a window in the present round, or one that is held.
func (e *Engine) early(source string) bool {
	return e.sources[source] || e.holds(source)
}

// skipped reports whether a window is of a later round: its source has none for the present one.
func (e *Engine) skipped(w Window) bool {
	length := float64(e.shortest())
	if len(e.held) > 0 && float64(e.held[0].End-w.End) < (1-sameEnd)*length {
		return true
	}
	return float64(w.End+e.offset-e.end) > sameEnd*length && slices.Contains(e.lacking(), w.Source)
}

// giveUp closes the present round without the windows that it lacks, and adds those that were held for it.
func (e *Engine) giveUp() []finding.Finding {
	e.partial++
	changed := e.close()
	return append(changed, e.release()...)
}

// release adds held windows to the present round, those of each source in their order, as far as the round has none of their source.
func (e *Engine) release() (changed []finding.Finding) {
	for {
		at := slices.IndexFunc(e.held, func(h Window) bool { return !e.sources[h.Source] })
		if at < 0 {
			return changed
		}
		w := e.held[at]
		e.held = slices.Delete(e.held, at, at+1)
		changed = append(changed, e.add(w)...)
	}
}
