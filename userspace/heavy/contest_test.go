package heavy

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of the flows with the stated number of packets, and up to half more, 95 of 100 have an entry at the end, those included that had one
// and lost it: an exact model of two ways, whose tables are full, crowded, and begin with another value than 1.
func TestUnseenAmong(t *testing.T) {
	for _, c := range []struct {
		flows, packets, entries, initial int
		skew                             float64
	}{{20000, 40000, 128, 1, .9}, {20000, 40000, 512, 1, .9}, {1500, 9000, 128, 1, .9}, {4000, 40000, 512, 1, .5}, {1500, 9000, 256, 20, .9}} {
		flows, in := 0, 0
		for seed := range uint64(12) {
			m := newContested(c.flows, c.entries, c.initial, rand.New(rand.NewPCG(seed, 9)))
			least := m.run(c.packets, c.skew)
			w := &Ways{Count: 2, Entries: c.entries, Initial: uint64(c.initial)}
			if planned := w.plannedUnseen(float64(c.packets), float64(c.packets)/float64(c.entries)+float64(c.initial)); planned < .95*least || planned > 2.5*least { // what is planned with is at most the mean of all
				t.Errorf("%+v, seed %d: %.0f were planned, it is %.0f", c, seed, planned, least)
			}
			for f, n := range m.had {
				if float64(n) >= least && float64(n) <= 1.5*least {
					flows++
					in += m.has(f)
				}
			}
		}
		t.Logf("%+v: %d of %d flows have an entry", c, in, flows)
		if flows < 30 || float64(in) < .95*float64(flows) {
			t.Errorf("%+v: %d of %d flows have an entry", c, in, flows)
		}
	}
}

// contested is PRECISION with two ways and exact admission.
type contested struct {
	rng       *rand.Rand
	place     [][2]int
	had       []int
	keys      [2][]int
	counters  [2][]uint64
	unmatched float64
}

func newContested(flows, entries, initial int, rng *rand.Rand) *contested {
	m := &contested{rng: rng, place: make([][2]int, flows), had: make([]int, flows)}
	for f := range m.place {
		m.place[f] = [2]int{rng.IntN(entries / 2), rng.IntN(entries / 2)}
	}
	for d := range 2 {
		m.keys[d], m.counters[d] = make([]int, entries/2), make([]uint64, entries/2)
		for e := range m.keys[d] {
			m.keys[d][e], m.counters[d][e] = -1, uint64(initial)
		}
	}
	return m
}

// run packets of flows with sizes proportional to 1/(rank + 5)^skew, and return what a flow has that has an entry.
func (m *contested) run(packets int, skew float64) float64 {
	until, sum := make([]float64, len(m.had)), 0.0
	for f := range until {
		sum += math.Pow(float64(f+6), -skew)
		until[f] = sum
	}
	start := m.counters[0][0]
	for range packets {
		u, low, high := m.rng.Float64()*sum, 0, len(until)-1
		for low < high {
			if mid := (low + high) / 2; until[mid] < u {
				low = mid + 1
			} else {
				high = mid
			}
		}
		m.packet(low)
	}
	w := &Ways{contest: contest{start: float64(start), entries: len(m.keys[0])}}
	var counters [][]uint64
	for d := range 2 {
		for _, v := range m.counters[d] {
			w.contest.values = append(w.contest.values, float64(v))
		}
		counters = append(counters, append([]uint64(nil), m.counters[d]...))
	}
	w.contest.sort()
	w.contest.rivals = rivalsOf(counters, 0)
	return w.UnseenAmong(m.unmatched)
}

func (m *contested) packet(f int) {
	m.had[f]++
	for d, e := range m.place[f] {
		if m.keys[d][e] == f {
			m.counters[d][e]++
			return
		}
	}
	m.unmatched++
	d := 0
	if m.counters[1][m.place[f][1]] < m.counters[0][m.place[f][0]] {
		d = 1
	}
	e := m.place[f][d]
	if m.rng.Float64()*float64(m.counters[d][e]+1) < 1 {
		m.keys[d][e] = f
		m.counters[d][e]++
	}
}

func (m *contested) has(f int) int {
	for d, e := range m.place[f] {
		if m.keys[d][e] == f {
			return 1
		}
	}
	return 0
}
