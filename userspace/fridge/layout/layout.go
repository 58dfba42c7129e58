// Package layout divides the slots of a fridge: sizes, entry probabilities and shares, and where each part begins in the arrays.
package layout

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
)

const (
	Most = 4       // FRIDGES of bpf/fridge/fridge.bpf.c
	One  = 1 << 16 // probabilities are compared with 16 bits of hash

	LeastSlots  = 2
	MostSlots   = 1 << 20
	maxShards   = 1024 // of all fridges together: four pages of counters
	fairShard   = 256  // slots of a shard below which splitting further is refused
	slotsSyntax = "powers of two from 2 to 1048576"
)

// Auto is the value of what is derived from other parameters.
const Auto = "auto"

// Quarters are the parts of a fridge whose probabilities may change: a request's part depends on its hash only. entries is a power of two.
func Quarters(entries int) []Part {
	parts := make([]Part, Most)
	for k := range parts {
		parts[k] = Part{Slots: entries / Most, P: 1, Share: 1.0 / Most}
	}
	return parts
}

// autoEntries of fridges=auto without a number.
const autoEntries = 65536

// leastAuto slots in all: a quarter of them is one part.
const leastAuto = 64

// Read reads the fridges; slots is 0 where their probabilities are fixed.
func Read(text string) (parts []Part, slots int, err error) {
	rest, follows := strings.CutPrefix(text, Auto)
	if !follows {
		parts, err = Parse(text)
		return parts, 0, err
	}
	slots = autoEntries
	if rest != "" {
		number, sized := strings.CutPrefix(rest, ":")
		if slots, err = strconv.Atoi(number); !sized || err != nil || slots < leastAuto || slots > MostSlots || slots&(slots-1) != 0 {
			return nil, 0, fmt.Errorf("%q: auto, or auto:ENTRIES with a power of two from %d to %d", text, leastAuto, MostSlots)
		}
	}
	return Quarters(slots), slots, nil
}

// errFridges is wrapped by every error in the list of fridges.
var errFridges = errors.New("give SIZE@P[:SHARE],...: 65536@1, or 32768@1/2,32768@1/64, or 4096@1:15/16,4096@1/2:1/16")

// Part is one fridge: slots, entry probability, and the share of all requests that are routed to it.
type Part struct {
	Slots  int
	P      float64
	Share  float64
	Shards int
}

// Inclusion is the probability that a request is put into this fridge.
func (p Part) Inclusion() float64 { return p.P * p.Share }

// Factor corrects the samples of this fridge.
func (p Part) Factor() delay.Factor {
	return delay.Factor{Slots: p.Slots / p.Shards, Inclusion: p.Inclusion()}
}

// Lifetime is the mean number of requests, of all fridges together, until a record of this fridge is overwritten: M/p of section
// 3.3.
func (p Part) Lifetime() float64 { return float64(p.Slots) / p.Inclusion() }

func (p Part) String() string {
	return fmt.Sprintf("%d@%s", p.Slots, Fraction(p.P))
}

// Fraction writes a probability as people do: 1, 1/64, 0.3.
func Fraction(p float64) string {
	if n := math.Round(1 / p); n >= 1 && math.Abs(p*n-1) < 1e-3 {
		if n == 1 {
			return "1"
		}
		return "1/" + strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(p, 'g', 3, 64)
}

// Parse reads the list of fridges. Probabilities and shares are returned as the data plane rounds them, so that the
// correction uses exact values.
func Parse(text string) ([]Part, error) {
	words := strings.Split(text, ",")
	if len(words) > Most {
		return nil, fmt.Errorf("%d fridges, at most %d can be combined: %w", len(words), Most, errFridges)
	}
	parts := make([]Part, len(words))
	for i, word := range words {
		var err error
		if parts[i], err = parsePart(strings.TrimSpace(word)); err != nil {
			return nil, err
		}
	}
	return parts, shares(parts)
}

func parsePart(word string) (Part, error) {
	size, rest, ok := strings.Cut(word, "@")
	if !ok {
		return Part{}, fmt.Errorf("%q has no entry probability: %w", word, errFridges)
	}
	slots, err := strconv.Atoi(size)
	if err != nil || slots < LeastSlots || slots > MostSlots || slots&(slots-1) != 0 {
		return Part{}, fmt.Errorf("%q entries: sizes are %s", size, slotsSyntax)
	}
	p, share, hasShare := strings.Cut(rest, ":")
	part := Part{Slots: slots}
	if part.P, err = probability("entry probability", p); err != nil {
		return Part{}, err
	}
	if hasShare {
		part.Share, err = probability("share", share)
	}
	return part, err
}

// probability reads a number of (0, 1] and rounds it to 2^-16.
func probability(what, text string) (float64, error) {
	p, err := algo.ParseFloat(text)
	if err != nil || !(p >= 0.5/One && p <= 1) {
		return 0, fmt.Errorf("%s %q: allowed are 1/65536 to 1, in steps of 1/65536", what, text)
	}
	return max(1, math.Round(p*One)) / One, nil
}

// shares divides the unassigned share equally among the fridges without one, and rounds so that the sum is exactly 1.
func shares(parts []Part) error {
	given, open := 0.0, 0
	for _, p := range parts {
		given += p.Share
		if p.Share == 0 {
			open++
		}
	}
	if open == 0 && math.Abs(given-1) > 0.001 || open > 0 && given >= 1 {
		return fmt.Errorf("the shares of the fridges add up to %.4g, they must make 1: %w", given, errFridges)
	}
	before, exact := 0, 0.0
	for i := range parts {
		if parts[i].Share == 0 {
			parts[i].Share = (1 - given) / float64(open)
		}
		exact += parts[i].Share
		route := int(math.Round(exact * One))
		if i == len(parts)-1 {
			route = One
		}
		parts[i].Share = float64(route-before) / One
		if route <= before {
			return fmt.Errorf("share of fridge %d is below 1/65536: %w", i+1, errFridges)
		}
		before = route
	}
	return nil
}

// Shard splits the insertion counters. auto: as many shards as fit, each of 256 slots or more.
func Shard(parts []Part, text string) error {
	if text == Auto {
		limit := maxShards / (1 << bits.Len(uint(len(parts)-1)))
		for i := range parts {
			parts[i].Shards = min(limit, max(1, parts[i].Slots/fairShard))
		}
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxShards || n&(n-1) != 0 {
		return fmt.Errorf("%q shards: allowed are auto and powers of two from 1 to %d", text, maxShards)
	}
	for i := range parts {
		if parts[i].Slots/n < LeastSlots {
			return fmt.Errorf("%d shards of %d entries: a shard needs %d entries at least", n, parts[i].Slots, LeastSlots)
		}
		parts[i].Shards = n
	}
	return nil
}

// Totals of the arrays that the parts share.
func Totals(parts []Part) (slots, shards int) {
	for _, p := range parts {
		slots += p.Slots
		shards += p.Shards
	}
	return slots, shards
}

// Of places the parts one after the other in the arrays.
func Of(parts []Part) (out [Most]bpf.FridgeFridgePart) {
	base, shard, route := 0, 0, 0.0
	for i, p := range parts {
		route += p.Share
		out[i] = bpf.FridgeFridgePart{
			Base: uint32(base), Bits: log2(p.Slots),
			Shard: uint32(shard), ShardBits: log2(p.Shards),
			Admit: uint32(math.Round(p.P * One)), Route: uint32(math.Round(route * One)),
		}
		base += p.Slots
		shard += p.Shards
	}
	return out
}

func log2(n int) uint32 { return uint32(bits.Len(uint(n)) - 1) }
