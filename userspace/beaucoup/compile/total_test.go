package compile

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// collected simulates a collector with a tail, as the data plane draws it.
func collected(r *rand.Rand, c Collector, attributes int) (k int, tail uint64) {
	coupons := uint64(0)
	skip := math.Log1p(-c.P * float64(c.M)) // most attributes draw nothing
	for at := 0; ; at++ {
		if at += int(math.Log(1-r.Float64()) / skip); at >= attributes {
			break
		}
		coupons |= 1 << r.IntN(c.M)
		scaled := uint64(r.Uint32()) * TailCoupons
		if place := int(scaled >> 32); uint32(scaled)>>(31-place%tailLevels) == 0 {
			tail |= 1 << place
		}
	}
	return bits.OnesCount64(coupons), tail
}

// An estimate errs by about a quarter from two to a hundred thresholds, its interval holds, and without a tail it is a lower bound where all
// coupons are collected.
func TestTotals(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 31))
	const rounds = 150
	for _, c := range []Collector{{M: 31, N: 25, P: 1. / 64}, {M: 26, N: 9, P: 1. / 2048}, {M: 32, N: 21, P: 1. / 8192}, {M: 31, N: 5, P: 1. / 512}} {
		totals := NewTotals(c)
		for _, times := range []float64{2, 3, 10, 30, 100} {
			truth := int(times * c.Draws())
			held, square, bounds, sum := 0, 0.0, 0, 0.0
			for range rounds {
				k, tail := collected(r, c, truth)
				value, low, high := totals.At(k, tail, true, 0)
				if math.IsNaN(high) {
					t.Fatalf("%v, %d attributes: all is collected", c, truth)
				}
				if low <= float64(truth) && float64(truth) <= high {
					held++
				}
				x := math.Log(value / float64(truth))
				square += x * x
				sum += x
				if value, low, high = totals.At(c.M, 0, false, 0); math.IsNaN(value) && math.IsNaN(high) && low > 0 {
					bounds++
				}
			}
			name := fmt.Sprintf("%d of %d coupons of 1/%g, %g thresholds", c.N, c.M, 1/c.P, times)
			sd := math.Sqrt(square / rounds)
			t.Logf("%s: held %.3f, deviation of the logarithm %.3f, mean %.3f", name, float64(held)/rounds, sd, sum/rounds)
			if held < rounds*90/100 {
				t.Errorf("%s: %d of %d intervals hold", name, held, rounds)
			}
			if most := .45; sd > most || math.Abs(sum/rounds) > .1 {
				t.Errorf("%s: logarithms deviate by %.2f, mean %.2f", name, sd, sum/rounds)
			}
			if bounds != rounds {
				t.Errorf("%s: %d of %d full collectors without a tail have a lower bound alone", name, bounds, rounds)
			}
		}
	}
}
