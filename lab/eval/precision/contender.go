package precision

import (
	"fmt"
	"math/rand/v2"

	"github.com/xdpmon/xdpmon/lab/eval/precision/references"
	"github.com/xdpmon/xdpmon/tests/precision"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// contender is a row of a table.
type contender struct {
	name string
	run  func(entries int, stream *precision.Stream, seed *seeded, arrivals bool) (*precision.Outcome, error)
}

// seeded is what the runs of a seed share: benches by the delay of second passes.
type seeded struct {
	seed    uint64
	benches map[int]*precision.Bench
}

func newSeeded(seed uint64) *seeded { return &seeded{seed, map[int]*precision.Bench{}} }

func (s *seeded) bench(delay int) (*precision.Bench, error) {
	if b := s.benches[delay]; b != nil {
		return b, nil
	}
	b, err := precision.NewBench(s.seed, delay)
	if err == nil {
		s.benches[delay] = b
	}
	return b, err
}

func (s *seeded) close() {
	for _, b := range s.benches {
		b.Close()
	}
}

// program is a contender that runs as bytecode.
func program(name string, make func(entries int) (*precision.Contender, error)) contender {
	return contender{name, func(entries int, stream *precision.Stream, seed *seeded, arrivals bool) (*precision.Outcome, error) {
		c, err := make(entries)
		if err != nil {
			return nil, err
		}
		b, err := seed.bench(c.Delay)
		if err != nil {
			return nil, err
		}
		return b.Run(c, stream, arrivals)
	}}
}

// initialOfFigures is the initial value of the dissertation's figures.
const initialOfFigures = 100

// own is PRECISION with the initial value of the dissertation's figures unless another is set, and with the entries rounded down to a
// multiple of the ways.
func own(name string, set map[string]string) contender {
	return program(name, func(entries int) (*precision.Contender, error) {
		if set["ways"] == "3" {
			entries = entries / 3 * 3
		}
		with := map[string]string{"entries": fmt.Sprint(entries), "initial": fmt.Sprint(initialOfFigures)}
		for k, v := range set {
			with[k] = v
		}
		return precision.Precision(with)
	})
}

// demanded is the configuration that the bars are stated for.
func demanded() contender {
	return own("exact, initial 1", map[string]string{"admission": "exact", "initial": "1", "recirculation": "1"})
}

func usual() contender { return own("9/8, initial 100", nil) }

// shipped are the defaults.
func shipped() contender { return own("defaults", map[string]string{"initial": "auto"}) }

func hashpipe(ways int) contender {
	return program(fmt.Sprintf("HashPipe, d = %d", ways), func(entries int) (*precision.Contender, error) {
		return precision.HashPipe(ways, entries, ways)
	})
}

// hashpipeSeen is HashPipe as a packet sees it: what has moved on from the first way is not known there.
func hashpipeSeen() contender {
	return program("HashPipe, d = 2, first way alone", func(entries int) (*precision.Contender, error) {
		return precision.HashPipe(2, entries, 1)
	})
}

func cocosketch() contender {
	return program("CocoSketch, d = 2", func(entries int) (*precision.Contender, error) { return precision.CocoSketch(2, entries) })
}

// reference is a contender in plain Go.
func reference(name string, make func(entries int, random *rand.Rand) precision.Reference) contender {
	return contender{name, func(entries int, stream *precision.Stream, seed *seeded, _ bool) (*precision.Outcome, error) {
		return precision.Refer(make(entries, rand.New(rand.NewPCG(seed.seed, 11))), stream), nil
	}}
}

func spaceSaving() contender {
	return reference("Space-Saving", func(entries int, _ *rand.Rand) precision.Reference { return references.NewSpaceSaving(entries) })
}

func rap() contender {
	return reference("RAP", func(entries int, random *rand.Rand) precision.Reference {
		return references.NewRAP(entries, random.Float64)
	})
}

func setRAP(ways int) contender {
	return reference(fmt.Sprintf("RAP, rows of %d", ways), func(entries int, random *rand.Rand) precision.Reference {
		seed := random.Uint64()
		return references.NewSetRAP(entries, ways, func(k heavy.Key) uint64 { return hash(seed, k) }, random.Float64)
	})
}

func hash(h uint64, k heavy.Key) uint64 {
	for _, w := range k {
		h = (h ^ w) * 0xd6e8feb86659fd93
		h ^= h >> 29
	}
	return h
}

// plain is PRECISION in plain Go, with more ways than the program has.
func plain(ways int) contender {
	return contender{fmt.Sprintf("ways = %d, plain Go", ways), func(entries int, stream *precision.Stream, seed *seeded, _ bool) (*precision.Outcome, error) {
		p := precision.NewPlainWays(ways, entries, initialOfFigures, seed.seed, precision.PlainNineEighths)
		out := precision.Refer(p, stream)
		out.Recirculated.Granted = p.Taken
		return out, nil
	}}
}

// unadapted is PRECISION with nothing but limited associativity: "NoAdaptation" of figure 3.6 with exact probabilities.
func unadapted() contender {
	return contender{"no adaptation", func(entries int, stream *precision.Stream, seed *seeded, _ bool) (*precision.Outcome, error) {
		return precision.Refer(precision.NewPlain(entries, 0, seed.seed, precision.PlainExact), stream), nil
	}}
}

// rounded is unadapted with probabilities of the form 2^-x: "2-Approximate" of figure 3.6.
func rounded() contender {
	return contender{"2-approximate", func(entries int, stream *precision.Stream, seed *seeded, _ bool) (*precision.Outcome, error) {
		return precision.Refer(precision.NewPlainPow2(entries, 0, seed.seed), stream), nil
	}}
}
