package lean

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/lean/expect"
)

// ranked64 fills registers as bpf/lean/distinct.h does: an item's low six bits choose one, leading zeros rank.
func ranked64(rng *rand.Rand, different int, tag uint64) []uint64 {
	registers := make([]uint64, distinctRegisters)
	for range different {
		item := rng.Uint32()
		rank := uint64(bits.LeadingZeros32(item|distinctRegisters)) + 1
		r := &registers[item%distinctRegisters]
		*r = max(*r, tag<<8|rank)
	}
	return registers
}

// HyperLogLog with m registers errs by 1.04 / sqrt(m) (Flajolet et al. 2007): 13 % for 64. Over 300 trials the root mean square
// is within a fifth of that; the mean is within three of its own standard errors and 2 % of bias of the truth.
func TestDifferentIsWithinTheoryOfTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{50, 1000, 50_000} {
		var sum, squares float64
		const trials = 300
		for range trials {
			e := expect.Different(ranked64(rng, n, 7), 7)/float64(n) - 1
			sum, squares = sum+e, squares+e*e
		}
		if rms := math.Sqrt(squares / trials); rms > 1.2*distinctError {
			t.Errorf("%d different: error %.3f, theory: %.3f", n, rms, distinctError)
		}
		if mean := sum / trials; math.Abs(mean) > 0.02+3*distinctError/math.Sqrt(trials) {
			t.Errorf("%d different: %.3f too many on average", n, mean)
		}
	}
}

// What the last owner of a list entry left is not counted.
func TestRegistersOfAnotherOwnerAreEmpty(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	if got := expect.Different(ranked64(rng, 1000, 7), 8); got != 0 {
		t.Errorf("registers of tag 7 give %g different packets of tag 8, want 0", got)
	}
}

// A Misra-Gries counter is never larger than the flow's events, and the stated deficit is what was taken away.
func TestKeyedCounts(t *testing.T) {
	at := place{Rows: 0xabcd<<32 | 5}
	words := make([]uint64, 8)
	words[5] = 0xabcd<<32 | 7
	if got := keyedCount(words, at); got != 7 {
		t.Errorf("counter of the owner: %g, want 7", got)
	}
	words[5] = 0xabce<<32 | 7
	if got := keyedCount(words, at); got != 0 {
		t.Errorf("counter of another flow: %g, want 0", got)
	}
	// 11 events, 7 of them still counted: two of the owner's were taken by two of others
	if got := keyedDeficit(words, 11); got != 2.0/8 {
		t.Errorf("deficit %g, want %g", got, 2.0/8)
	}
}

// The default layouts are within 40,000 bytes, and four times the memory takes no more than four times as much.
func TestOrderLayoutsFit(t *testing.T) {
	for _, scale := range []float64{1.0 / 16, 1, 4, 16} {
		for name, l := range map[string]layout{
			"ooo": (&reorderings{}).layout(scale), "misra-gries": (&reorderings{misraGries: true}).layout(scale),
			"retrans": (&repetitions{}).layout(scale), "distinct": (&repetitions{distinct: true}).layout(scale),
		} {
			if got, want := l.bytes(), int(scale*baseMemory); got > want && scale >= 1 {
				t.Errorf("%s: %d bytes of %d", name, got, want)
			}
		}
	}
}
