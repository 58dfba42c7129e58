// Package progress is a progress line on a terminal.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Line is one line on a terminal that shows progress.
type Line struct {
	out   io.Writer
	now   func() time.Time
	width int

	mu    sync.Mutex
	shown time.Time
	dirty bool
}

const every = 100 * time.Millisecond

// New is a line on out, which is width characters wide.
func New(out io.Writer, now func() time.Time, width int) *Line {
	return &Line{out: out, now: now, width: width}
}

// Update sets the progress of a run.
func (l *Line) Update(at session.Progress) { l.Show(text(at)) }

// Show redraws the line, at most ten times a second.
func (l *Line) Show(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Sub(l.shown) < every {
		return
	}
	l.shown, l.dirty = now, true
	text := []rune(line)
	fmt.Fprintf(l.out, "\r%s\x1b[K", string(text[:min(len(text), l.width-1)]))
}

// Clear erases the line, so that other output can take its place.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirty {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.dirty = false
	}
}

func text(at session.Progress) string {
	text := fmt.Sprintf("%s packets, %s", report.Human(at.Packets, report.PacketUnit), report.Human(at.Rate, report.PerSecond))
	if at.TotalBytes <= 0 {
		return fmt.Sprintf("%s read, %s", report.Human(at.Bytes, report.Bytes), text)
	}
	const width = 20
	share := min(1, float64(at.Bytes)/float64(at.TotalBytes))
	full := int(width * share)
	text = fmt.Sprintf("[%s%s] %3.0f %%, %s", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share, text)
	if share > 0.01 {
		left := time.Duration(float64(at.Elapsed) * (1 - share) / share)
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}
