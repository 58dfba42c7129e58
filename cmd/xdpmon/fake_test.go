package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/draw"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// Two algorithms that exist in this test only: verbs must not know any by name.
func init() {
	algo.Register(&algo.Descriptor{
		Name: "test-delay", Summary: "delays of the test", Paper: "none", Doc: "First paragraph.\n\nSecond paragraph.",
		Params: []algo.Param{
			{Key: "entries", Type: algo.Int, Default: "4096", Min: "16", Max: "65536", Help: "entries of the table"},
			{Key: "match", Type: algo.Enum, Default: "tcp", Choices: []string{"tcp", "dns"}, Help: "what is matched"},
			{Key: "share", Type: algo.Float, Default: "1/4", Help: "share of requests"},
		},
		Spec:     func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil },
		Config:   algo.Typed(newFakeDelay),
		PlanFrom: algo.PlanArgs{MemoryBytes: 32 << 10},
	})
	algo.Register(&algo.Descriptor{
		Name: "test-flows", Summary: "flows of the test",
		Spec: func() (*ebpf.CollectionSpec, error) { return &ebpf.CollectionSpec{}, nil }, Config: algo.Typed(newFake),
	})
}

// fakeConfig refuses one value that only the algorithm can judge.
type fakeConfig struct{ values algo.Values }

func newFake(v algo.Values, _ algo.Setup) (fakeConfig, error) {
	if v.Map()["entries"] == int64(17) {
		return fakeConfig{}, v.Error("entries", "a power of two is needed")
	}
	return fakeConfig{v}, nil
}

func (fakeConfig) New(algo.Env) (algo.Instance, error) { return fakeInstance{}, nil }
func (fakeConfig) Report(*snapshot.Snapshot) (algo.Result, error) {
	return algo.Result{}, errors.New("a fake reports nothing")
}

// fakeDelay can be planned and has a twin, too.
type fakeDelay struct{ fakeConfig }

func newFakeDelay(v algo.Values, s algo.Setup) (fakeDelay, error) {
	c, err := newFake(v, s)
	return fakeDelay{c}, err
}

func (fakeDelay) Plan(a algo.PlanArgs) (*report.Body, error) {
	if a.MemoryBytes < 1024 {
		return nil, errors.New("memory of 1 KiB or more is needed")
	}
	return &report.Body{Values: []report.Value{{Name: "entries", Value: a.MemoryBytes / 16, Unit: report.Count},
		{Name: "rate", Value: a.RatePerSecond, Unit: report.PerSecond}, {Name: "max_delay_ns", Value: a.MaxDelayNS, Unit: report.Nanosecond}}}, nil
}

func (c fakeDelay) P4() (map[string]string, error) {
	return map[string]string{"params": "#define ENTRIES " + c.values.Text("entries") + "\n"}, nil
}

type fakeInstance struct{}

func (fakeInstance) Configure(*ebpf.CollectionSpec) error { return nil }
func (fakeInstance) Needs() maps.Need                     { return 0 }
func (fakeInstance) Bind(*maps.Set) error                 { return nil }
func (fakeInstance) Read(w report.Window, _ int) (*snapshot.Snapshot, error) {
	return snapshot.New(snapshot.Head{}, w), nil
}

// buffer can be read by a test while a verb writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// world is an environment whose every side a test can see.
type world struct {
	environment
	out, err buffer
	signal   chan os.Signal
	exited   chan int
	graceful chan time.Time // lets the time end in which signals count as one
	patient  chan time.Time // lets the time end that a reader who does not read is given
	terminal map[any]bool
	vars     map[string]string
}

var testEpoch = time.Unix(1_700_000_000, 0)

func newWorld() *world {
	w := &world{signal: make(chan os.Signal, 2), exited: make(chan int, 1), graceful: make(chan time.Time, 1), patient: make(chan time.Time, 1), terminal: map[any]bool{}, vars: map[string]string{"TERM": "xterm", "LANG": "C.UTF-8"}}
	w.environment = environment{
		stdin: strings.NewReader(""), stdout: &w.out, stderr: &w.err,
		getenv: func(name string) string { return w.vars[name] }, isTerminal: func(s any) bool { return w.terminal[s] },
		size: func() (int, int) { return 80, 24 }, now: func() time.Time { return testEpoch }, monotonic: func() int64 { return 1e9 },
		after: func(d time.Duration) <-chan time.Time {
			if d == draw.Patience {
				return w.patient
			}
			return w.graceful
		},
		signals: func() (<-chan os.Signal, func()) { return w.signal, func() {} },
		exit:    func(code int) { w.exited <- code }, kernel: "6.18.0-test",
		engine: engine{privilege: func() error { return nil }, settle: func() error { return nil }},
	}
	return w
}

// run executes a command line.
func (w *world) run(line ...string) int {
	w.args = line
	return run(w.environment)
}

func testLine(name string, number int) report.Line {
	return report.Line{Algorithm: name, Identity: report.Identity{Instance: "eth0"}, Window: report.Window{Start: 1e9, End: 11e9, Number: number},
		Packets: report.Packets{Seen: 1000, Parsed: 990, Used: 400}, Lost: map[string]uint64{"evicted": 2},
		Report: report.Body{Values: []report.Value{{Name: "matched", Value: uint64(150), Unit: report.Count, Kind: report.Counter}}}}
}

// emitting is an engine that reports some windows and then waits for the end of its context.
func (w *world) emitting(windows int, wait bool) {
	produce := func(ctx context.Context, cfg session.Config) error {
		cfg.Notice("hook tc was chosen on %s", "eth0")
		for i := range windows {
			for _, a := range cfg.Algorithms {
				if err := cfg.Emit(testLine(a.Descriptor.Name, i)); err != nil {
					return err
				}
			}
		}
		if wait {
			<-ctx.Done()
		}
		return nil
	}
	w.engine.live = func(ctx context.Context, cfg session.LiveConfig) error { return produce(ctx, cfg.Config) }
	w.engine.replay = func(ctx context.Context, cfg session.Config, files []string, stdin io.Reader, progress func(session.Progress)) error {
		if progress != nil {
			progress(session.Progress{Packets: 1000, Bytes: 50, TotalBytes: 100, Elapsed: time.Second, Rate: 1000})
		}
		return produce(ctx, cfg)
	}
}

// patience is for what happens soon, on however busy a machine: only what never happens takes so long.
const patience = time.Minute

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not happen within %v", what, patience)
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}
