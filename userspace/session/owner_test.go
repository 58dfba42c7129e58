package session

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// jealous notices when two goroutines touch it at the same time. It has no lock, on purpose.
type jealous struct {
	inside  atomic.Int32
	touched bool
	ticks   atomic.Int64
	fail    error
}

func (j *jealous) touch() {
	if j.inside.Add(1) != 1 {
		j.touched = true
	}
	time.Sleep(200 * time.Microsecond)
	j.inside.Add(-1)
}

func (*jealous) Configure(*ebpf.CollectionSpec) error { return nil }
func (*jealous) Needs() maps.Need                     { return 0 }
func (*jealous) Bind(*maps.Set) error                 { return nil }
func (*jealous) IntervalNS() int64                    { return int64(100 * time.Microsecond) }

func (j *jealous) Read(w report.Window, _ int) (*snapshot.Snapshot, error) {
	j.touch()
	return snapshot.New(snapshot.Head{}, w), nil
}

func nothing(algo.Values, algo.Env, *snapshot.Snapshot) (algo.Result, error) {
	return algo.Result{}, nil
}

func (j *jealous) Tick(int64) error {
	j.touch()
	j.ticks.Add(1)
	return j.fail
}

func memberOf(name string, i algo.Instance) *member {
	return &member{selected: Selected{Descriptor: &algo.Descriptor{Name: name, Report: nothing}}, instance: i}
}

// Ticks and windows of an algorithm never meet, and windows come in the order of the algorithms.
func TestOneOwner(t *testing.T) {
	a, b := &jealous{}, &jealous{}
	r := &runner{members: []*member{memberOf("a", a), memberOf("b", b)}}
	stop, failed := r.own(t.Context())
	for n := 0; n < 200 || a.ticks.Load() < 20 || b.ticks.Load() < 20; n++ {
		lines, err := r.lines(r.members, report.Window{Number: n}, 0, loader.Counts{})
		if err != nil || len(lines) != 2 || lines[0].Algorithm != "a" || lines[1].Algorithm != "b" {
			t.Fatalf("%+v, %v", lines, err)
		}
	}
	stop()
	ticks := a.ticks.Load()
	if lines, err := r.lines(r.members, report.Window{}, 0, loader.Counts{}); err != nil || len(lines) != 2 || a.ticks.Load() != ticks {
		t.Errorf("behind the end: %v, %d ticks more", err, a.ticks.Load()-ticks)
	}
	if a.touched || b.touched {
		t.Error("two goroutines were inside of one algorithm")
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}

// A control loop that fails is reported once, with its name, and the algorithm still tells its last window.
func TestAFailingControlLoop(t *testing.T) {
	broken := &jealous{fail: errors.New("no such map")}
	r := &runner{members: []*member{memberOf("broken", broken), memberOf("well", &jealous{})}}
	ctx, cancel := context.WithCancel(t.Context())
	stop, failed := r.own(ctx)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "control broken: no such map") {
		t.Errorf("reported %v", err)
	}
	cancel()
	if lines, err := r.lines(r.members, report.Window{}, 0, loader.Counts{}); err != nil || len(lines) != 2 || broken.ticks.Load() != 1 {
		t.Errorf("%d lines, %d ticks, %v", len(lines), broken.ticks.Load(), err)
	}
	stop()
}
