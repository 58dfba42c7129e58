package precision

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// few is a stream of flows that all find an entry: 40 flows of 300 packets, in order of the round.
func few(flows, packets int) *Stream {
	st := &Stream{}
	for n := range flows * packets {
		st.Order = append(st.Order, int32(n%flows))
	}
	st.keys(flows)
	st.count()
	return st
}

// TestUnbiased: a flow that keeps its entry is estimated without bias, whatever the admission: over seeds, the mean of the
// estimates is within three standard errors of the truth. A quarter of the flows have an entry of their own.
func TestUnbiased(t *testing.T) {
	testutil.NeedRoot(t)
	stream := few(40, 300)
	for _, admission := range []string{"exact", "pow2", "9/8"} {
		var sum, square, n float64
		for seed := range uint64(4) {
			out := run(t, stream, seed+1, map[string]string{"entries": "4096", "admission": admission, "recirculation": "1"})
			for _, key := range stream.Keys {
				c := out.Counts[key]
				sum, square, n = sum+c, square+c*c, n+1
			}
		}
		mean := sum / n
		se := math.Sqrt((square/n - mean*mean) / n)
		t.Logf("%s: mean %.1f of 300, standard error %.1f", admission, mean, se)
		bias := 3 * se
		if admission == "9/8" {
			bias += 300 / 8 // admitted up to 9/8 as often as the count requires
		}
		if math.Abs(mean-300) > bias {
			t.Errorf("%s: mean %.1f of 300 packets, standard error %.1f", admission, mean, se)
		}
	}
}

// TestAllCores: the same flows on all cores at once. Estimates of a flow add up over the cores and stay right, and no key is
// reported that no packet had.
func TestAllCores(t *testing.T) {
	testutil.NeedRoot(t)
	stream, cores := few(64, 500), runtime.NumCPU()
	c, err := Precision(map[string]string{"entries": "4096", "admission": "exact", "initial": "10", "recirculation": "1", "family": "both"})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := loader.Load([]loader.Object{c.Object}, loader.Options{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer inst.Close()
	hammer(t, inst, stream, cores)
	set, err := inst.Set(c.Object.Name)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := c.Read(set, inst.Control().Bank())
	if err != nil {
		t.Fatal(err)
	}
	known, sum := map[heavy.Key]bool{}, 0.0
	for _, key := range stream.Keys {
		known[key] = true
		sum += counts[key]
	}
	for key := range counts {
		if !known[key] {
			t.Errorf("a key that was not sent: %x", key)
		}
	}
	// A flow's estimate on a core has the deviation of a geometric number of mean 11.
	want := float64(cores * len(stream.Order))
	if se := 11 * math.Sqrt(float64(cores*len(stream.Keys))); math.Abs(sum-want) > 4*se {
		t.Errorf("estimates add up to %.0f of %.0f packets, standard error %.0f", sum, want, se)
	}
}

// hammer runs every frame of the stream on every core, at the same time.
func hammer(t *testing.T, inst *loader.Instance, stream *Stream, cores int) {
	t.Helper()
	entry, err := inst.Entry(loader.EntryConfig{Kind: loader.XDP})
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	errs := make(chan error, cores)
	for cpu := range cores {
		go func() { errs <- onCore(entry, cpu, stream) }()
	}
	for range cores {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func frames(stream *Stream) ([][]byte, error) {
	source := traffic.Frames(stream.Model())
	list := make([][]byte, 0, len(stream.Order))
	for range stream.Order {
		var f packet.Frame
		if err := source.Next(&f); err != nil {
			return nil, fmt.Errorf("make frames: %w", err)
		}
		list = append(list, append([]byte{}, f.Data...))
	}
	return list, nil
}
