package fridge

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/userspace/report"
)

const millisecond = 1e6 // ns

// delayAxis is a logarithmic axis of delays in ms.
func delayAxis(from, to float64) figure.Axis {
	return figure.Axis{Label: "delay, ms", Base: 2, Min: from, Max: to, Every: 2}
}

// errorAxis is a logarithmic axis of errors in per cent.
func errorAxis(label string) figure.Axis {
	return figure.Axis{Label: label, Base: 10, Format: func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) + " %" }}
}

// entriesAxis is a logarithmic axis of memory.
func entriesAxis(from, to float64) figure.Axis {
	return figure.Axis{Label: "memory, entries", Base: 2, Min: from, Max: to, Every: 2}
}

// cdfPoints draws a CDF between two delays in ms, 32 points an octave.
func cdfPoints(share func(ns float64) float64, from, to float64) []figure.Point {
	var list []figure.Point
	for x := from; x <= to; x *= math.Exp2(1.0 / 32) {
		list = append(list, figure.Point{X: x, Y: 100 * share(x*millisecond)})
	}
	return list
}

// share of the truth below a delay.
func (t truth) share(ns float64) float64 {
	low, high := 0, len(t)
	for low < high {
		if mid := (low + high) / 2; float64(t[mid]) <= ns {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return float64(low) / float64(len(t))
}

// gapPoints draws log2(estimate/truth) in per cent over the percentiles from 1 to 99.
func (t truth) gapPoints(d report.Distribution) []figure.Point {
	var list []figure.Point
	for percent := 1; percent <= 99; percent++ {
		list = append(list, figure.Point{X: float64(percent), Y: 100 * t.gap(d, float64(percent)/100)})
	}
	return list
}

func ms(ns float64) string {
	if math.IsNaN(ns) {
		return "-"
	}
	return fmt.Sprintf("%.3g ms", ns/millisecond)
}

// percents are the errors of the four kinds as cells.
func (e errs) percents() []string {
	cells := make([]string, len(e))
	for i, x := range e {
		cells[i] = figure.Percent(x)
	}
	return cells
}

// small panels stand four in a row.
func small(panels []figure.Panel) *figure.Figure {
	return &figure.Figure{Panels: panels, Width: 9 * vg.Centimeter, Height: 9 * vg.Centimeter}
}
