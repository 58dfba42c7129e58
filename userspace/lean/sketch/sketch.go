// Package sketch reads lean's Count Sketches, and keys from sub-buckets.
package sketch

import (
	"cmp"
	"math"
	"slices"
)

// Rows of a sketch.
const Rows = 5

// Place is a flow's position in a sketch: struct sketch_place of bpf/include/sketch.h.
type Place struct{ Rows, Rest uint64 }

// Cell returns the column and the sign of a flow in a row.
func (p Place) Cell(row, columns int) (column int, sign float64) {
	bits := p.Rest
	if row < 4 {
		bits = p.Rows >> (16 * row)
	}
	sign = 1
	if bits>>15&1 == 1 {
		sign = -1
	}
	return int(bits&0x7fff) & (columns - 1), sign
}

// Sketch is a Count Sketch of a closed window, its cells as numbers.
type Sketch [Rows][]float64

// New takes the cells as a snapshot holds them: registers of 32 bits in two's complement, sign-extended to 64 bits (Extended),
// so that no sum over hosts overflows.
func New(words [Rows][]uint64) (s Sketch) {
	for r := range Rows {
		s[r] = make([]float64, len(words[r]))
		for c, w := range words[r] {
			s[r][c] = float64(int64(w))
		}
	}
	return s
}

// Extended sign-extends words from 32 to 64 bits.
func Extended(words []uint64) []uint64 {
	for n, w := range words {
		words[n] = uint64(int64(int32(uint32(w))))
	}
	return words
}

// estimates are a flow's estimates, one from each row.
func (s *Sketch) estimates(p Place) (e [Rows]float64) {
	for r := range Rows {
		column, sign := p.Cell(r, len(s[r]))
		e[r] = sign * s[r][column]
	}
	return e
}

// median is the plain estimate of the paper.
func (s *Sketch) median(p Place) float64 {
	e := s.estimates(p)
	slices.Sort(e[:])
	return e[Rows/2]
}

func (s *Sketch) add(p Place, value float64) {
	for r := range Rows {
		column, sign := p.Cell(r, len(s[r]))
		s[r][column] += sign * value
	}
}

// noise is the standard deviation of one cell, from the median of the cells' absolute values, which a few cells with a large
// unreported flow do not change.
func (s *Sketch) noise() float64 {
	var all []float64
	for r := range Rows {
		for _, c := range s[r] {
			all = append(all, math.Abs(c))
		}
	}
	slices.Sort(all)
	middle := all[len(all)/2] / 0.6745
	if middle > 0 {
		return middle
	}
	var sum float64 // more than half of the cells are empty
	for _, c := range all {
		sum += c * c
	}
	return math.Sqrt(sum / float64(len(all)))
}

// Decoded are the estimates of the reported flows from a sketch.
type Decoded struct {
	Values []float64 // one a place
	Plain  []float64 // the paper's median, without subtraction
	Delays []float64 // latency with mean: the number of delays in each value
	Events []float64 // one event of each flow; 0: not known
	Noise  float64   // standard deviation of a cell, by what is left in it
}

// Alone estimates each flow by itself, as the paper does: the absolute value of the median of its cells.
func (s *Sketch) Alone(places []Place) Decoded {
	d := Decoded{Values: make([]float64, len(places)), Noise: s.noise()}
	for i, p := range places {
		d.Values[i] = math.Abs(s.median(p))
	}
	d.Plain = d.Values
	return d
}

const decodePasses = 8

// Decode estimates all reported flows together. A cell that a small flow shares with a large one carries no information on the
// small one, but the large one is known from its other rows: it is subtracted, and the small one's median is taken from the
// remainder. Repeated from the largest to the smallest until the estimates converge, only the unreported flows contribute to an
// estimate's error. First only the largest flows are fitted, a quarter as many as there are columns: the remainder in the cells
// is the noise of their estimates. Then up to a quarter of all cells; with as many unknowns as cells the fit would attribute the
// noise to flows, so the other flows are estimated from the remainder and not fitted.
func (s *Sketch) Decode(places []Place) Decoded {
	d := Decoded{Values: make([]float64, len(places)), Plain: make([]float64, len(places))}
	order := make([]int, len(places))
	for i, p := range places {
		d.Plain[i], order[i] = s.median(p), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(d.Plain[b], d.Plain[a]), cmp.Compare(a, b)) })
	columns := len(s[0])
	s.fit(places, order[:min(len(order), columns/4)], d.Values)
	d.Noise = s.noise()
	fitted := min(len(order), Rows*columns/4)
	s.fit(places, order[:fitted], d.Values)
	for _, i := range order[fitted:] {
		d.Values[i] = max(0, s.median(places[i]))
	}
	return d
}

// fit estimates flows until the estimates converge, and subtracts them from the cells.
func (s *Sketch) fit(places []Place, order []int, values []float64) {
	for range decodePasses {
		moved, total := s.pass(places, order, values)
		if moved <= 1e-3*total {
			return
		}
	}
}

// pass estimates each flow once, from the cells without the other flows.
func (s *Sketch) pass(places []Place, order []int, values []float64) (moved, total float64) {
	for _, i := range order {
		next := max(0, s.median(places[i])+values[i])
		s.add(places[i], values[i]-next)
		moved += math.Abs(next - values[i])
		total += next
		values[i] = next
	}
	return moved, total
}
