package fridge

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/lab/eval"
	"github.com/xdpmon/xdpmon/tests/bytecode"
)

// family is one way to measure; its settings are what is tuned.
type family struct {
	name string
	// settings of a number of entries. They are comparable between sizes: setting i of one is setting i of the next.
	settings []setting
}

type setting struct {
	name   string // "" when there is nothing to tune
	config func(entries int) bytecode.Config
}

// Families of figures 4 and 5, in the order of the curves.
const (
	oneWhole = iota // p = 1
	oneFridge
	twoFridges
	oneStage
	fourStages
	advised // T at the 99th percentile
	overwriting
	familyCount
)

func families() [familyCount]family {
	return [familyCount]family{
		oneWhole:   {"one fridge, p = 1", []setting{{"", func(n int) bytecode.Config { return fridges(fmt.Sprintf("%d@1", n), "tcp-data") }}}},
		oneFridge:  {"one fridge, best p", singles()},
		twoFridges: {"two fridges, best p1, p2", pairs()},
		oneStage:   {"naive, one stage, best T", naive(1)},
		fourStages: {"naive, four stages, best T", naive(4)},
		advised: {"naive, T = 512 ms (p99)", []setting{{"", func(n int) bytecode.Config {
			return array(n, 1, "expiry", "tcp-data", "expiry", "512ms")
		}}}},
		overwriting: {"naive, overwriting", []setting{{"", func(n int) bytecode.Config { return array(n, 1, "overwrite", "tcp-data") }}}},
	}
}

// singles are fridges by the lifetime that p gives them, in requests.
func singles() []setting {
	var list []setting
	for k := 14; k <= 19; k++ {
		list = append(list, setting{fmt.Sprintf("M/p = 2^%d", k), func(n int) bytecode.Config {
			return fridges(fmt.Sprintf("%d@%.9f", n, min(1, float64(n)/math.Exp2(float64(k)))), "tcp-data")
		}})
	}
	return list
}

// pairs are two fridges of half the memory each, by their lifetimes in requests.
func pairs() []setting {
	var list []setting
	for _, short := range []int{13, 15, 16, 17} {
		for _, long := range []int{17, 18, 19} {
			if short == long {
				continue
			}
			list = append(list, setting{fmt.Sprintf("M/p = 2^%d and 2^%d", short, long), func(n int) bytecode.Config {
				return fridges(pair(n, short, long), "tcp-data")
			}})
		}
	}
	return list
}

// pair routes to the long-lived fridge just what it admits, with p = 1, and the rest to the other one, so that no request
// is lost for having been sent to the wrong fridge. What both cannot take the short-lived one leaves.
func pair(entries, short, long int) string {
	half := float64(entries) / 2
	second := half / math.Exp2(float64(long))
	first := min(half/math.Exp2(float64(short)), 1-second)
	return fmt.Sprintf("%d@%.9f:%.9f,%d@1:%.9f", entries/2, first/(1-second), 1-second, entries/2, second)
}

// naive arrays by their threshold; overwriting is a threshold of 0.
func naive(stages int) []setting {
	list := []setting{{"overwriting", func(n int) bytecode.Config { return array(n, stages, "overwrite", "tcp-data") }}}
	for k := 7; k <= 12; k++ {
		list = append(list, setting{fmt.Sprintf("T = %d ms", 1<<k), func(n int) bytecode.Config {
			return array(n, stages, "expiry", "tcp-data", "expiry", fmt.Sprintf("%dms", 1<<k))
		}})
	}
	return list
}

// study of memory.
type memoryStudy struct {
	families [familyCount]family
	sizes    []int // entries
	tuned    [][familyCount]int
	result   *measured // sizes x families
}

// memory is figures 4 and 5: first the settings are searched with some seeds, at every second size; then they are
// measured with others, the sizes between taking the setting of the one below.
func memory(ctx context.Context, p *eval.Page) error {
	s := &memoryStudy{families: families(), sizes: eval.Pick(p, powers(8, 16), powers(8, 10))}
	tr := isp(eval.Pick(p, 5_000_000, 500_000))
	p.Log("searching settings")
	if err := s.tune(ctx, tr, seeds(2, 40)); err != nil {
		return err
	}
	p.Log("measuring")
	if err := s.measure(ctx, tr, seeds(eval.Pick(p, 10, 2), 4)); err != nil {
		return err
	}
	return s.write(p)
}

func powers(from, to int) []int {
	var list []int
	for k := from; k <= to; k++ {
		list = append(list, 1<<k)
	}
	return list
}

func (s *memoryStudy) tune(ctx context.Context, tr trace, seeds []uint64) error {
	var configs []bytecode.Config
	for i := 0; i < len(s.sizes); i += 2 {
		for _, f := range s.families {
			if len(f.settings) == 1 {
				continue
			}
			for _, set := range f.settings {
				configs = append(configs, set.config(s.sizes[i]))
			}
		}
	}
	m, err := measure(ctx, tr, seeds, configs)
	if err != nil {
		return err
	}
	s.tuned = make([][familyCount]int, len(s.sizes))
	at := 0
	for i := range s.sizes {
		if i%2 == 1 {
			s.tuned[i] = s.tuned[i-1]
			continue
		}
		for k, f := range s.families {
			if len(f.settings) > 1 {
				s.tuned[i][k] = m.best(at, len(f.settings))
				at += len(f.settings)
			}
		}
	}
	return nil
}

// best of n configurations from the one numbered first on.
func (m *measured) best(first, n int) int {
	best := 0
	for i := range n {
		if m.score(first+i) < m.score(first+best) {
			best = i
		}
	}
	return best
}

func (s *memoryStudy) measure(ctx context.Context, tr trace, seeds []uint64) (err error) {
	var configs []bytecode.Config
	for i, entries := range s.sizes {
		for k, f := range s.families {
			configs = append(configs, f.settings[s.tuned[i][k]].config(entries))
		}
	}
	s.result, err = measure(ctx, tr, seeds, configs)
	return err
}

func (s *memoryStudy) outcome(size, family int) *outcome {
	return s.result.outcomes[size*familyCount+family]
}

// curve of the errors of a family over the sizes.
func (s *memoryStudy) curve(family, kind int, of func(*outcome) errs) []float64 {
	list := make([]float64, len(s.sizes))
	for i := range s.sizes {
		list[i] = of(s.outcome(i, family))[kind]
	}
	return list
}

// single and combined errors, for curve.
func (s *memoryStudy) single(o *outcome) errs   { return o.single(s.result.truth) }
func (s *memoryStudy) combined(o *outcome) errs { return s.result.truth.errors(o.combined()) }
