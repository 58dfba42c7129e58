// Command record runs a program in a terminal of its own and draws what the terminal showed as one animated SVG: pictures of docs without an outside service.
//
//	PATH=$PWD/bin:$PATH lab/run record -o docs/demo.svg -for 40s -- xdpmon demo --duration 24s
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
)

var (
	columns = flag.Int("columns", 100, "width of the terminal")
	rows    = flag.Int("rows", 30, "height of the terminal")
	took    = flag.Duration("for", 40*time.Second, "end the program with an interrupt after this time")
	every   = flag.Duration("every", 100*time.Millisecond, "time between two looks at the screen, where it has changed")
	last    = flag.Duration("last", 6*time.Second, "how long the last frame stays")
	out     = flag.String("o", "session.svg", "the picture")
	still   = flag.Bool("still", false, "the last full screen alone, without an animation")
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("record: ")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("name the program to run after --")
	}
	frames, err := record(flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	if *still {
		frames = frames[len(frames)-1:]
	}
	if err := os.WriteFile(*out, []byte(draw("$ "+strings.Join(flag.Args(), " "), frames, *columns, *last)), 0o644); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d frames", *out, len(frames))
}

// frame is a screen that was there for a while.
type frame struct {
	at    time.Duration // since the first one
	lines []string
}

// pseudoTerminal returns both ends of a terminal of a size.
func pseudoTerminal(width, height int) (master, terminal *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return master, terminal, nil
}

// screen is an emulated terminal that is written and looked at.
type screen struct {
	mu  sync.Mutex
	emu *vt.Emulator
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.emu.Write(b)
}

func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]string, *rows)
	for y := range list {
		var line strings.Builder
		for x := 0; x < *columns; x++ {
			c := s.emu.CellAt(x, y)
			if c == nil || c.Content == "" {
				line.WriteByte(' ')
				continue
			}
			line.WriteString(c.Content)
			x += max(0, c.Width-1)
		}
		list[y] = strings.TrimRight(line.String(), " ")
	}
	return list
}

// record runs a program until it ends or its time is over.
func record(command []string) (frames []frame, err error) {
	master, terminal, err := pseudoTerminal(*columns, *rows)
	if err != nil {
		return nil, err
	}
	defer master.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		terminal.Close()
		return nil, err
	}
	terminal.Close()
	s := &screen{emu: vt.NewEmulator(*columns, *rows)}
	go answer(s.emu, master)
	written := make(chan error, 1)
	go func() { written <- copyUntilClosed(s, master) }()
	frames = s.watch(cmd, written)
	return frames, ended(cmd.Wait())
}

// ended: a program that was interrupted, or that found something (exit code 4), has shown what it should.
func ended(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 4 {
		return nil
	}
	return err
}

// answer gives the program what a terminal answers by itself.
func answer(emu *vt.Emulator, master *os.File) {
	var b [256]byte
	for {
		n, err := emu.Read(b[:])
		if err != nil {
			return
		}
		if _, err := master.Write(b[:n]); err != nil {
			return
		}
	}
}

// copyUntilClosed returns when nobody has the terminal open any more, which Linux reports as EIO.
func copyUntilClosed(s *screen, master *os.File) error {
	var b [1 << 15]byte
	for {
		n, err := master.Read(b[:])
		if _, err := s.Write(b[:n]); err != nil {
			return err
		}
		if errors.Is(err, unix.EIO) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// watch keeps each screen that differs from the one before it.
func (s *screen) watch(cmd *exec.Cmd, written <-chan error) (frames []frame) {
	tick := time.NewTicker(*every)
	defer tick.Stop()
	over := time.After(*took)
	began := time.Now()
	keep := func() {
		lines := s.lines()
		if strings.Join(lines, "") == "" || len(frames) > 0 && strings.Join(lines, "\n") == strings.Join(frames[len(frames)-1].lines, "\n") {
			return
		}
		if frames == nil {
			began = time.Now()
		}
		frames = append(frames, frame{time.Since(began), lines})
	}
	for {
		select {
		case <-tick.C:
			keep()
		case <-over:
			_ = cmd.Process.Signal(os.Interrupt)
		case <-written:
			keep()
			return frames
		}
	}
}
