package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/stage"
)

// found is a finding as `xdpmon check` prints it, as far as it is judged.
type found struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Subject  struct {
		Name string `json:"name"`
	} `json:"subject"`
	Since   int64    `json:"since"`
	High    *float64 `json:"expected_high"`
	Windows int      `json:"windows"`
	Text    string   `json:"text"`

	at   time.Time // when it was read
	line string
}

// answer is all that xdpmon printed of an incident.
type answer struct {
	began, summary []found // as they began; at the end, worst first
	unable         []string
	code           int
	complaints     string
	windows        *flips // of a live run
	started        func() // called when measuring begins
}

// Exit codes of check.
const (
	nothingFound   = 0
	somethingFound = 4
)

// checkLive runs xdpmon beside an incident.
func checkLive(binary string, t timing, a *answer) watcher {
	return func(ctx context.Context, w *world, s *staged, started func()) error {
		args := append([]string{"check", stage.Out, "--output", "json", "--window", t.window.String(), "--for", (t.calm + t.lasting).String()}, s.args...)
		cmd := exec.CommandContext(ctx, binary, args...)
		w.pause = func(ctx context.Context, d time.Duration) {
			_ = cmd.Process.Signal(unix.SIGSTOP)
			time.AfterFunc(d, func() { _ = cmd.Process.Signal(unix.SIGCONT) })
		}
		a.started = started
		watching, end := context.WithCancel(ctx)
		defer end()
		return a.run(cmd, func(cmd *exec.Cmd) error {
			if err := w.stage.Device.Start(cmd); err != nil {
				return err
			}
			a.windows = watchFlips(watching, cmd.Process.Pid)
			return nil
		})
	}
}

// checkCapture runs xdpmon on a capture.
func checkCapture(ctx context.Context, binary, path string, t timing, s *staged) (a answer, err error) {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "5", binary, "check", path, "--output", "json", "--window", t.window.String()}, s.args...)...)
	err = a.run(cmd, (*exec.Cmd).Start)
	return a, err
}

func (a *answer) run(cmd *exec.Cmd, start func(*exec.Cmd) error) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	printed, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := start(cmd); err != nil {
		return fmt.Errorf("start xdpmon: %w", err)
	}
	var reading sync.WaitGroup
	var failed error
	reading.Go(func() { failed = a.read(out) })
	reading.Go(func() { a.listen(printed) })
	reading.Wait()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		a.code, err = exit.ExitCode(), nil
	}
	if a.code != nothingFound && a.code != somethingFound {
		err = fmt.Errorf("xdpmon check ends with %d: %s", a.code, a.complaints)
	}
	return errors.Join(err, failed)
}

// begins is what xdpmon says when all of its programs are attached, which takes seconds on a busy machine.
const begins = "measuring "

// listen reads what xdpmon says to people.
func (a *answer) listen(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		a.complaints += lines.Text() + "\n"
		if a.started != nil && strings.Contains(lines.Text(), begins) {
			a.started()
		}
	}
}

// read takes findings as they are printed; other objects (the run, what is idle) are not judged.
func (a *answer) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var l struct {
			Finding *found `json:"finding"`
			Summary *struct {
				Found  []found           `json:"found"`
				Unable []json.RawMessage `json:"unable"`
			} `json:"summary"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("read what xdpmon prints: %w: %q", err, lines.Text())
		}
		if l.Summary != nil {
			a.summary = l.Summary.Found
			for _, u := range l.Summary.Unable {
				a.unable = append(a.unable, string(u))
			}
		}
		if l.Finding != nil && l.Finding.State == "begins" {
			l.Finding.at, l.Finding.line = time.Now(), lines.Text()
			a.began = append(a.began, *l.Finding)
		}
	}
	return lines.Err()
}
