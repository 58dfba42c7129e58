package lean

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/lean"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/lean/sketch"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// happening is an event of a flow: so much is added to its cells.
type happening struct {
	flow  int
	value int64
	named bool
}

// sketched is a snapshot of events, added to the sketches of all statistics that are on as a data plane with these hashes does.
func sketched(t *testing.T, set map[string]string, events []happening) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, Name, set)
	c, err := newConfig(v, algo.SetupOf(s))
	if err != nil {
		t.Fatal(err)
	}
	n := make(snapshot.Words, bpf.LeanLeanCounterLEAN_COUNTS)
	limits := make([]float64, stats)
	sizes := c.sizes()
	sketches, others := c.arrays()
	for _, name := range append(sketches, others...) {
		s.Words[name] = make(snapshot.Words, sizes[name])
	}
	for _, st := range c.on {
		named := candidates{}
		for _, e := range events {
			key, at := flowOf(e.flow)
			for r, name := range rowNames(registers[st]) {
				column, sign := at.Cell(r, sizes[name])
				s.Words[name][column] += uint64(int64(sign) * e.value)
			}
			n[int(bpf.LeanLeanCounterLEAN_TOTAL)+int(st)] += uint64(e.value)
			n[int(bpf.LeanLeanCounterLEAN_EVENTS)+int(st)]++
			if e.named {
				named[key] = candidate{at, float64(e.value)}
			}
		}
		s.Words[namedWords+st.String()] = named.words()
		limits[st] = 1
	}
	n[bpf.LeanLeanCounterLEAN_PACKETS] = uint64(len(events))
	s.Words[counterWords], s.Words[limitWords] = n, snapshot.Floats(limits)
	if c.latency() != nil {
		s.Words[chanceWords] = snapshot.Floats([]float64{1, 1, 0})
	}
	return s
}

func flowOf(n int) (heavy.Key, place) {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	return heavy.Key{uint64(0x0a000000+n)<<32 | 0x0a630001, 1 | 80<<32 | 6<<24}, place{Rows: random.Uint64(), Rest: random.Uint64()}
}

// skewedEvents of flows 0 to 199: flow n has about 20000 / (n + 1).
func skewedEvents(host uint64) (events []happening) {
	random := rand.New(rand.NewPCG(host, 1))
	for flow := range 200 {
		for left := 20000 / (flow + 1); left > 0; {
			value := 1 + random.IntN(min(left, 1000))
			events, left = append(events, happening{flow, int64(value), true}), left-value
		}
	}
	return events
}

// Without a kernel: a sketch and the flows that were named become a list.
func TestReportOfASnapshot(t *testing.T) {
	s := sketched(t, nil, skewedEvents(1))
	r := snapshottest.Report(t, s)
	if len(r.Body.Tables) != int(stats) {
		t.Fatalf("%d tables", len(r.Body.Tables))
	}
	for _, table := range r.Body.Tables {
		at := len((&config{spec: heavy.Spec{Fields: heavy.Src | heavy.SrcPort | heavy.Dst | heavy.DstPort | heavy.Proto}}).spec.Columns())
		unit := 1.0
		if table.Name == latency.String() {
			unit = latencyTick
		}
		got, ok := table.Rows[0][at].(float64)
		if i, isInt := table.Rows[0][at].(int64); isInt {
			got, ok = float64(i), true
		}
		if !ok || table.Rows[0][0] != "10.0.0.0" || math.Abs(got/unit-20000) > 200 {
			t.Errorf("%s: %v, want 10.0.0.0 with 20000", table.Name, table.Rows[0])
		}
	}
	snapshottest.Stands(t, s)
}

// Sketches are linear: with the same hashes the sum of two hosts' is that of one host with the events of both, and so is the report,
// but for the limits, which add up.
func TestMergedIsOneHost(t *testing.T) {
	for _, set := range []map[string]string{nil, {"loss": "walk", "latency": "signed"}, {"stat": "latency,loss", "mean": "true"}} {
		events := [2][]happening{skewedEvents(1), skewedEvents(2)}
		for n := range events[1] { // a flow that one host did not name is asked of the sum, too
			events[1][n].named = events[1][n].flow%2 == 0
		}
		merged := snapshottest.Merge(t, sketched(t, set, events[0]), sketched(t, set, events[1]))
		whole := sketched(t, set, append(append([]happening{}, events[0]...), events[1]...))
		whole.Words[limitWords] = merged.Words[limitWords]
		for name := range whole.Words {
			if name[:min(len(name), len(namedWords))] == namedWords {
				whole.Words[name] = merged.Words[name] // of a flow's events any may have been the one that was reported
			}
		}
		if got, want := snapshottest.Text(t, snapshottest.Report(t, merged)), snapshottest.Text(t, snapshottest.Report(t, whole)); got != want {
			t.Errorf("%v: merged\n%s\nwant\n%s", set, got, want)
		}
		if set == nil {
			snapshottest.Stands(t, merged)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	a := sketched(t, nil, skewedEvents(1))
	seeded, epoch := sketched(t, nil, nil), sketched(t, nil, nil)
	seeded.Hashes++
	epoch.Epoch++
	distinct := sketched(t, map[string]string{"retrans": "distinct"}, nil)
	for what, pair := range map[string][2]*snapshot.Snapshot{"another seed": {a, seeded}, "another epoch": {a, epoch}, "another statistic": {a, distinct},
		"lists": {distinct, distinct}} {
		if _, err := algo.Merge(pair[0], pair[1]); !errors.Is(err, algo.ErrMerge) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Of Misra-Gries counters the larger owner stays, and no count is ever too large.
func TestKeyedSum(t *testing.T) {
	word := func(owner, count uint64) uint64 { return owner<<32 | count }
	got := sketch.KeyedSum([]uint64{word(1, 10), word(1, 10), word(1, 3), 0, word(9, math.MaxUint32)}, []uint64{word(1, 5), word(2, 4), word(2, 8), word(5, 1), word(9, 1)})
	for n, want := range []uint64{word(1, 15), word(1, 6), word(2, 5), word(5, 1), word(9, math.MaxUint32)} {
		if got[n] != want {
			t.Errorf("%d: %x, want %x", n, got[n], want)
		}
	}
	merged := snapshottest.Merge(t, sketched(t, map[string]string{"ooo": "misra-gries"}, nil), sketched(t, map[string]string{"ooo": "misra-gries"}, nil))
	snapshottest.Stands(t, merged)
}

// Events, and the share of the segments that delays are of, are bounded.
func TestEdges(t *testing.T) {
	s := sketched(t, nil, []happening{{1, 5, true}, {2, 6, true}})
	s.Words[chanceWords] = snapshot.Floats([]float64{.25, .5, 7})
	tiny := math.SmallestNonzeroFloat64
	edges := []snapshottest.Edge{
		snapshottest.Range(chanceWords, 1, .25, 1),
		{Name: chanceWords, At: 0, Good: snapshottest.Numbers(tiny, .5), Bad: snapshottest.Numbers(0, -tiny, math.Nextafter(.5, 1), math.NaN())},
		{Name: chanceWords, At: 2, Good: snapshottest.Numbers(0, math.MaxFloat64), Bad: snapshottest.Numbers(-tiny, math.NaN(), math.Inf(1))},
	}
	for st := range stats {
		for row := range 2 {
			edges = append(edges, snapshottest.Range(namedWords+st.String(), row*namedWidth+heavy.KeyWords+2, -mostCounted, mostCounted))
		}
	}
	snapshottest.Edges(t, s, edges...)
}
