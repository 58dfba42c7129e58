package bytecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	_ "github.com/xdpmon/xdpmon/userspace/beaucoup" // algorithms to replay
	"github.com/xdpmon/xdpmon/userspace/capture"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	_ "github.com/xdpmon/xdpmon/userspace/lean"
	_ "github.com/xdpmon/xdpmon/userspace/precision"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func TestBatches(t *testing.T) {
	for _, n := range []int{1, Room, Room + 1, 3*Room - 1} {
		next := 0
		for _, b := range Batches(n) {
			if b[0] != next || b[1]-b[0] > Room || b[1] <= b[0] {
				t.Errorf("%d: batch %v starts after %d", n, b, next)
			}
			next = b[1]
		}
		if next != n {
			t.Errorf("%d: batches end at %d", n, next)
		}
	}
}

func TestParallel(t *testing.T) {
	var sum atomic.Int64
	err := Parallel(t.Context(), 100, func(_ context.Context, i int) error {
		sum.Add(int64(i))
		return nil
	})
	if err != nil || sum.Load() != 4950 {
		t.Errorf("tasks add up to %d, error %v", sum.Load(), err)
	}
	broken := errors.New("broken")
	err = Parallel(t.Context(), 1000, func(_ context.Context, i int) error {
		if i == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error of a task: %v", err)
	}
}

// The same algorithm several times in one chain: each has its own registers and parameters, and its report is that of
// the algorithm alone.
func TestReplay(t *testing.T) {
	testutil.NeedRoot(t)
	run := func(layouts ...string) []string {
		m, err := traffic.NewLogUniform(traffic.LogUniformOptions{Requests: 20_000, Max: 1e7})
		if err != nil {
			t.Fatal(err)
		}
		var configs []Config
		for _, l := range layouts {
			configs = append(configs, Config{"fridge", map[string]string{"fridges": l}})
		}
		lines, err := Replay(t.Context(), traffic.Frames(m), 7, configs)
		if err != nil {
			t.Fatal(err)
		}
		var answers []string
		for _, l := range lines {
			d, err := Distribution(l, "delay_ns")
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, fmt.Sprint(d.Count, d.At(0.5)))
		}
		return answers
	}
	together, alone := run("1024@1", "4096@1/2", "1024@1"), run("4096@1/2")
	if together[0] != together[2] || together[1] != alone[0] || together[0] == together[1] {
		t.Errorf("together %v, alone %v", together, alone)
	}
}

// Programs that are loaded once report the same for every stream as when they are loaded for it: windows, second passes and what is
// matched across windows included, and numbers of packets; on whichever core.
func TestRepeated(t *testing.T) {
	testutil.NeedRoot(t)
	configs := []Config{{"fridge", map[string]string{"fridges": "1024@1/2"}}, {"lean", nil}, {"precision", map[string]string{"entries": "256", "passes": "20"}},
		{"beaucoup", map[string]string{"queries": "p: count distinct timestamp by src > 20 in 10s"}}}
	open := func(seed uint64) capture.Source {
		m, err := traffic.NewLean(traffic.LeanOptions{Packets: 5_000, Flows: 300, Heavy: 20, Victims: 10, Span: 10 * time.Second,
			Delay: 50 * time.Millisecond, Loss: 0.04, Late: 0.04, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return traffic.Frames(m)
	}
	answers := func(lines []report.Line, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(lines)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	on := func(core int) {
		t.Helper()
		var one unix.CPUSet
		one.Set(core)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Fatal(err)
		}
	}
	list, err := cores()
	if err != nil {
		t.Fatal(err)
	}
	on(list[len(list)-1])
	cfg := session.Config{Window: 3 * time.Second, Truth: true, Proven: true}
	r, err := NewRepeated(t.Context(), cfg, configs)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	answers(r.Replay(t.Context(), 7, open(7)))
	again := answers(r.Replay(t.Context(), 8, open(8)))
	cfg.Seed = 8
	on(list[0])
	if fresh := answers(ReplayWith(t.Context(), open(8), cfg, configs)); !bytes.Equal(fresh, again) {
		t.Errorf("loaded once\n%s\nloaded for it\n%s", again, fresh)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Replay(t.Context(), nil, 1, []Config{{Algorithm: "no-such"}}); err == nil {
		t.Error("an unknown algorithm was replayed")
	}
}
