package main

import (
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/progress"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// progress shows how far the run is when a person looks at stderr; nil when nobody does.
func (m *measurement) progress() func(session.Progress) {
	line := m.progressLine()
	if line == nil {
		return nil
	}
	return line.Update
}

func (m *measurement) progressLine() *progress.Line {
	if !m.env.isTerminal(m.env.stderr) || m.env.getenv("TERM") == "dumb" {
		return nil
	}
	width, _ := m.env.size()
	line := progress.New(m.env.stderr, m.env.now, width)
	m.drawer.Clearing(line.Clear)
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
			line.Show(text)
		case !said:
			said = true
			m.notice("%s", text)
		}
	}
}
