package main

import (
	"fmt"
	"time"

	"github.com/xdpmon/xdpmon/cmd/xdpmon/internal/progress"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// progress shows the progress of the run if stderr is a terminal; otherwise it is nil.
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

// silence is how long a start may last without output.
const silence = time.Second

// loading reports the progress of a start that takes longer than silence: in a line that is redrawn if stderr is a terminal, otherwise in one
// notice.
func (m *measurement) loading() func(what string, n, of int) {
	begun, line, noticed := m.env.now(), m.progressLine(), false
	return func(what string, n, of int) {
		if m.measuring() || m.env.now().Sub(begun) < silence {
			return
		}
		text := fmt.Sprintf("proving and loading %s, %d of %d", what, n, of)
		switch {
		case line != nil:
			line.Show(text)
		case !noticed:
			noticed = true
			m.notice("%s", text)
		}
	}
}
