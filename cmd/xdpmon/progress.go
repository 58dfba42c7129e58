package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// progressLine is one line on a terminal that says how far something is.
type progressLine struct {
	out   io.Writer
	now   func() time.Time
	width int

	mu    sync.Mutex
	shown time.Time
	dirty bool
}

const progressEvery = 100 * time.Millisecond

func (p *progressLine) update(at session.Progress) { p.show(progressText(at)) }

// show draws the line anew, at most ten times a second.
func (p *progressLine) show(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown, p.dirty = now, true
	text := []rune(line)
	fmt.Fprintf(p.out, "\r%s\x1b[K", string(text[:min(len(text), p.width-1)]))
}

// clear takes the line away, so that something else can be written there.
func (p *progressLine) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dirty {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.dirty = false
	}
}

func progressText(at session.Progress) string {
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

// progress shows how far the run is when a person looks at stderr; nil when nobody does.
func (m *measurement) progress() func(session.Progress) {
	line := m.progressLine()
	if line == nil {
		return nil
	}
	return line.update
}

func (m *measurement) progressLine() *progressLine {
	if !m.env.isTerminal(m.env.stderr) || m.env.getenv("TERM") == "dumb" {
		return nil
	}
	width, _ := m.env.size()
	line := &progressLine{out: m.env.stderr, now: m.env.now, width: width}
	m.drawer.Clearing(line.clear)
	return line
}

// silence is how long a start may last without a word.
const silence = time.Second

// loading says what a start is at when it takes longer than that: in one line that is drawn anew where a person looks at stderr, in one
// notice elsewhere.
func (m *measurement) loading() func(what string, n, of int) {
	begun, line, said := m.env.now(), m.progressLine(), false
	return func(what string, n, of int) {
		if m.measuring() || m.env.now().Sub(begun) < silence {
			return
		}
		text := fmt.Sprintf("proving and loading %s, %d of %d", what, n, of)
		switch {
		case line != nil:
			line.show(text)
		case !said:
			said = true
			m.notice("%s", text)
		}
	}
}
