package dropsverb

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/drops"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/loader/privilege"
	"github.com/xdpmon/xdpmon/userspace/report/host"
)

// fakeDrops counts one packet more on every reading.
type fakeDrops struct {
	watched []int
	reads   uint64
	refused error
	closed  bool
}

func (f *fakeDrops) Watch(ifindex int) error {
	f.watched = append(f.watched, ifindex)
	return f.refused
}

func (f *fakeDrops) Read() (map[int][]drops.Count, error) {
	f.reads++
	return map[int][]drops.Count{f.watched[0]: {{Reason: "NO_SOCKET", Packets: f.reads, Bytes: 60 * f.reads}}, 0: {{Reason: "SOCKET_RCVBUFF", Packets: 2 * f.reads}}}, nil
}

func (f *fakeDrops) Sockets() bool { return false }

func (f *fakeDrops) Close() error {
	f.closed = true
	return nil
}

// world is the verb's environment in a test.
type world struct {
	Env
	out, err bytes.Buffer
	signal   chan os.Signal
}

var epoch = time.Unix(1_700_000_000, 0)

func newWorld(f *fakeDrops) *world {
	w := &world{signal: make(chan os.Signal, 1)}
	lines := func(l ...string) error {
		_, err := w.out.WriteString(strings.Join(l, "\n") + "\n")
		return err
	}
	w.Env = Env{Stderr: &w.err, Terminal: func() bool { return false }, Now: func() time.Time { return epoch }, After: time.After, Privilege: func() error { return nil }, Settle: func() error { return nil },
		Signals: func() (<-chan os.Signal, func()) { return w.signal, func() {} }, Open: func(int) (Counter, error) { return f, nil }, PrintLines: lines,
		PrintJSON: func(v any) error {
			text, err := json.Marshal(v)
			return errors.Join(err, lines(string(text)))
		}}
	return w
}

// run executes a command line.
func (w *world) run(args ...string) error {
	cmd := New(w.Env, func(cmd *cobra.Command) *cli.Enum[string] {
		return cli.AddEnum(cmd, "output", "auto", "", "auto", "table", "json")
	})
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return cmd.Execute()
}

func TestDrops(t *testing.T) {
	f := &fakeDrops{}
	w := newWorld(f)
	ticks := make(chan time.Time, 2)
	ticks <- epoch
	ticks <- epoch
	w.After = func(d time.Duration) <-chan time.Time {
		if d == time.Minute {
			return nil
		}
		if len(ticks) == 0 {
			w.signal <- os.Interrupt
			return nil
		}
		return ticks
	}
	if err := w.run("lo", "--for", "1m"); err != nil || !f.closed || !strings.Contains(w.err.String(), "6.11") {
		t.Fatalf("%v, closed %t: %s", err, f.closed, w.err.String())
	}
	lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	var d host.Drops
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if got := d.Interfaces[0]; got.Interface != "lo" || got.Dropped[0].Packets != 1 || got.Dropped[0].Bytes != 60 || got.Dropped[0].PacketsTotal != 4 || d.Unknown[0].Packets != 2 {
		t.Errorf("%+v", d)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		args    string
		lacking error
		refused error
		want    string
	}{
		{"xdpmon-none", nil, nil, "ip link shows"},
		{"lo lo", nil, nil, "given twice"},
		{"--window 1ms", nil, nil, "allowed are"},
		{"--for -1s", nil, nil, "--for"},
		{"lo", privilege.ErrMissing, nil, "drops: "},
		{"lo", nil, errors.New("the table is full"), "table is full"},
	} {
		f := &fakeDrops{refused: c.refused}
		w := newWorld(f)
		w.Privilege = func() error { return c.lacking }
		if err := w.run(strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) || c.refused != nil && !f.closed {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestReasons(t *testing.T) {
	w := newWorld(nil)
	err := w.run("--reasons", "--output", "table")
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.out.String(), "NO_SOCKET") || !strings.Contains(w.out.String(), "ss -lntu") {
		t.Error(w.out.String())
	}
}
