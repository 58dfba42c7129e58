package rates

import (
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/heavy"
)

func word(signature, events, packets uint64) uint64 {
	return signature<<signBit | events<<eventBit | packets
}

// What a flow had in one word and what it has in another add up, under the key that the taker's report names; a word whose taker nobody reported is lost.
func TestOwners(t *testing.T) {
	var o Owners
	a, b := heavy.Key{1}, heavy.Key{2}
	const rows = uint64(7)<<signBit | 3<<16 | 5
	o.Take(a, rows, 0, 4, 0, 0, 0)
	o.Take(b, uint64(9)<<signBit|5, 0, 4, word(7, 3, 100), 0, 0) // 5 & 3 is a's place
	o.Take(a, rows, 1, 4, 0, 0, 0)
	o.End(Slot{0, 1}, word(9, 1, 50), 0, 0)
	o.End(Slot{1, 3}, word(7, 2, 30), 6<<weightBit|32, 11)
	if got, want := o.Flows[a], (Flow{Packets: 130, Events: 5, Entries: 2, Sum: 6, Weights: 32, Squares: 11}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := o.Flows[b], (Flow{Packets: 50, Events: 1, Entries: 1}); got != want || o.Lost != 0 {
		t.Errorf("%+v, want %+v, %d lost", got, want, o.Lost)
	}
	o.End(Slot{0, 1}, word(8, 1, 50), 0, 0)
	if o.End(Slot{0, 2}, word(9, 1, 50), 0, 0); o.Lost != 2 {
		t.Errorf("%d words of nobody, want 2", o.Lost)
	}
	if o.End(Slot{0, 0}, 0, 0, 0); o.Lost != 2 {
		t.Error("an empty word is somebody's")
	}
}

// A flow with 11 events and 100 packets from the first one on had about ten packets before it. The list is by rate, and without flows of few packets.
func TestList(t *testing.T) {
	m := Measure{Followed: 1, Missed: .2, Least: 100}
	flows := map[heavy.Key]Flow{
		{1}: {Packets: 109, Events: 10, Entries: 1},
		{2}: {Packets: 1e6, Events: 400, Entries: 1},
		{3}: {Packets: 400, Events: 300, Entries: 1},
		{4}: {Packets: 10, Events: 9, Entries: 1},
		{5}: {Packets: 500, Entries: 1},
	}
	list := m.List(flows)
	if len(list) != 3 || list[0].Key != (heavy.Key{3}) || list[1].Key != (heavy.Key{1}) || list[2].Key != (heavy.Key{2}) {
		t.Fatalf("%+v", list)
	}
	if got, want := list[1].Rate, 11./120; math.Abs(got-want) > 1e-9 || list[1].packets != 110 || list[1].events != 11 {
		t.Errorf("%+v, want a rate of %g", list[1], want)
	}
	if list[1].low < .04 || list[1].low > .05 || list[1].high < .19 || list[1].high > .21 { // 4.5 to 16.2 %, and what is missed of .8
		t.Errorf("bounds %g to %g", list[1].low, list[1].high)
	}
	if w := m.Words(flows, 2); len(w) != 2*width || w[0] != 1 || w[width] != 3 {
		t.Errorf("two flows are kept: %v", w)
	}
}

// Means of delays: the spread of the sample, and no bounds of two.
func TestMeans(t *testing.T) {
	m := Measure{Followed: 1, Tick: 1000, Least: 1}
	f := Flow{Packets: 5, Entries: 1}
	for _, ticks := range []uint64{90, 100, 110} {
		f.Add(Flow{Events: 1, Weights: 16, Sum: 16 * ticks, Squares: 16 * ticks * ticks})
	}
	low, high := m.bounds(&f)
	// Student's 4.30 of three samples, Cornish and Fisher have 4.1; a deviation of 10 and a tick's, over the root of three.
	if half := (high - low) / 2e3; half < 22*uneven || half > 26*uneven || math.Abs((high+low)/2-100e3) > 1 {
		t.Errorf("%g to %g", low, high)
	}
	two := Flow{Packets: 5, Entries: 1, Events: 2, Weights: 32, Sum: 3200, Squares: 320_000}
	if low, _ := m.bounds(&two); !math.IsNaN(low) {
		t.Errorf("two delays have a bound %g", low)
	}
	if m.large(&Flow{Packets: 80, Entries: 1, Events: 2, Weights: 2 * 16 * 30}) != true || (&Measure{Tick: 1, Least: 112}).large(&Flow{Packets: 80, Entries: 1, Events: 2, Weights: 2 * 16 * 30}) {
		t.Error("80 packets and those in front of a delay that stands for 30 are 111")
	}
}

// The threshold stays 0 where all flows find a place, rises where many do not, and falls again.
func TestThreshold(t *testing.T) {
	th := Threshold{Slots: 100}
	if th.Follow(1000, 50_000, 25, false) || th.Ticks != 0 {
		t.Errorf("%d ticks with room for all", th.Ticks)
	}
	if !th.Follow(2000, 100_000, 26, false) || th.Ticks != 51 {
		t.Errorf("%d ticks, want more than the mean of 50", th.Ticks)
	}
	if !th.Follow(3000, 150_000, 100, false) || th.Ticks != 59 {
		t.Errorf("%d ticks, want 15 %% more", th.Ticks)
	}
	if th.Follow(4000, 200_000, 120, true) || th.Follow(40, 2000, 0, false) {
		t.Errorf("%d ticks: moved between the limits, or by a few delays", th.Ticks)
	}
	if !th.Follow(1000, 50_000, 1, false) || th.Ticks != 51 {
		t.Errorf("%d ticks, want 15 %% less", th.Ticks)
	}
}
