package session

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

type counted struct {
	algo.Config
	calls int
	table report.Table
	err   error
}

func (c *counted) Report(s *snapshot.Snapshot) (algo.Result, error) {
	c.calls++
	return algo.Result{Body: report.Body{Values: []report.Value{{Name: "words", Value: int64(s.Words["counts"][0])}}, Tables: append(make([]report.Table, 0, 4), c.table)}}, c.err
}

// A window without packets has the report of the one before, unless it was read otherwise, is longer, or has rows.
func TestRestIsReportedOnce(t *testing.T) {
	row := report.Table{Name: "flows", Rows: [][]any{{int64(1)}}}
	settings := report.Table{Name: "rules", Rows: row.Rows, Settings: true}
	for _, c := range []struct {
		name  string
		table report.Table
		after func(*snapshot.Snapshot)
		fails bool
		calls int
	}{
		{"the same", report.Table{}, func(*snapshot.Snapshot) {}, false, 1},
		{"settings", settings, func(*snapshot.Snapshot) {}, false, 1},
		{"times", report.Table{}, func(s *snapshot.Snapshot) { s.Window.Start, s.Window.End, s.Offset = 2e9, 3e9+9e5, 5 }, false, 1},
		{"longer", report.Table{}, func(s *snapshot.Snapshot) { s.Window.End += 2e6 }, false, 2},
		{"a word", report.Table{}, func(s *snapshot.Snapshot) { s.Words["counts"][1] = 1 }, false, 2},
		{"another array", report.Table{}, func(s *snapshot.Snapshot) { s.Words["more"] = snapshot.Words{} }, false, 2},
		{"a text", report.Table{}, func(s *snapshot.Snapshot) { s.Texts = map[string][]string{"query": {"a"}} }, false, 2},
		{"an epoch", report.Table{}, func(s *snapshot.Snapshot) { s.Epoch++ }, false, 2},
		{"rows", row, func(*snapshot.Snapshot) {}, false, 2},
		{"an error", report.Table{}, func(*snapshot.Snapshot) {}, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := &counted{table: c.table}
			m := &member{values: c.name, selected: algo.Selected{Config: config}}
			if c.fails {
				config.err = errors.New("unreadable")
			}
			var before *rest
			var encoding *report.Encoding
			for n := range 2 {
				s := snapshot.New(snapshot.Head{}, report.Window{Start: 1e9, End: 2e9})
				s.Words["counts"] = snapshot.Words{0, 0}
				if n == 1 {
					c.after(s)
				}
				x := &rest{}
				m.rest = x
				result, err := m.report(s, before)
				if !errors.Is(err, config.err) {
					t.Fatal(err)
				}
				if cap(result.Body.Tables) > 1 {
					t.Error("windows share room for another table")
				}
				l := report.Line{Report: result.Body, Lost: map[string]uint64{"evicted": 0}}
				x.encode(&l)
				if before != nil && (l.Encoding == encoding) != (c.calls == 1) {
					t.Errorf("an encoding is shared: %v", c.calls != 1)
				}
				encoding = l.Encoding
				if before = x; err != nil {
					before = nil // as a run does
				}
			}
			if config.calls != c.calls {
				t.Errorf("%d reports, want %d", config.calls, c.calls)
			}
		})
	}
	// Same report, other losses: another line.
	x := &rest{known: &idleReport{}}
	a := report.Line{Lost: map[string]uint64{"ring": 0}, Report: report.Body{Values: make([]report.Value, 1)}}
	b := a
	b.Lost = map[string]uint64{"ring": 1}
	x.encode(&a)
	x.encode(&b)
	if a.Encoding == b.Encoding {
		t.Error("losses are shared")
	}
}

// Interfaces with the same algorithms and parameters share the report of an idle window, others do not.
func TestIdleReportsAreShared(t *testing.T) {
	values := func(text string) algo.Values {
		v, err := algo.NewValues("a", []algo.Param{{Key: "k", Type: algo.String}}, map[string]string{"k": text})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, b := &algo.Descriptor{Name: "a"}, &algo.Descriptor{Name: "b"}
	for _, c := range []struct {
		name   string
		second algo.Selected
		calls  int
	}{
		{"the same", algo.Selected{Descriptor: a, Values: values("1")}, 0},
		{"other values", algo.Selected{Descriptor: a, Values: values("2")}, 1},
		{"another algorithm", algo.Selected{Descriptor: b, Values: values("1")}, 1},
		{"another setup", algo.Selected{Descriptor: a, Values: values("1"), Setup: algo.Setup{WindowNS: 1}}, 1},
	} {
		first, second := &counted{}, &counted{}
		c.second.Config = second
		for _, one := range []algo.Selected{{Descriptor: a, Values: values("1"), Config: first}, c.second} {
			s := snapshot.New(snapshot.Head{}, report.Window{Start: 1e9, End: 2e9})
			s.Words["counts"] = snapshot.Words{0, 0}
			m := &member{selected: one, rest: &rest{}}
			if _, err := m.report(s, nil); err != nil {
				t.Fatal(err)
			}
		}
		if second.calls != c.calls {
			t.Errorf("%s: %d reports of the second interface, want %d", c.name, second.calls, c.calls)
		}
	}
}

// What is known of idle windows is bounded.
func TestIdleReportsAreBounded(t *testing.T) {
	m := &member{values: "bounded"}
	for n := range 2 * mostIdleKeys {
		idleAdd(m.idleKey(uint64(n)), &idleReport{length: 1e9})
	}
	for n := range 2 * mostIdleLengths {
		idleAdd(m.idleKey(1e6), &idleReport{length: int64(n+1) * 1e9})
	}
	if keys, lengths := len(idle.known), len(idle.known[m.idleKey(1e6)]); keys > mostIdleKeys || lengths != mostIdleLengths {
		t.Errorf("%d keys and %d lengths are kept", keys, lengths)
	}
	if idleKnown(m.idleKey(1e6), 1e9) != nil || idleKnown(m.idleKey(1e6), 2*mostIdleLengths*1e9) == nil {
		t.Error("not the oldest was removed")
	}
	k := &idleReport{}
	for n := range 2 * mostIdleLines {
		(&rest{known: k}).encode(&report.Line{Lost: map[string]uint64{"ring": uint64(n)}})
	}
	if len(k.lines) != mostIdleLines {
		t.Errorf("%d lines are kept", len(k.lines))
	}
}

// A window is not read only if the two before it were the same, nothing but time has passed, and the report of its length is known.
func TestUnread(t *testing.T) {
	window := report.Window{Start: 2e9, End: 3e9}
	used := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"register": {Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Tags: []string{maps.TagRegister}}}}
	hold := func(m *member) { m.set = maps.NewSet(used, map[string]*ebpf.Map{"register": {}}) }
	idleAdd((&member{values: "short"}).idleKey(7), &idleReport{length: 1e9})
	idleAdd((&member{values: "longer"}).idleKey(7), &idleReport{length: 1.1e9})
	for _, c := range []struct {
		name   string
		change func(*runner, *member, *rest)
		want   bool
	}{
		{"idle", func(*runner, *member, *rest) {}, true},
		{"packets before, registers of zeros", func(r *runner, _ *member, _ *rest) { r.seen = 1 }, true},
		{"never a packet", func(_ *runner, m *member, _ *rest) { hold(m) }, true},
		{"packets before, registers that may hold something", func(r *runner, m *member, _ *rest) { r.seen = 1; hold(m) }, false},
		{"never a packet, registers of an earlier run", func(r *runner, m *member, _ *rest) { r.fresh = false; hold(m) }, false},
		{"the first idle window", func(_ *runner, _ *member, before *rest) { before.equal = false }, false},
		{"another length", func(_ *runner, m *member, _ *rest) { m.values = "longer" }, false},
		{"another digest", func(_ *runner, _ *member, before *rest) { before.digest = 8 }, false},
		{"packets in it", func(_ *runner, m *member, _ *rest) { m.rest = nil }, false},
		{"a tick", func(_ *runner, m *member, _ *rest) { m.ticked = true }, false},
		{"a coordinator", func(_ *runner, m *member, _ *rest) { m.messenger = &messenger{} }, false},
		{"epochs", func(r *runner, _ *member, _ *rest) { r.cfg.Epoch = func(int64) uint64 { return 1 } }, false},
	} {
		r, m, before := &runner{fresh: true}, &member{values: "short", set: maps.NewSet(&ebpf.CollectionSpec{}, nil), rest: &rest{}}, &rest{digest: 7, equal: true}
		c.change(r, m, before)
		if got := r.unread(m, window, 0, before); got != c.want || got && (!m.rest.equal || m.rest.digest != 7 || m.rest.known == nil) {
			t.Errorf("%s: %v, %+v", c.name, got, m.rest)
		}
	}
	if r := (&runner{}); r.unread(&member{rest: &rest{}}, window, 0, nil) {
		t.Error("a window without one before is not read")
	}
}
