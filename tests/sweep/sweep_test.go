package sweep

import (
	"context"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// forAll runs a test for every algorithm, with its default parameters.
func forAll(t *testing.T, f func(t *testing.T, s session.Selected)) {
	t.Helper()
	if len(algo.All()) == 0 {
		t.Fatal("no algorithm is registered")
	}
	for _, d := range algo.All() {
		t.Run(d.Name, func(t *testing.T) {
			values, err := algo.NewValues(d.Name, d.Params, nil)
			if err != nil {
				t.Fatalf("the default parameters are refused: %v", err)
			}
			f(t, session.Selected{Descriptor: d, Values: values})
		})
	}
}

func objectOf(t *testing.T, s session.Selected) (loader.Object, algo.Instance) {
	t.Helper()
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{s}, Seed: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	return objects[0], instances[0]
}

// Every algorithm keeps the memory rules of a switch and fits one.
func TestProven(t *testing.T) {
	forAll(t, func(t *testing.T, s session.Selected) {
		object, _ := objectOf(t, s)
		spec, err := object.Whole()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pisa.Prove(spec); err != nil {
			t.Error(err)
		}
	})
}

// Every algorithm processes the odd captures without an error, and every packet of them reaches the chain.
func TestReplaysOddCaptures(t *testing.T) {
	testutil.NeedRoot(t)
	frames := cornerFrames(t)
	forAll(t, func(t *testing.T, s session.Selected) {
		for _, decap := range []bool{false, true} {
			var lines []report.Line
			cfg := session.Config{Algorithms: []session.Selected{s}, Truth: true, Decap: decap, Window: time.Minute, Snapshots: true,
				Emit: func(l report.Line) error { lines = append(lines, l); return nil }}
			if err := session.ReplaySource(context.Background(), cfg, "odd", frames.source(), nil); err != nil {
				t.Fatal(err)
			}
			checkLines(t, lines, uint64(len(frames)))
		}
	})
}

func checkLines(t *testing.T, lines []report.Line, fed uint64) {
	t.Helper()
	var seen, used, bytes uint64
	for _, l := range lines {
		seen, used, bytes = seen+l.Packets.Seen, used+l.Packets.Used, bytes+l.Packets.Bytes
		accounted := l.Packets.Parsed
		for _, n := range l.Packets.Reasons {
			accounted += n
		}
		if accounted != l.Packets.Seen {
			t.Errorf("window %d: %d packets seen, %d parsed or with a reason", l.Window.Number, l.Packets.Seen, accounted)
		}
		checkBody(t, l.Report)
		checkSnapshot(t, l)
	}
	if seen != fed || bytes == 0 {
		t.Errorf("%d packets of %d bytes seen, %d were fed", seen, bytes, fed)
	}
	if used > seen {
		t.Errorf("%d packets used of %d", used, seen)
	}
	if len(lines) == 0 || !lines[len(lines)-1].Window.Last {
		t.Errorf("%d lines, and the last is not marked so", len(lines))
	}
}

// checkSnapshot: a line's snapshot makes the same line elsewhere.
func checkSnapshot(t *testing.T, l report.Line) {
	t.Helper()
	if _, err := algo.Lookup(l.Algorithm); err != nil {
		return
	}
	s, err := snapshot.Decode(l.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if s.Window != l.Window || s.Packets.Seen != l.Packets.Seen || s.Packets.Used != l.Packets.Used {
		t.Errorf("window %d: its snapshot is of %+v with %+v", l.Window.Number, s.Window, s.Packets)
	}
	r := snapshottest.Report(t, s)
	if got, want := snapshottest.Text(t, r), snapshottest.Text(t, algo.Result{Body: l.Report, Used: l.Packets.Used, Segments: l.Packets.UsedSegments, Lost: r.Lost}); got != want {
		t.Errorf("window %d: the snapshot's report is\n%s\nand the run's\n%s", l.Window.Number, got, want)
	}
}

// checkBody: a distribution is cumulative, up to its count.
func checkBody(t *testing.T, b report.Body) {
	t.Helper()
	for _, d := range b.Distributions {
		before := 0.0
		for _, bucket := range d.Buckets {
			if bucket.Cumulative < before || math.IsNaN(bucket.Cumulative) {
				t.Errorf("%s: %.1f values up to %g, but %.1f below", d.Name, bucket.Cumulative, bucket.Upper, before)
			}
			before = bucket.Cumulative
		}
		if len(d.Buckets) > 0 && math.Abs(before-d.Count) > 1e-6*d.Count {
			t.Errorf("%s: %.1f values, but %.1f in all buckets", d.Name, d.Count, before)
		}
	}
	for _, table := range b.Tables {
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("table %s: a row of %d columns, the head has %d", table.Name, len(row), len(table.Columns))
			}
		}
	}
}

// floods are the traffic that a live algorithm has to bear.
var floods = []struct {
	name string
	opts mutator.Options
}{
	{"handshakes of many flows", mutator.Options{Traffic: mutator.Handshakes, Flows: 100_000, Apart: true}},
	{"segments of many flows", mutator.Options{Traffic: mutator.Data, Flows: 100_000, Apart: true}},
	{"all cores on the same few handshakes", mutator.Options{Traffic: mutator.Handshakes, Flows: 16, Frozen: true}},
	{"all cores on the same few flows", mutator.Options{Traffic: mutator.Data, Flows: 4, Frozen: true}},
}

// Every algorithm bears all cores at once, on many keys and on few, while its windows are closed as fast as they can
// be: no packet is lost to the counting, no window fails. When it is closed, nothing of it is left in the kernel.
func TestLive(t *testing.T) {
	testutil.NeedRoot(t)
	forAll(t, func(t *testing.T, s session.Selected) {
		before := held(t)
		used := live(t, s)
		for what := range held(t) {
			if !before[what] {
				t.Errorf("%s is still open", what)
			}
			delete(used, what)
		}
		awaitFreed(t, used)
	})
}

// live returns what the algorithm had in the kernel.
func live(t *testing.T, s session.Selected) map[kernelObject]bool {
	object, instance := objectOf(t, s)
	inst, err := loader.Load([]loader.Object{object}, loader.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := inst.Close(); err != nil {
			t.Error(err)
		}
	}()
	set, err := inst.Set(object.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := instance.Bind(set); err != nil {
		t.Fatal(err)
	}
	used := map[kernelObject]bool{}
	w := &windows{inst: inst, instance: instance}
	f, err := mutator.StartFlood(inst, floods[0].opts, mutator.Fast)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	for n, flood := range floods {
		if n > 0 {
			if err := f.Again(flood.opts); err != nil {
				t.Fatal(err)
			}
		}
		w.under(t, f, flood.name)
	}
	maps.Copy(used, held(t))
	return used
}

// windows closes one after the other.
type windows struct {
	inst       *loader.Instance
	instance   algo.Instance
	number     int
	seen, used uint64
}

func (w *windows) under(t *testing.T, f *mutator.Flood, name string) {
	t.Helper()
	length := 300 * time.Millisecond
	if testing.Short() {
		length /= 4
	}
	w.seen, w.used = 0, 0
	for started := time.Now(); time.Since(started) < length && !t.Failed(); {
		w.close(t, false)
	}
	sent, err := f.Stop()
	if err != nil {
		t.Fatal(err)
	}
	w.close(t, false)
	w.close(t, true)
	if w.seen != sent.Packets() {
		t.Errorf("%s: %d packets sent, %d counted (%+d)", name, sent.Packets(), w.seen, int64(w.seen-sent.Packets()))
	}
	if w.used > sent.Packets() {
		t.Errorf("%s: %d packets sent, %d used", name, sent.Packets(), w.used)
	}
}

func (w *windows) close(t *testing.T, last bool) {
	t.Helper()
	bank, err := w.inst.Control().Flip()
	if err != nil {
		t.Fatal(err)
	}
	counts, err := w.inst.Counts(bank)
	if err != nil {
		t.Fatal(err)
	}
	start := int64(w.number) * int64(time.Second)
	w.number++
	result, err := algo.Window(w.instance, report.Window{Number: w.number, Start: start, End: start + int64(time.Second), Last: last}, bank)
	if err != nil {
		t.Fatal(err)
	}
	w.seen += counts.Seen
	w.used += result.Used
	checkBody(t, result.Body)
}
