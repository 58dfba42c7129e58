package fridge

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/samples"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

// response names a response: its connection, from who sent the request, and its time.
func response(cells []any, at any) string { return fmt.Sprint(cells, at) }

// named is a row of a table of samples.
type named struct {
	response   string
	delay      float64 // ns
	weight     float64
	percentile string
}

func namedIn(t *testing.T, b report.Body, table string) (all []named) {
	t.Helper()
	tab, ok := report.Find(b.Tables, table)
	if !ok {
		t.Fatalf("no table %s", table)
	}
	for _, row := range tab.Rows {
		n := named{}
		if table == "percentile_samples" {
			n.percentile, row = row[0].(string), row[1:]
		}
		n.response = response(row[:5], row[9])
		n.delay, _ = report.Number(row[5])
		n.weight, _ = report.Number(row[6])
		all = append(all, n)
	}
	return all
}

// truthOf are the delays of a capture by response, in ns.
func truthOf(t *testing.T, path string, c *config) map[string][]int64 {
	t.Helper()
	src, err := capture.OpenAll([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := capture.Concat(src...)
	defer all.Close()
	var d packet.Decoder
	tracker, truth := delay.NewTracker(c.rules), map[string][]int64{}
	for {
		var frame packet.Frame
		if err := all.Next(&frame); errors.Is(err, io.EOF) {
			return truth
		} else if err != nil {
			t.Fatal(err)
		}
		var p packet.Packet
		d.Decode(&frame, packet.DecodeOptions{}, &p)
		if e := tracker.Packet(&p); e.Outcome == delay.Answered {
			one := exactSample(&p, e)
			name := response(samples.Spec.Cells(one.Key), p.Time)
			truth[name] = append(truth[name], e.Delay)
		}
	}
}

func addrOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

// Every response that is named exists, with the delay that it had: in all captures, by all rules. The slowest are the slowest, and p99 names one.
func TestSamplesExist(t *testing.T) {
	for _, c := range []struct {
		trace, match string
		p99          bool
	}{{"web_reordered.pcap", "tcp-handshake", true}, {"laptop_wan_300s.pcap", "tcp-data", true}, {"composite_120s.pcap", "dns", true}, {"laptop_wan_300s.pcap", "dns", false}, {"laptop_wan_300s.pcap", "tcp-duration", true}} {
		t.Run(c.trace+" "+c.match, func(t *testing.T) {
			set := map[string]string{"match": c.match, "samples": "16"}
			l := replayTrace(t, c.trace, set)
			config := configOf(t, set)
			truth := truthOf(t, testutil.Trace(t, c.trace), config)
			slowest, near := namedIn(t, l.Report, "samples"), namedIn(t, l.Report, "percentile_samples")
			for _, n := range slices.Concat(slowest, near) {
				exists := slices.ContainsFunc(truth[n.response], func(d int64) bool { return math.Abs(n.delay-float64(d)) <= float64(config.tick) })
				if !exists || n.weight < 1 || n.weight > 1.5 {
					t.Errorf("%s: %.0f ns with weight %g, the truth is %d", n.response, n.delay, n.weight, truth[n.response])
				}
			}
			exact := namedIn(t, *l.Truth, "samples")
			if len(slowest) != len(exact) || len(slowest) == 0 || slowest[0].response != exact[0].response {
				t.Errorf("%d listed, %d in truth; the slowest is %+v, in truth %+v", len(slowest), len(exact), slowest[:1], exact[:1])
			}
			p99 := quantile(find(t, l.Report, "delay_ns"), "p99")
			at := slices.DeleteFunc(near, func(n named) bool { return n.percentile != "p99" })
			if p99.Defined != c.p99 || (len(at) > 0) != c.p99 {
				t.Fatalf("p99 %+v names %v", p99, at)
			}
			for _, n := range at {
				if r := n.delay / p99.Value; r < 0.95 || r > 1.05 {
					t.Errorf("p99 is %.0f ns, %s had %.0f", p99.Value, n.response, n.delay)
				}
			}
		})
	}
}

// At a rate far above the stream's, the slowest are found and percentiles are named from a share of all; what is not sent is counted.
func TestSamplesAtARate(t *testing.T) {
	m := logUniform(t, traffic.LogUniformOptions{Requests: 200_000, Rate: 100_000, Answered: .5, Max: 16 * time.Millisecond, Seed: 3})
	lines := trial{set: map[string]string{"samples": "32", "legs": "false"}, model: m, seed: 3, window: time.Second, truth: true}.run(t)
	for _, l := range lines[:2] {
		matched, sent := valueOf(t, l.Report, "matched"), valueOf(t, l.Report, "sampled")
		refused, lost := l.Lost["samples_refused"], l.Lost["samples_lost"]
		complete := valueOf(t, l.Report, "samples_complete_ns")
		t.Logf("window %d: %g matched, %g sent, %d refused, %d lost, complete from %g ns", l.Window.Number, matched, sent, refused, lost, complete)
		if sent == 0 || sent > 2048+1024+1 || lost != 0 {
			t.Errorf("%g of %g were sent, %d lost", sent, matched, lost)
		}
		got, want := namedIn(t, l.Report, "samples"), namedIn(t, *l.Truth, "samples")
		if len(got) != 32 || len(want) != 32 {
			t.Fatalf("%d listed, %d in truth", len(got), len(want))
		}
		if l.Window.Number == 0 { // floor and share are not known yet
			if refused == 0 {
				t.Error("everything was sent: the rate does not bound it")
			}
			continue
		}
		found := 0
		for _, w := range want {
			if slices.ContainsFunc(got, func(n named) bool { return n.response == w.response }) {
				found++
			}
		}
		if found < 30 || refused > 0 { // one of 200 is evicted
			t.Errorf("window %d: %d of the slowest 32 are listed, %d refused", l.Window.Number, found, refused)
		}
		percentiles := map[string]int{}
		for _, n := range namedIn(t, l.Report, "percentile_samples") {
			percentiles[n.percentile]++
			if q := quantile(find(t, *l.Truth, "delay_ns"), n.percentile); math.Abs(math.Log2(n.delay/q.Value)) > .15 {
				t.Errorf("window %d: %s is %g ns, named is one of %g", l.Window.Number, n.percentile, q.Value, n.delay)
			}
		}
		if percentiles["p50"] == 0 || percentiles["p90"] == 0 || percentiles["p99"] == 0 {
			t.Errorf("window %d: %v name percentiles", l.Window.Number, percentiles)
		}
	}
}

// A window whose delays fell 30-fold lists them.
func TestSamplesFollowDelays(t *testing.T) {
	var packets []packet.Packet
	for n := range 20_000 {
		d := int64(90 * msec)
		if n >= 10_000 {
			d = 3 * msec
		}
		d += int64(n%1000) * 1000
		at := int64(1e9) + int64(n)*2*msec/5
		syn := packet.Packet{Time: at, Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, Segs: 1, TCPFlags: packet.SYN, Seq: uint32(n), SrcPort: uint16(n), DstPort: 443,
			Src: addrOf(n >> 16), Dst: addrOf(200)}
		reply := syn
		reply.Time, reply.Src, reply.Dst, reply.SrcPort, reply.DstPort, reply.TCPFlags, reply.Seq, reply.Ack = at+d, syn.Dst, syn.Src, 443, syn.SrcPort, packet.SYN|packet.ACK, 0, syn.Seq+1
		packets = append(packets, syn, reply)
	}
	lines := trial{set: map[string]string{"samples": "16", "legs": "false"}, model: inTime(packets), seed: 1, window: 2 * time.Second, truth: true}.run(t)
	for n, l := range lines[:4] {
		got := namedIn(t, l.Report, "samples")
		if want := namedIn(t, *l.Truth, "samples"); len(got) != 16 || n != 2 && (math.Abs(got[0].delay-want[0].delay) > 64 || math.Abs(got[15].delay-want[15].delay) > 64) {
			t.Errorf("window %d: %d listed, the slowest %g ns, truth %g", n, len(got), got[0].delay, want[0].delay)
		}
		if n == 3 && got[0].delay > float64(5*msec) {
			t.Errorf("delays have not fallen: %g", got[0].delay)
		}
	}
}

// A reader that stops loses samples, and they are counted.
func TestSamplesWithoutAReader(t *testing.T) {
	stalled := *descriptor()
	stalled.Config = algo.Typed(func(v algo.Values, s algo.Setup) (*stalledConfig, error) {
		c, err := newConfig(v, s)
		return &stalledConfig{c}, err
	})
	m := logUniform(t, traffic.LogUniformOptions{Requests: 100_000, Rate: 3e4, Answered: .5, Max: 16 * time.Millisecond, Seed: 3})
	l := trial{set: map[string]string{"samples": "32", "legs": "false"}, model: m, seed: 3, descriptor: &stalled}.last(t)
	sent, lost, refused := valueOf(t, l.Report, "sampled"), float64(l.Lost["samples_lost"]), float64(l.Lost["samples_refused"])
	t.Logf("%g sent, %g lost, %g refused", sent, lost, refused)
	if lost < 1000 || sent != float64(1<<18/(56+8)-1) || math.Abs(sent+lost+refused-valueOf(t, l.Report, "matched")) > 0 {
		t.Errorf("%g sent, %g lost and %g refused of %g", sent, lost, refused, valueOf(t, l.Report, "matched"))
	}
}

// stalledConfig makes instances that never read in between.
type stalledConfig struct{ *config }

func (c *stalledConfig) New(env algo.Env) (algo.Instance, error) {
	i, err := c.config.New(env)
	return struct{ algo.Instance }{i}, err
}

// withSamples is a snapshot with samples of these delays in ms.
func withSamples(t *testing.T, set map[string]string, delays ...int64) *snapshot.Snapshot {
	t.Helper()
	set["samples"] = "4"
	s := counted(t, set, 50, 160, 1e6, 2e6)
	c := configOf(t, set)
	all := samples.NewCollection(c.sampling(), 0)
	for n, d := range delays {
		key, _ := samples.Spec.Of(&packet.Packet{Valid: packet.IP | packet.Ports, Src: addrOf(n), Dst: addrOf(int(d)), SrcPort: uint16(1000 + n), DstPort: 443, Proto: 6})
		all.Add(samples.Sample{Time: int64(n) * msec, Delay: d * msec / c.tick * c.tick, X: uint32(100 * n), Key: key})
	}
	samples.Window{List: all.All(), Sent: uint64(len(delays)), Refused: 2, Lost: 1}.Into(s)
	return s
}

// Of two hosts the slowest are listed, each with the weight that it has on its host, and what was not sent adds up.
func TestMergedSamples(t *testing.T) {
	set := func() map[string]string { return map[string]string{"fridges": "256@1/2"} }
	a, b := withSamples(t, set(), 1, 2, 30, 4, 5, 6), withSamples(t, set(), 3, 40, 7, 8)
	b.Offset = 1e18
	merged := snapshottest.Merge(t, a, b)
	r := snapshottest.Report(t, merged)
	got := namedIn(t, r.Body, "samples")
	var delays []float64
	for _, n := range got {
		delays = append(delays, math.Round(n.delay/float64(msec)))
	}
	if !slices.Equal(delays, []float64{40, 30, 8, 7}) || r.Lost["samples_refused"] != 4 || r.Lost["samples_lost"] != 2 || snapshottest.Value(r.Body, "sampled") != 10 {
		t.Errorf("%v, lost %v", delays, r.Lost)
	}
	for _, one := range [][]named{namedIn(t, snapshottest.Report(t, a).Body, "samples"), namedIn(t, snapshottest.Report(t, b).Body, "samples")} {
		i := slices.IndexFunc(got, func(n named) bool { return n.delay == one[0].delay })
		if got[i].weight != one[0].weight || one[0].weight < 2 {
			t.Errorf("weight %g alone, %g together", one[0].weight, got[i].weight)
		}
	}
	tab, _ := report.Find(r.Body.Tables, "samples")
	if tab.Rows[0][9] != int64(1e18+1*msec) || tab.Rows[0][0] != "10.0.0.1" || tab.Rows[0][2] != "10.0.0.40" {
		t.Errorf("the slowest is %v", tab.Rows[0])
	}
	snapshottest.Stands(t, a)
	snapshottest.Stands(t, merged)
	for _, damage := range []func(snapshot.Words){
		func(w snapshot.Words) { w[1] = math.MaxUint64 }, func(w snapshot.Words) { w[2] = 9 << 32 }, func(w snapshot.Words) { w[3] = math.Float64bits(math.NaN()) }} {
		s := withSamples(t, set(), 1)
		damage(s.Words["samples"])
		if _, err := algo.Report(s); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("damaged samples: %v", err)
		}
	}
	s := withSamples(t, set(), 1)
	s.Words["samples"] = make(snapshot.Words, 9*2000)
	if _, err := algo.Report(s); !errors.Is(err, snapshot.ErrDamaged) {
		t.Errorf("too many samples: %v", err)
	}
}
