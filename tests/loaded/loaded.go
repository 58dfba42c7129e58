// Package loaded loads one algorithm as attach does, but not onto an interface: test runs are its packets, on as many cores
// as like.
package loaded

import (
	"runtime"
	"sync"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Algorithm is an algorithm under test.
type Algorithm struct {
	Loaded   *loader.Instance
	Instance algo.Instance
	Entry    *ebpf.Program // start of the chain
}

// Load loads a registered algorithm with these parameters and seed 1. It is closed with the test.
func Load(t *testing.T, name string, set map[string]string) Algorithm {
	t.Helper()
	a := load(t, name, set, false)
	entry, err := a.Loaded.Entry(loader.EntryConfig{Kind: loader.XDP, IfIndex: 1, Frags: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { entry.Close() })
	a.Entry = entry
	return a
}

func load(t *testing.T, name string, set map[string]string, replay bool) Algorithm {
	t.Helper()
	d, err := algo.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 1}, replay)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load(objects, loader.Options{Seed: 1, Replay: replay, Fixed: replay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inst.Close() })
	bind(t, inst, name, instances[0])
	return Algorithm{Loaded: inst, Instance: instances[0]}
}

func bind(t *testing.T, inst *loader.Instance, name string, to algo.Instance) {
	t.Helper()
	regs, err := inst.Set(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Bind(regs); err != nil {
		t.Fatal(err)
	}
}

// Cores is how many send at the same time.
func Cores() int { return max(2, runtime.NumCPU()) }

// AllCores sends from all cores at the same time, each the packets of its flows in turn: frames(core)[flow][n].
func (a Algorithm) AllCores(t *testing.T, frames func(core int) [][][]byte) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, Cores())
	for core := range errs {
		flows := frames(core)
		wg.Go(func() { errs[core] = a.inOrder(flows) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (a Algorithm) inOrder(frames [][][]byte) error {
	for n := range frames[0] {
		for flow := range frames {
			if _, err := a.Entry.Run(&ebpf.RunOptions{Data: frames[flow][n]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Window ends the window and evaluates it.
func (a Algorithm) Window(t *testing.T) algo.Result {
	t.Helper()
	bank, err := a.Loaded.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	result, err := algo.Window(a.Instance, report.Window{Start: 1, End: 2}, bank)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
