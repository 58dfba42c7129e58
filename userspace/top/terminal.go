// Package top shows the data of an API on a terminal, full screen or as lines. It uses only /api/v1, and when idle it waits for the
// API's stream.
package top

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/gdamore/tcell/v2/terminfo"

	"github.com/xdpmon/xdpmon/userspace/top/client"
	"github.com/xdpmon/xdpmon/userspace/top/model"
	"github.com/xdpmon/xdpmon/userspace/top/view"
)

// Options of a screen.
type Options struct {
	Target  client.Target
	Quit    string // label of q in the last line: "quit"
	Unicode bool
	Color   bool
	Now     func() time.Time
	Notices <-chan string   // messages for the operator; nil: none
	Ended   <-chan struct{} // closed when the measurement has ended; nil: never

	Tty      tcell.Tty // nil: standard input and output
	Terminfo *terminfo.Terminfo
	// Drawn is called after each frame, for tests.
	Drawn func(*model.Model)
}

// ErrNoInput is returned if the terminal was closed.
var ErrNoInput = errors.New("the terminal was closed")

// loop is a running screen.
type loop struct {
	o       Options
	screen  tcell.Screen
	m       *model.Model
	client  *client.Client
	fetcher *fetcher
	stream  chan any // client.Event, or error
	failed  chan error
}

// Run shows the screen until q, the end of ctx, or an error. It always restores the terminal before it returns.
func Run(ctx context.Context, o Options) (err error) {
	l := &loop{o: o, m: model.New(o.Target.Name, o.Now), client: client.New(o.Target), stream: make(chan any, 64), failed: make(chan error, 4)}
	if l.screen, err = newScreen(o); err != nil {
		return fmt.Errorf("open the terminal: %w", err)
	}
	if err := l.screen.Init(); err != nil {
		return fmt.Errorf("open the terminal: %w", err)
	}
	defer l.client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer l.screen.Fini()
	defer func() {
		if r := recover(); r != nil {
			err = panicked(r)
		}
	}()
	return l.run(ctx)
}

// panicked is an error with a stack trace: the screen is closed before the error is printed, since it would hide it.
func panicked(r any) error { return fmt.Errorf("internal error: %v\n%s", r, debug.Stack()) }

func newScreen(o Options) (tcell.Screen, error) {
	tty := o.Tty
	if tty == nil {
		var err error
		if tty, err = tcell.NewStdIoTty(); err != nil {
			return nil, err
		}
	}
	return tcell.NewTerminfoScreenFromTtyTerminfo(tty, o.Terminfo)
}

// start runs fn in a goroutine; a panic ends the loop.
func (l *loop) start(fn func()) {
	go func() {
		defer func() {
			if r := recover(); r != nil {
				l.failed <- panicked(r)
			}
		}()
		fn()
	}()
}

func (l *loop) run(ctx context.Context) error {
	l.fetcher = newFetcher(ctx, l)
	keys, stop := make(chan tcell.Event, 16), make(chan struct{})
	defer close(stop)
	l.start(func() { l.screen.ChannelEvents(keys, stop) })
	l.start(func() { follow(ctx, l.client, l.stream, l.o.Ended) })
	ended := l.o.Ended
	l.m.Width, l.m.Height = l.screen.Size()
	l.draw()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.failed:
			return err
		case e, open := <-keys:
			if quit, err := l.key(e, open); quit || err != nil {
				return err
			}
		case e := <-l.stream:
			l.follow(e)
		case a := <-l.fetcher.answers:
			l.fetcher.done()
			if more := l.m.Take(a); more && a.Err == nil {
				l.fetcher.now()
			}
		case <-l.fetcher.timer.C:
			l.fetcher.due()
		case text := <-l.o.Notices:
			l.m.Note(text)
		case <-ended:
			l.m.Ended, ended = true, nil
		}
		l.draw()
	}
}

// key handles an event of the terminal.
func (l *loop) key(e tcell.Event, open bool) (quit bool, err error) {
	switch e := e.(type) {
	case *tcell.EventResize:
		l.m.Width, l.m.Height = l.screen.Size()
		l.screen.Sync()
		l.fetcher.soon() // more instances may be visible
	case *tcell.EventKey:
		switch l.m.Press(keyOf(e)) {
		case model.Quit:
			return true, nil
		case model.Ask:
			l.fetcher.now()
		}
	case *tcell.EventError:
		return true, fmt.Errorf("%w: %w", ErrNoInput, e)
	}
	if !open {
		return true, ErrNoInput
	}
	return false, nil
}

func (l *loop) follow(e any) {
	switch e := e.(type) {
	case error:
		if !l.m.Ended {
			l.m.Lost(e)
		}
	case client.Event:
		switch fetch := l.m.Event(e); {
		case fetch && e.Kind == client.Hello:
			l.fetcher.now()
		case fetch:
			l.fetcher.soon()
		}
	}
}

var names = map[tcell.Key]string{tcell.KeyUp: "Up", tcell.KeyDown: "Down", tcell.KeyLeft: "Left", tcell.KeyRight: "Right", tcell.KeyPgUp: "PageUp", tcell.KeyPgDn: "PageDown",
	tcell.KeyHome: "Home", tcell.KeyEnd: "End", tcell.KeyEnter: "Enter", tcell.KeyEscape: "Escape", tcell.KeyTab: "Tab", tcell.KeyBacktab: "BackTab",
	tcell.KeyBackspace: "Backspace", tcell.KeyBackspace2: "Backspace", tcell.KeyCtrlC: "Interrupt", tcell.KeyF1: "F1"}

func keyOf(e *tcell.EventKey) model.Key {
	if e.Key() == tcell.KeyRune && e.Modifiers()&^tcell.ModShift == 0 {
		return model.Key{Rune: e.Rune()}
	}
	if e.Key() == tcell.KeyF1 {
		return model.Key{Rune: '?'}
	}
	return model.Key{Name: names[e.Key()]}
}

// draw sends the differences to the last frame.
func (l *loop) draw() {
	c := view.Draw(l.m, view.Options{Unicode: l.o.Unicode, Quit: l.o.Quit})
	for y := range c.Height {
		for x := range c.Width {
			if cell := c.At(x, y); cell.Rune != 0 {
				l.screen.SetContent(x, y, cell.Rune, nil, l.style(cell))
			}
		}
	}
	l.screen.Show()
	if l.o.Drawn != nil {
		l.o.Drawn(l.m)
	}
}

// colors are from the sixteen of the terminal's own palette.
var colors = map[view.Style]tcell.Color{view.Good: tcell.ColorGreen, view.Info: tcell.ColorTeal, view.Warning: tcell.ColorOlive, view.Critical: tcell.ColorMaroon, view.Spark: tcell.ColorTeal}

func (l *loop) style(c view.Cell) tcell.Style {
	s := tcell.StyleDefault
	switch c.Style {
	case view.Title:
		s = s.Reverse(true)
	case view.Head:
		s = s.Bold(true).Underline(true)
	case view.Strong, view.Critical, view.Warning:
		s = s.Bold(true)
	case view.Soft:
		s = s.Dim(true)
	}
	if color, ok := colors[c.Style]; ok && l.o.Color {
		s = s.Foreground(color)
	}
	if c.Selected {
		s = s.Reverse(true).Dim(false)
	}
	return s
}
