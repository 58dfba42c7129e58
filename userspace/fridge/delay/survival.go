package delay

import "math"

// The cells of bpf/include/survival.h.
const (
	SurvivalBins  = 16
	survivalUnits = 1024 // units of x in M, the slots of a shard
	survivalLast  = 7 * survivalUnits
	residualBits  = 36
)

// cell is one word of a histogram: samples, and the sum of their positions within their survival bin.
type cell struct {
	n        float64
	residual float64
}

func decode(word uint64) cell {
	return cell{n: float64(word >> residualBits), residual: float64(word & (1<<residualBits - 1))}
}

// survivalEdges returns the units at which a survival bin begins and ends; the last one is open.
func survivalEdges(bin int) (low, high float64) {
	if bin == SurvivalBins-1 {
		return survivalLast, math.Inf(1)
	}
	return survivalEdge(bin), survivalEdge(bin + 1)
}

func survivalEdge(bin int) float64 {
	const quarter = survivalUnits / 4
	if bin < 4 {
		return float64(bin) * quarter
	}
	return float64((4+bin&3)<<(bin>>2-1)) * quarter
}

// Factor corrects the samples of one fridge.
type Factor struct {
	Slots     int      // of a shard: the slots that an insertion counted in x may overwrite
	Inclusion float64  // probability that a request enters at all: routed share times p
	Repeats   *Repeats // how many of the insertions were different requests; nil: all
}

// exponent is the factor's logarithm per survived request: -ln(1 - 1/M).
func (f Factor) exponent() float64 { return -math.Log1p(-1 / float64(f.Slots)) }

// log of the inverse probability to survive x insertions.
func (f Factor) log(x float64) float64 { return f.exponent() * f.Repeats.Different(x) }

// Weight of a sample that survived x insertions: 1/q of section 3.2, x counting insertions (section 6.1).
func (f Factor) Weight(x float64) float64 { return math.Exp(f.log(x)) / f.Inclusion }

// Sums of one delay bin.
type Sums struct {
	N        float64 // samples
	Weight   float64 // sum of their weights
	Square   float64 // sum of their squared weights
	Apart    float64 // sum of their weights if all insertions were different requests
	Survived float64 // sum of their x
}

// Row corrects the samples of one delay bin, given as one word a survival bin. Of a cell only the number of samples and their
// mean x are known, and the mean of an exponential exceeds the exponential of the mean, by half the variance of x/M within the
// cell. A row holds delays that differ by some per cent, so its x differ little while the request rate is steady, and as much as
// the rate otherwise. spread estimates the variance from the distribution of the row's samples over its cells.
func (f Factor) Row(words *[SurvivalBins]uint64) Sums {
	var row spread
	var s Sums
	for bin, word := range words {
		if word == 0 {
			continue
		}
		c := decode(word)
		x := f.mean(bin, c)
		row.add(f.part(bin, c.n, x))
		s.N += c.n
		s.Survived += c.n * x
	}
	row.fit()
	for _, p := range row.parts {
		bulge := row.bulge(p)
		w := math.Exp(p.mean) * bulge / f.Inclusion
		s.Weight += p.n * w
		// Squared weights have twice the exponent and thus four times the variance.
		s.Square += p.n * w * w * bulge * bulge
	}
	return s
}

// mean is the mean x of a cell. Above 1024 slots x was rounded down to a unit, on average by half of one.
func (f Factor) mean(bin int, c cell) float64 {
	edge, _ := survivalEdges(bin)
	unit := float64(f.Slots) / survivalUnits
	return (edge+c.residual/c.n)*unit + max(0, unit-1)/2
}

func (f Factor) part(bin int, n, x float64) part {
	low, high := survivalEdges(bin)
	unit := float64(f.Slots) / survivalUnits
	p := part{n: n, mean: f.log(x), low: f.log(low * unit)}
	if math.IsInf(high, 1) {
		p.high = p.low + max(1, 4*(p.mean-p.low))
	} else {
		p.high = f.log(high * unit)
	}
	return p
}

// Samples counted in a cell.
func Samples(word uint64) uint64 { return word >> residualBits }

// Tallied splits the word that the data plane stores with a sum of weights: number of samples, and sum of their exponents.
func Tallied(word uint64) (n, exponents float64) {
	c := decode(word)
	return c.n, c.residual
}
