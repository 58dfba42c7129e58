package samples

import (
	"math/rand/v2"
	"slices"
	"testing"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// A collection holds the slowest, and some of every bin, however many there were.
func TestCollection(t *testing.T) {
	c := Form{Listed: 8, Tick: 64, Longest: 64<<32 - 1, Parts: 1}
	rng := rand.New(rand.NewPCG(1, 2))
	all, list := NewCollection(c, 0), []Sample{}
	for n := range 5000 {
		s := Sample{Time: int64(n), Delay: 64 << rng.IntN(20) * (1 + rng.Int64N(30)), Key: heavy.Key{uint64(n)}}
		list = append(list, s)
		all.Add(s)
	}
	slices.SortFunc(list, Sample.Slower)
	got := all.All()
	if !slices.Equal(got[:8], list[:8]) || all.least() != list[31].Delay || all.complete() != list[31].Delay || len(got) > c.mostSamples() {
		t.Errorf("%v, want %v", got[:8], list[:8])
	}
	bins := map[int]int{}
	for _, s := range list {
		bins[c.nearBin(s)]++
	}
	for bin, n := range bins {
		if have := len(all.near[bin]); have != min(n, nearMost) {
			t.Errorf("bin %d has %d of %d", bin, have, n)
		}
	}
}

// A record that no program of the configuration writes is not listed, and the stream follows the rate.
func TestStream(t *testing.T) {
	s := NewStream(Form{Listed: 8, Tick: 64, Parts: 1})
	if _, ok := s.sampleOf(&bpf.FridgeFridgeSample{Fridge: 1, Family: 4}); ok {
		t.Error("a sample of a fridge that does not exist")
	}
	s.follow(1e9, 0)
	for n, c := range []struct {
		drawn   int
		offered uint64
		shift   int
	}{{drawnRate * 3, 0, 1}, {drawnRate, 0, 1}, {drawnRate * 4, 2000, 3}, {10, 3000, 2}, {0, 4000, 1}, {0, 4000, 0}, {0, 4000, 0}, {drawnRate, 4000 + 64*drawnRate, 6},
		{drawnRate, 100, 6}, {1 << 40, 0, mostShift}} {
		s.drawn = c.drawn
		if s.follow(int64(n+2)*1e9, c.offered); s.shift != c.shift || s.drawn != 0 {
			t.Errorf("step %d: shift %d, want %d", n, s.shift, c.shift)
		}
	}
}
