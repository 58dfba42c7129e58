package precision

import "github.com/xdpmon/xdpmon/userspace/heavy"

// Reference is an algorithm in plain Go: it counts a packet and returns the estimate of its flow, 0 without an entry.
type Reference interface {
	Add(heavy.Key) float64
	Counts() map[heavy.Key]float64
}

// Refer runs a stream through a reference.
func Refer(r Reference, stream *Stream) *Outcome {
	counts, sum := make([]float64, len(stream.Keys)), 0.0
	for _, rank := range stream.Order {
		counts[rank]++
		off := r.Add(stream.Keys[rank]) - counts[rank]
		sum += off * off
	}
	return &Outcome{Counts: r.Counts(), MSE: sum / float64(len(stream.Order))}
}
