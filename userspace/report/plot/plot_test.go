package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// steps is a distribution of these values, each as often as the others, in order.
type steps []float64

func (s steps) Total() float64 { return float64(len(s)) }

func (s steps) Share(x float64) float64 {
	n := 0
	for _, v := range s {
		if v <= x {
			n++
		}
	}
	return float64(n) / float64(len(s))
}

func (s steps) At(share float64) float64 {
	return s[min(len(s)-1, int(share*float64(len(s))))]
}

func options(unicode bool, width, rows int) Options {
	return Options{Unicode: unicode, Width: width, Rows: rows, Tick: func(x float64) string { return fmt.Sprint(x) }}
}

// The area is as high as the share of values up to there, in eighths of a line, on an axis of the values' logarithms; the truth is a line of dots on it.
func TestLines(t *testing.T) {
	est := steps{1, 2, 4, 8, 8, 16, 16, 16}
	for _, c := range []struct {
		o     Options
		truth Curve
		want  string
	}{
		{options(true, 23, 4), nil, `
100 % │                
      │            ▄▄▄▄
 50 % │        ▄▄▄▄████
      │▄▄▄▄████████████
  0 % └────────────────
       1   2    5  10`},
		{options(false, 23, 4), nil, `
100 % |                
      |            ....
 50 % |        ....####
      |....############
  0 % +----------------
       1   2    5  10`},
		{options(false, 23, 3), nil, `
100 % |                
      |            ::::
      |....::::########
  0 % +----------------
       1   2    5  10`},
		{options(false, 23, 4), steps{1, 4, 4, 16}, `
100 % |        oooooooo
      |            ....
 50 % |oooooooo....####
      |....############
  0 % +----------------
       1   2    5  10`},
	} {
		if got := "\n" + strings.Join(Lines(c.o, est, c.truth), "\n"); got != c.want {
			t.Errorf("%+v:%s\nwant%s", c.o, got, c.want)
		}
	}
}

// Nothing is drawn of nothing, in too little space, or without an end; the axis reaches from the estimate and the truth to both.
func TestSpan(t *testing.T) {
	for what, c := range map[string]struct {
		width      int
		est, truth Curve
		lines      int
		low, high  float64
	}{
		"as it is": {19, steps{1, 2, 4}, nil, 5, 1, 4}, "narrow": {18, steps{1, 2, 4}, nil, 0, 0, 0}, "nothing": {40, steps{}, nil, 0, 0, 0}, "no truth": {40, steps{1, 2, 4}, steps{}, 5, 1, 4},
		"a wider truth": {40, steps{2, 3}, steps{1, 9}, 5, 1, 9}, "a narrower truth": {40, steps{1, 9}, steps{2, 3}, 5, 1, 9}, "zeros": {40, steps{0, 5000}, nil, 5, 1, 5000}, "below 1": {40, steps{0, 10}, nil, 5, .01, 10},
		"one value": {40, steps{3}, nil, 5, 2, 4.5}, "no end": {40, steps{1, math.Inf(1)}, nil, 0, 0, 0}, "only zeros": {40, steps{0}, nil, 0, 0, 0},
	} {
		if got := Lines(options(true, c.width, 3), c.est, c.truth); len(got) != c.lines {
			t.Errorf("%s: %q", what, got)
		}
		if c.lines == 0 {
			continue
		}
		if low, high := (plot{est: c.est, truth: c.truth}).span(); math.Abs(low-c.low) > 1e-9 || math.Abs(high-c.high) > 1e-9 {
			t.Errorf("%s: from %g to %g", what, low, high)
		}
	}
}

// Values under the axis are round, so many as make sense, and stand where they are.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		enough    int
		want      []float64
	}{
		{1, 1000, 4, []float64{1, 10, 100, 1000}}, {2, 30, 4, []float64{2, 5, 10, 20}}, {2, 30, 1, []float64{10}}, {.99, 9.9, 3, []float64{1, 2, 5}},
		{1.05, 1.65, 3, []float64{1.1, 1.2, 1.3, 1.4, 1.5, 1.6}}, {7e6, 8.5e6, 3, []float64{7e6, 8e6}},
	} {
		if got := tickValues(c.low, c.high, c.enough); !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*b }) {
			t.Errorf("%g to %g: %g, want %g", c.low, c.high, got, c.want)
		}
	}
	p := plot{low: 1, high: 1000, columns: 30}
	for column, want := range map[int]float64{0: math.Pow(10, .05), 10: math.Pow(10, 1.05), 29: math.Pow(10, 2.95)} {
		if got := p.at(column); math.Abs(got-want) > 1e-9*want || p.column(got) != column {
			t.Errorf("column %d is %g, and that is in %d", column, got, p.column(got))
		}
	}
}

// A spark is as high as its share of the largest; a window without a value is blank, and the latest ones are shown.
func TestSparks(t *testing.T) {
	past := []float64{5, 0, 1, 4, 7, 7.99, 8, 9, -1, math.NaN()}
	for _, c := range []struct {
		unicode bool
		most    float64
		width   int
		want    string
	}{{true, 8, 20, "▆▁▂▅████▁ "}, {false, 8, 9, "_.+####_ "}, {true, 8, 2, "▁ "}, {true, 0, 3, "▁▁ "}} {
		if got := Sparks(c.unicode, past, c.most, c.width); got != c.want {
			t.Errorf("%v: %q, want %q", c, got, c.want)
		}
	}
	for over, want := range map[float64]string{-1: "[....]", 0: "[....]", .49: "[#...]", .5: "[##..]", 1: "[####]", 2: "[####]"} {
		if got := Bar(false, over, 4); got != want {
			t.Errorf("%g: %s", over, got)
		}
	}
	if got := Bar(true, .5, 2); got != "[█░]" {
		t.Errorf("%s", got)
	}
}
