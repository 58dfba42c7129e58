package rttarray_test

import (
	"errors"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/rttarray"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/snapshottest"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/rttarray"
	"github.com/xdpmon/xdpmon/userspace/snapshot"
)

const tick = 64 // ns

// sampled is a snapshot of n responses each after so many ticks, of so many requests more.
func sampled(t *testing.T, set map[string]string, n, unanswered uint64, ticks ...uint64) *snapshot.Snapshot {
	t.Helper()
	s, v := snapshottest.New(t, rttarray.Name, set)
	bins, planes := maps.Bins{Bits: delay.Bits, Mantissa: 5}, 1
	if v.Text("evict") == "cascade" {
		planes = delay.SurvivalBins
	}
	hist, c := make(snapshot.Words, planes*bins.Len()), make(snapshot.Words, bpf.RttArrayRttCounterRTT_COUNTS)
	for _, x := range ticks {
		hist[bins.Index(x)] += n << 36
	}
	answered := n * uint64(len(ticks))
	c[bpf.RttArrayRttCounterRTT_REQUESTS], c[bpf.RttArrayRttCounterRTT_RESPONSES] = answered+unanswered, answered
	c[bpf.RttArrayRttCounterRTT_MATCHED], c[bpf.RttArrayRttCounterRTT_INSERTED] = answered, answered+unanswered
	c[bpf.RttArrayRttCounterRTT_EVICTED] = unanswered
	s.Words["counters"], s.Words["hist"] = c, hist
	return s
}

// Without a kernel: counts become a distribution.
func TestReportOfASnapshot(t *testing.T) {
	s := sampled(t, nil, 100, 10, 1000, 2000, 4000)
	r := snapshottest.Report(t, s)
	d := r.Body.Distributions[0]
	if d.Count != 300 || r.Used != 610 || r.Lost["evicted"] != 10 || snapshottest.Value(r.Body, "matched") != 300 {
		t.Errorf("%g values, %d used, %v", d.Count, r.Used, r.Lost)
	}
	if p50 := d.Quantiles[0].Value; p50 < 2000*tick*0.98 || p50 > 2000*tick*1.02 {
		t.Errorf("the median is %g ns, want about %d", p50, 2000*tick)
	}
	snapshottest.Stands(t, s)
	snapshottest.Stands(t, sampled(t, map[string]string{"evict": "cascade", "stages": "4"}, 100, 10, 1000, 2000, 4000))
}

// Two hosts are one that saw all of their packets, by any seeds.
func TestMerged(t *testing.T) {
	a, b := sampled(t, nil, 100, 10, 1000, 2000), sampled(t, nil, 100, 30, 4000)
	b.Hashes++
	merged := snapshottest.Merge(t, a, b)
	got, want := snapshottest.Text(t, snapshottest.Report(t, merged)), snapshottest.Text(t, snapshottest.Report(t, sampled(t, nil, 100, 40, 1000, 2000, 4000)))
	if got != want {
		t.Errorf("merged\n%s\nwant\n%s", got, want)
	}
	snapshottest.Stands(t, merged)
	other := sampled(t, map[string]string{"entries": "1024"}, 1, 1, 10)
	if _, err := algo.Merge(a, other); !errors.Is(err, algo.ErrMerge) {
		t.Errorf("other parameters: %v", err)
	}
}
