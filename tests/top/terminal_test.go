// Package top compares the screens of `xdpmon top` with reviewed ones, in an emulated terminal.
package top

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/gdamore/tcell/v2"
	"github.com/gdamore/tcell/v2/terminfo"
	_ "github.com/gdamore/tcell/v2/terminfo/x/xterm"

	top "github.com/xdpmon/xdpmon/userspace/top"
	"github.com/xdpmon/xdpmon/userspace/top/client"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// patience is the timeout of a screen on a busy machine.
const patience = 30 * time.Second

// terminal is an emulated one: output is drawn, typed keys are read.
type terminal struct {
	t      *testing.T
	keys   chan []byte
	closed chan struct{} // nothing is read any more
	drawn  chan struct{}
	end    error
	ended  chan struct{}
	cancel func()

	mu      sync.Mutex
	emu     *vt.Emulator
	resized func()
	raw     bool
	written []byte
}

var errHungUp = errors.New("input/output error")

// open runs a screen of a size.
func open(t *testing.T, target client.Target, width, height int, change func(*top.Options)) *terminal {
	t.Helper()
	tm := &terminal{t: t, keys: make(chan []byte, 64), closed: make(chan struct{}), drawn: make(chan struct{}, 1), ended: make(chan struct{}), emu: vt.NewEmulator(width, height)}
	go io.Copy(io.Discard, tm.emu) //nolint:errcheck // what a terminal answers by itself
	info, err := terminfo.LookupTerminfo("xterm")
	if err != nil {
		t.Fatal(err)
	}
	color := *info
	color.Colors, color.SetFg, color.SetBg, color.SetFgBg = 8, "\x1b[3%p1%dm", "\x1b[4%p1%dm", "\x1b[3%p1%d;4%p2%dm"
	o := top.Options{Target: target, Quit: "quit", Unicode: true, Color: true, Now: func() time.Time { return epoch.Add(windows * 10 * time.Second) }, Tty: tm, Terminfo: &color,
		Drawn: func(*model.Model) {
			select {
			case tm.drawn <- struct{}{}:
			default:
			}
		}}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tm.cancel = cancel
	go func() {
		tm.end = top.Run(ctx, o)
		close(tm.ended)
	}()
	t.Cleanup(func() { cancel(); tm.await(); tm.emu.Close() })
	return tm
}

func (tm *terminal) await() {
	tm.t.Helper()
	select {
	case <-tm.ended:
	case <-time.After(patience):
		tm.t.Errorf("the screen does not end:\n%s", tm.text())
	}
}

// press types: characters, or an escape sequence.
func (tm *terminal) press(keys ...string) {
	for _, k := range keys {
		tm.keys <- []byte(k)
	}
}

const (
	up, down, right, left = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
	enter, tab, escape    = "\r", "\t", "\x1b"
)

// until waits for a screen that has all of these texts.
func (tm *terminal) until(texts ...string) string {
	tm.t.Helper()
	late := time.After(patience)
	for {
		screen, missing := tm.text(), ""
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		select {
		case <-tm.drawn:
		case <-tm.ended:
			tm.t.Fatalf("the screen ended (%v) without %q:\n%s", tm.end, missing, screen)
		case <-late:
			tm.t.Fatalf("no %q on the screen:\n%s", missing, screen)
		}
	}
}

// text is what the terminal shows.
func (tm *terminal) text() string {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	var lines []string
	for y := range tm.emu.Height() {
		var b strings.Builder
		for x := 0; x < tm.emu.Width(); x++ {
			c := tm.emu.CellAt(x, y)
			switch {
			case c == nil || c.Content == "" && c.Width != 0:
				b.WriteByte(' ')
			default:
				b.WriteString(c.Content)
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return strings.Join(lines, "\n") + "\n"
}

// grid is the terminal's cells, row by row.
func (tm *terminal) grid() (rows [][]uv.Cell) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	for y := range tm.emu.Height() {
		row := make([]uv.Cell, tm.emu.Width())
		for x := range row {
			if c := tm.emu.CellAt(x, y); c != nil {
				row[x] = *c
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (tm *terminal) resize(width, height int) {
	tm.mu.Lock()
	tm.emu.Resize(width, height)
	resized := tm.resized
	tm.mu.Unlock()
	resized()
}

// Start, Stop and the others are tcell.Tty.
func (tm *terminal) Start() error { tm.mu.Lock(); defer tm.mu.Unlock(); tm.raw = true; return nil }
func (tm *terminal) Stop() error  { tm.mu.Lock(); defer tm.mu.Unlock(); tm.raw = false; return nil }
func (tm *terminal) Drain() error { tm.keys <- nil; return nil }
func (tm *terminal) Close() error { return nil }

func (tm *terminal) NotifyResize(resized func()) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.resized = resized
}

func (tm *terminal) WindowSize() (tcell.WindowSize, error) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tcell.WindowSize{Width: tm.emu.Width(), Height: tm.emu.Height()}, nil
}

func (tm *terminal) Read(b []byte) (int, error) {
	select {
	case k := <-tm.keys:
		return copy(b, k), nil
	case <-tm.closed:
		return 0, errHungUp
	}
}

func (tm *terminal) Write(b []byte) (int, error) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.written = append(tm.written, b...)
	return tm.emu.Write(b)
}
