package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// ISPOptions describe a model of the border link of Zheng et al., "Unbiased Delay Measurement in the Data Plane", section 5: 10 million packets in 11.4 s, 61 %
// requests, 13 % of which are answered, mean delay 57.8 ms.
type ISPOptions struct {
	Packets  int           // 10,000,000
	Duration time.Duration // of the arrivals; 11.4 s for 10 million packets, else in proportion
	Requests float64       // share of packets; 0.61, exactly
	Answered float64       // share of requests; 0.13, exactly
	Mean     time.Duration // of the delays; 57.8 ms
	Carrier  Carrier       // Data
	V6       bool
	Seed     uint64
}

// ISP is a model: see ISPOptions. Arrivals are independent (a Poisson process); all answered requests get their
// response, so that the truth is not cut at the end: some thousand responses follow the last arrival.
//
// The paper states the mean, and that 2^9 ms is close to the 99th percentile. The body is ours: four populations of
// round trips, each log-normal, cut at 4 s, scaled together until the mean is exact.
type ISP struct{ pairs }

// population is a log-normal part of the delays.
type population struct {
	weight float64
	median float64 // ms
	sigma  float64 // of the logarithm
}

// ispDelays: p50 = 20 ms, p95 = 250 ms, p99 = 509 ms at the default mean.
var ispDelays = []population{
	{0.46, 9, 0.6},   // caches and servers in the same country
	{0.33, 30, 0.6},  // the continent
	{0.20, 140, 0.7}, // other continents, mobile and satellite users
	{0.01, 400, 0.5}, // full buffers, retransmissions
}

const ispLongest = 4000.0 // ms

func (o *ISPOptions) defaults() {
	setInt(&o.Packets, 10_000_000)
	setInt(&o.Duration, time.Duration(11.4e9*float64(o.Packets)/10e6))
	setFloat(&o.Requests, 0.61)
	setFloat(&o.Answered, 0.13)
	setInt(&o.Mean, 57_800*time.Microsecond)
}

// NewISP makes the model.
func NewISP(o ISPOptions) (*ISP, error) {
	o.defaults()
	requests := share(o.Requests, o.Packets)
	answered := share(o.Answered, requests)
	strays := o.Packets - requests - answered
	if requests < 0 || answered < 0 || answered > requests || strays < 0 ||
		o.Mean < time.Millisecond || o.Mean > 500*time.Millisecond {
		return nil, fmt.Errorf("make ISP traffic: impossible options %+v", o)
	}
	scale := fitMean(ispDelays, float64(o.Mean)/1e6, ispLongest)
	m := &ISP{pairs{
		rng:     newRand(o.Seed, 2),
		carrier: newCarrier(o.Carrier, Data, connections(requests), o.V6),
		delay:   mixture(ispDelays, scale, ispLongest),
		gap:     poisson(float64(o.Duration) / float64(max(requests+strays, 1))),
		now:     float64(Start),
	}}
	m.left.requests, m.left.answered, m.left.strays = requests, answered, strays
	return m, nil
}

// mixture draws delays in ns from populations whose medians are multiplied by scale, below longest ms.
func mixture(parts []population, scale, longest float64) func(*rand.Rand) int64 {
	return func(r *rand.Rand) int64 {
		for {
			part := pick(parts, r.Float64())
			ms := scale * part.median * math.Exp(part.sigma*r.NormFloat64())
			if ms < longest {
				return max(int64(ms*1e6), 1)
			}
		}
	}
}

func pick(parts []population, u float64) *population {
	for i := range parts {
		if u -= parts[i].weight; u < 0 {
			return &parts[i]
		}
	}
	return &parts[len(parts)-1]
}

// fitMean finds the scale at which the mean of the cut mixture is the one asked for, in ms. The mean grows with the
// scale, so halving the interval finds it.
func fitMean(parts []population, mean, longest float64) float64 {
	low, high := 1e-3, 1e3
	for range 100 {
		middle := math.Sqrt(low * high)
		if cutMean(parts, middle, longest) < mean {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// cutMean is the mean of the mixture below longest.
func cutMean(parts []population, scale, longest float64) float64 {
	var sum, mass float64
	for _, part := range parts {
		median := part.median * scale
		z := math.Log(longest/median) / part.sigma
		sum += part.weight * median * math.Exp(part.sigma*part.sigma/2) * normal(z-part.sigma)
		mass += part.weight * normal(z)
	}
	return sum / mass
}

// normal is the standard normal distribution function.
func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
