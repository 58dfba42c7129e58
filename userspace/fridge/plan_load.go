package fridge

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
)

// load is what a plan is made for.
type load struct {
	rate     float64 // requests per ns
	longest  float64 // ns
	shortest float64 // ns
	answered float64 // share of the requests
	window   float64 // ns over which a report adds up
	cpus     int
	memory   int64 // bytes
}

// defaultOctaves lie between the shortest and the longest delay unless min-delay is given: the figures of section 5.2 span 6 and
// 12.
const defaultOctaves = 12

var errPlan = errors.New("a plan for the fridge")

func readLoad(a algo.PlanArgs) (load, error) {
	l := load{rate: a.RatePerSecond / 1e9, longest: float64(a.MaxDelayNS), answered: 0.4, window: 10e9,
		cpus: maps.PossibleCPUs(), memory: a.MemoryBytes}
	l.shortest = l.longest / (1 << defaultOctaves)
	if !(l.rate > 0) || l.longest <= 0 || l.memory <= 0 {
		return l, fmt.Errorf("%w: rate, longest delay and memory must be positive", errPlan)
	}
	for key, text := range a.Extra {
		if err := l.extra(key, text); err != nil {
			return l, fmt.Errorf("%w: --extra %s=%s: %w", errPlan, key, text, err)
		}
	}
	if l.shortest >= l.longest {
		return l, fmt.Errorf("%w: --extra min-delay must be shorter than --max-delay", errPlan)
	}
	return l, nil
}

func (l *load) extra(key, text string) error {
	switch key {
	case "answered":
		f, err := algo.ParseFloat(text)
		if err != nil || !(f > 0 && f <= 1) {
			return errors.New("a share of the requests, above 0 up to 1")
		}
		l.answered = f
	case "window", "min-delay":
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return errors.New("a time like 10s")
		}
		if key == "window" {
			l.window = float64(d)
		} else {
			l.shortest = float64(d)
		}
	case "cpus":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 8192 {
			return errors.New("a number of CPUs")
		}
		l.cpus = n
	default:
		return errors.New("known are answered, window, min-delay, cpus")
	}
	return nil
}
