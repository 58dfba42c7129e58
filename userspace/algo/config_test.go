package algo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// sized is a configuration with one parameter, and what a report shows of it.
type sized struct{ n int64 }

var reads int // how often parameters were read

func readSized(v Values, s Setup) (*sized, error) {
	reads++
	n := v.Int("n")
	if s.Hash == HashCRC && n > 4 {
		return nil, v.Error("n", "at most 4 on a switch")
	}
	return &sized{n}, nil
}

func (c *sized) New(env Env) (Instance, error) {
	return still{s: snapshot.New(env.Head, report.Window{})}, nil
}
func (c *sized) Report(*snapshot.Snapshot) (Result, error) {
	return Result{Used: uint64(c.n)}, nil
}
func (c *sized) Plan(PlanArgs) (*report.Body, error) { return &report.Body{}, nil }

func sizedDescriptor() *Descriptor {
	return &Descriptor{Name: "sized", Layout: 3, Params: []Param{{Key: "n", Type: Int, Default: "2"}, {Key: "text", Type: String}}, Config: Typed(readSized)}
}

// Text is read where a selection is made; instances, snapshots and optional interfaces follow from what was read.
func TestSelect(t *testing.T) {
	d := sizedDescriptor()
	of, err := d.Select(map[string]string{"n": "3"}, Setup{Replay: true, WindowNS: 7})
	if err != nil {
		t.Fatal(err)
	}
	i, err := of.New(Env{Seed: 9, Setup: Setup{Hash: HashCRC}}) // the setup is the selection's
	if err != nil {
		t.Fatal(err)
	}
	s, err := i.Read(report.Window{}, 0)
	if err != nil || s.Algorithm != "sized" || s.Layout != 3 || s.Params["n"] != "3" || s.Hashes != snapshot.HashMark(9) || s.CRC || !s.Replay || s.WindowNS != 7 {
		t.Errorf("a snapshot's head is %+v, %v", s.Head, err)
	}
	if !Implements[Planner](d) || Implements[Merger](d) {
		t.Error("a planner that cannot merge is taken for something else")
	}
	if _, err := d.Plan(of.Values, PlanArgs{}); err != nil {
		t.Error(err)
	}
	if _, err := d.P4(of.Values); !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "sized") {
		t.Errorf("a twin that there is not: %v", err)
	}
	for set, contains := range map[string]string{"n=five": "not an integer", "m=1": "no such parameter", "n=5": "at most 4 on a switch"} {
		key, value, _ := strings.Cut(set, "=")
		if bad, err := d.Select(map[string]string{key: value}, Switch()); err == nil || !strings.Contains(err.Error(), contains) || bad.Config != nil {
			t.Errorf("%s: %v, %v", set, bad.Config, err)
		}
	}
}

// A selection is configured again for another setup only.
func TestFor(t *testing.T) {
	of, err := sizedDescriptor().Select(nil, Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if same, err := of.For(Setup{}); err != nil || same.Config != of.Config {
		t.Errorf("the same setup is configured again: %v", err)
	}
	if other, err := of.For(Setup{Replay: true}); err != nil || other.Config == of.Config || !other.Setup.Replay {
		t.Errorf("another setup is not: %v", err)
	}
}

// Snapshots of one set of parameters are read once, no text is mistaken for another parameter, and what hosts send cannot fill the memory.
func TestSnapshotsShareAConfiguration(t *testing.T) {
	d := sizedDescriptor()
	was := registry
	registry = map[string]*Descriptor{d.Name: d}
	defer func() { registry = was; clear(cached.held) }()
	taken := func(n, text string) *snapshot.Snapshot {
		return &snapshot.Snapshot{Head: snapshot.Head{Algorithm: d.Name, Layout: d.Layout, Params: map[string]string{"n": n, "text": text}}}
	}
	reads = 0
	for range 5 {
		if r, err := Report(taken("4", "")); err != nil || r.Used != 4 {
			t.Fatal(r, err)
		}
	}
	if reads != 1 {
		t.Errorf("parameters were read %d times for five snapshots", reads)
	}
	a, b := paramText(taken("4", `x"n""5`)), paramText(&snapshot.Snapshot{Head: snapshot.Head{Algorithm: d.Name, Params: map[string]string{"n": "4", `text""x"n"`: "5"}}})
	if a == b {
		t.Errorf("two sets of parameters are both %s", a)
	}
	other := taken("4", "")
	other.CRC = true
	if _, err := Report(other); err != nil || reads != 2 {
		t.Errorf("another setup: read %d times, %v", reads, err)
	}
	for n := range 3 * mostCached {
		if _, err := Report(taken("1", fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Report(taken("1", strings.Repeat("x", longestCached))); err != nil || len(cached.held) > mostCached {
		t.Errorf("%d are cached, %v", len(cached.held), err)
	}
	for key := range cached.held {
		if len(key.params) > longestCached {
			t.Errorf("parameters of %d bytes are cached", len(key.params))
		}
	}
	if _, err := Report(taken("no number", "")); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("a damaged snapshot: %v", err)
	}
}
