// Package running shows how much of the windows that run is over, for the status line of a live table.
package running

import (
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/plot"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Windows are the running windows of a run's algorithms.
type Windows struct {
	Started time.Time // of the run
	all     []window
}

type window struct {
	algorithm string
	length    time.Duration
	began     time.Time
}

// Add adds an algorithm with the length of its windows.
func (w *Windows) Add(algorithm string, length int64) {
	w.all = append(w.all, window{algorithm, time.Duration(length), w.Started})
}

// Ended notes that a window of an algorithm has ended: its next one runs.
func (w *Windows) Ended(algorithm string, at time.Time) {
	for i := range w.all {
		if w.all[i].algorithm == algorithm {
			w.all[i].began = at
		}
	}
}

// Text is a bar of the shortest windows, and the algorithms with longer ones; "" if all have one window until the end.
func (w *Windows) Text(now time.Time, unicode bool, width int) string {
	var shortest window
	for _, o := range w.all {
		if o.length > 0 && (shortest.length == 0 || o.length < shortest.length || o.length == shortest.length && o.began.After(shortest.began)) {
			shortest = o
		}
	}
	if shortest.length == 0 {
		return ""
	}
	text := "  window " + plot.Bar(unicode, float64(now.Sub(shortest.began))/float64(shortest.length), width) + shortest.part(now)
	for _, o := range w.all {
		if o.length > shortest.length {
			text += ", " + o.algorithm + o.part(now)
		}
	}
	return text
}

func (o window) part(now time.Time) string {
	return fmt.Sprintf(" %s of %s", typeset.Clock(min(o.length, now.Sub(o.began))), typeset.Clock(o.length))
}
