package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/running"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// Control sequences that every terminal since the VT220 supports; terminals without synchronised update (2026) ignore it.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, cursor hidden
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	beginFrame  = "\x1b[?2026h\x1b[H"
	endFrame    = "\x1b[J\x1b[H\x1b[?2026l"
	endLine     = "\x1b[K"
)

// ScreenOptions of a live table.
type ScreenOptions struct {
	Out, Notices io.Writer
	Style        Style                      // Width is taken from Size
	Size         func() (width, height int) // called before every frame, to follow a resized terminal
	Now          func() time.Time
	Every        time.Duration // redraw period; 0: 250 ms
	Footer       string        // end of the status line: "Ctrl-C ends"
}

// Screen is a table that redraws in place, on the terminal's alternate screen; Close returns to the normal screen and prints the
// last window of every algorithm there. It is safe for concurrent use.
type Screen struct {
	opt      ScreenOptions
	mu       sync.Mutex
	run      Run
	started  time.Time
	windows  running.Windows
	order    []string
	latest   map[string]Line
	past     map[string]*history
	recent   map[string]recent
	notices  []timedNotice
	findings []Finding // active ones
	shown    string    // the last frame, so that an unchanged one is not sent again
	err      error
	stop     chan struct{}
	done     sync.WaitGroup
	open     bool
}

// NewScreen returns a live table; Start opens it.
func NewScreen(opt ScreenOptions) *Screen {
	if opt.Every == 0 {
		opt.Every = 250 * time.Millisecond
	}
	return &Screen{opt: opt, latest: map[string]Line{}, past: map[string]*history{}, recent: map[string]recent{}, stop: make(chan struct{})}
}

// Start opens the alternate screen and begins to redraw.
func (s *Screen) Start(r Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.started, s.open = r, s.opt.Now(), true
	s.windows = r.running(s.started)
	s.send([]byte(enterScreen))
	s.draw()
	s.done.Add(1)
	go s.redraw()
	return s.err
}

func (s *Screen) redraw() {
	defer s.done.Done()
	tick := time.NewTicker(s.opt.Every)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.mu.Lock()
			s.draw()
			s.mu.Unlock()
		}
	}
}

// Line shows a window in the place of the algorithm's previous one.
func (s *Screen) Line(l Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := l.Algorithm + "\x00" + l.Key()
	if _, ok := s.latest[key]; !ok {
		s.order = append(s.order, key)
		s.past[key], s.recent[key] = &history{}, recent{}
	}
	s.latest[key] = l
	now := s.opt.Now()
	s.windows.Ended(l.Algorithm, now)
	s.past[key].add(&l.Report)
	s.recent[key].add(&l.Report, now)
	s.draw()
	return s.err
}

// Notice shows a sentence above the status line; Close writes all of them to the notices' writer.
func (s *Screen) Notice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		notice(s.opt.Notices, text)
		return
	}
	s.notices = append(s.notices, timedNotice{text, s.opt.Now()})
	s.draw()
}

// Close leaves the alternate screen and prints the last windows on the normal one. A second call does nothing.
func (s *Screen) Close() error {
	s.mu.Lock()
	if !s.open {
		s.mu.Unlock()
		return nil
	}
	s.open = false
	close(s.stop)
	s.send([]byte(leaveScreen))
	s.mu.Unlock()
	s.done.Wait()
	return s.epilogue()
}

// epilogue prints the last windows and notices on the normal screen, to scroll back to.
func (s *Screen) epilogue() error {
	for _, n := range s.notices {
		notice(s.opt.Notices, n.text)
	}
	plain := NewPlain(s.opt.Out, s.opt.Notices, s.style())
	if err := plain.Start(s.run); err != nil {
		return err
	}
	plain.findings = s.findings
	for _, key := range s.order {
		if err := plain.Line(s.line(key)); err != nil {
			return err
		}
	}
	return errors.Join(plain.Close(), s.err)
}

func (s *Screen) style() Style {
	style := s.opt.Style
	style.Width, _ = s.opt.Size()
	return style
}

// draw sends a frame when it differs from the last one. Every line is written over the old one and its rest
// erased; nothing is cleared first, so nothing flickers.
func (s *Screen) draw() {
	if !s.open {
		return
	}
	_, height := s.opt.Size()
	lines := s.frame(max(3, height))
	text := strings.Join(lines, "\n")
	if text == s.shown {
		return
	}
	s.shown = text
	var b bytes.Buffer
	b.WriteString(beginFrame)
	b.WriteString(strings.Join(lines, endLine+"\r\n"))
	b.WriteString(endLine + endFrame)
	s.send(b.Bytes())
}

func (s *Screen) send(b []byte) {
	if _, err := s.opt.Out.Write(b); err != nil && s.err == nil {
		s.err = fmt.Errorf("draw table: %w", err)
	}
}

// timedNotice is a notice and its time.
type timedNotice struct {
	text string
	at   time.Time
}

// screenNotices is how many of the latest notices are shown, and briefNotices for how long on a brief table; all are printed at the end.
const (
	screenNotices = 4
	briefNotices  = 30 * time.Second
)

// frame lays out at most height lines: the blocks, the latest notices, and the status line at the bottom.
func (s *Screen) frame(height int) []string {
	style := s.style()
	foot := append(s.noticeLines(style), s.status(style))
	room := max(0, height-len(foot))
	body := s.blocks(style)
	for _, less := range style.denser() {
		if len(body) <= room {
			break
		}
		body = s.blocks(less)
	}
	if hidden := len(body) - room; hidden > 0 {
		body = body[:max(0, room-1)]
		body = append(body, style.clip(fmt.Sprintf("%d more lines: make the terminal higher, or use --output json", hidden+1), style.width()))
	}
	lines := append(body, foot...)
	return lines[max(0, len(lines)-height):]
}

func (s *Screen) blocks(style Style) []string {
	if style.Brief && len(s.order) > 0 {
		return append(s.run.Text(style)[:1], s.brief(style)...)
	}
	lines := append(s.run.Text(style), s.found(style)...)
	for _, key := range s.order {
		lines = append(lines, style.spaced(Text(s.line(key), s.run, style))...)
		if style.dense == airy {
			lines = append(lines, s.past[key].lines(style)...)
		}
	}
	if len(s.order) == 0 {
		lines = append(lines, "", "the first window is being measured")
	}
	return lines
}

// line is the latest window of an algorithm, with events of earlier windows.
func (s *Screen) line(key string) Line { return s.recent[key].in(s.latest[key], s.opt.Now()) }

// brief are the lines of a brief table: findings first, then answers.
func (s *Screen) brief(style Style) []string {
	lines := make([]Line, 0, len(s.order))
	for _, key := range s.order {
		lines = append(lines, s.line(key))
	}
	return briefBlocks(lines, s.found(style), s.run, style)
}

func (s *Screen) noticeLines(style Style) []string {
	var lines []string
	for _, n := range s.notices[max(0, len(s.notices)-screenNotices):] {
		if style.Brief && s.opt.Now().Sub(n.at) > briefNotices {
			continue
		}
		lines = append(lines, typeset.Wrap("* "+typeset.Printable(n.text), style.width(), 2)...)
	}
	return lines
}

// status is the line with the duration of the run and of its windows.
func (s *Screen) status(style Style) string {
	now := s.opt.Now()
	text := "running for " + typeset.Clock(now.Sub(s.started)) + s.windows.Text(now, style.Unicode, style.width()/4)
	if s.opt.Footer != "" {
		text += "  " + s.opt.Footer
	}
	return style.clip(text, style.width())
}

// Restore restores the terminal without waiting for a lock, for a process that is about to end.
func (s *Screen) Restore() { s.send([]byte(leaveScreen)) }
