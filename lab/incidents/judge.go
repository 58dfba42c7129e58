package main

import (
	"slices"
	"time"
)

// judged is what became of the findings of one run.
type judged struct {
	expected, found, inTime int     // incidents that were staged, of them found at all, and within two windows
	missed                  []want  // not found
	late                    []want  // found later
	wrong                   []found // neither staged nor a consequence
	shown                   int     // of them windows-late that the harness' clock shows as well: true, and not staged
	order                   bool    // of what was expected, in the summary
	code                    bool    // the exit code says whether something was found
}

// clean: nothing was missed, late or wrong.
func (j judged) clean() bool {
	return len(j.missed) == 0 && len(j.late) == 0 && len(j.wrong) == 0 && j.order && j.code
}

// patience is for the end of a window to be read, calculated and printed on a busy machine.
const patience = time.Second

// judgeLive: an incident begins in the middle of a window; it is in time if it is printed at the end of the second window after that one.
func judgeLive(s *staged, a *answer, onset time.Time, window time.Duration) judged {
	deadline := onset.Add(3*window + patience)
	if s.always {
		deadline = time.Now()
	}
	j := judge(s.expect, s.also, a, func(f found) bool { return !f.at.After(deadline) })
	for n := range j.wrong {
		if a.windows != nil && a.windows.show(&j.wrong[n]) {
			j.shown++
		}
	}
	return j
}

// judgeCapture: a capture has no moment at which a finding is printed; what is found in it must be the same.
func judgeCapture(s *staged, f *facts, a *answer) judged {
	return judge(s.inCapture(), s.mayBeCaptured(f), a, func(found) bool { return true })
}

// mayBeCaptured is what may be found in a capture beside what must be.
func (s *staged) mayBeCaptured(f *facts) []want {
	also := slices.Concat(s.also, s.capturedAlso)
	if s.hidden {
		also = append(also, s.expect...)
	}
	if s.argued != nil {
		also = append(also, s.argued(f)...)
	}
	return also
}

func judge(expect, also []want, a *answer, inTime func(found) bool) (j judged) {
	j.expected = len(expect)
	for _, w := range expect {
		first := slices.IndexFunc(a.began, w.is)
		switch {
		case first < 0:
			j.missed = append(j.missed, w)
		case !inTime(a.began[first]):
			j.found++
			j.late = append(j.late, w)
		default:
			j.found, j.inTime = j.found+1, j.inTime+1
		}
	}
	for _, f := range a.began {
		right := func(w want) bool { return w.is(f) }
		if !slices.ContainsFunc(expect, right) && !slices.ContainsFunc(also, right) {
			j.wrong = append(j.wrong, f)
		}
	}
	j.order = ordered(expect, a.summary)
	j.code = (a.code == somethingFound) == (len(a.began) > 0)
	return j
}

func (w want) is(f found) bool { return f.Kind == w.kind && w.subject.right(f.Subject.Name) }

// ordered: what is expected stands in the summary in this order, as far as it is there.
func ordered(expect []want, summary []found) bool {
	last := -1
	for _, w := range expect {
		at := slices.IndexFunc(summary, w.is)
		if at < 0 {
			continue
		}
		if at < last {
			return false
		}
		last = at
	}
	return true
}
