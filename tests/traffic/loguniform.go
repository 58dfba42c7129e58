package traffic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// LogUniformOptions describe the synthetic trace of Zheng et al., "Unbiased Delay Measurement in the Data Plane", section 5.2.
type LogUniformOptions struct {
	Requests int           // 1,250,000: half a million samples, 1.75 million packets
	Rate     float64       // requests a second, at a constant rate; 1,000,000
	Answered float64       // share of requests; 0.4, exactly
	Max      time.Duration // the paper's T; 4096 ms
	// Min cuts the distribution below, which the paper leaves open with "(0, T)": Max/4096 unless given, twelve
	// octaves, so that both of the paper's ranges (T = 2^12 and 2^6 ms) have the same shape on a logarithmic axis.
	Min     time.Duration
	Carrier Carrier // Handshake
	V6      bool
	Seed    uint64
}

// LogUniform is a model: see LogUniformOptions.
type LogUniform struct{ pairs }

func (o *LogUniformOptions) defaults() {
	setInt(&o.Requests, 1_250_000)
	setFloat(&o.Rate, 1e6)
	setFloat(&o.Answered, 0.4)
	setInt(&o.Max, 4096*time.Millisecond)
	setInt(&o.Min, max(o.Max/4096, 1))
}

func setInt[T ~int | ~int64](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

func setFloat(v *float64, value float64) {
	if *v == 0 {
		*v = value
	}
}

// NewLogUniform makes the model. All answered requests get their response: the trace ends with the last of them.
func NewLogUniform(o LogUniformOptions) (*LogUniform, error) {
	o.defaults()
	if o.Requests < 0 || o.Requests >= strayFlows || o.Rate < 0 || o.Answered < 0 || o.Answered > 1 ||
		o.Min <= 0 || o.Min > o.Max {
		return nil, fmt.Errorf("make log-uniform traffic: impossible options %+v", o)
	}
	m := &LogUniform{pairs{
		rng:     newRand(o.Seed, 1),
		carrier: newCarrier(o.Carrier, Handshake, connections(o.Requests), o.V6),
		delay:   logUniform(float64(o.Min), float64(o.Max)),
		gap:     everySoOften(1e9 / o.Rate),
		now:     float64(Start),
	}}
	m.left.requests = o.Requests
	m.left.answered = share(o.Answered, o.Requests)
	return m, nil
}

// connections is how many carry n data segments: fifty each.
func connections(n int) int { return max(n/50, 1) }

func logUniform(low, high float64) func(*rand.Rand) int64 {
	ratio := math.Log(high / low)
	return func(r *rand.Rand) int64 { return int64(low * math.Exp(r.Float64()*ratio)) }
}
