package figure

import (
	"math"

	"gonum.org/v1/plot"
)

// Axis of a panel. With Base (2 or 10) it is logarithmic and marks powers of the base.
type Axis struct {
	Label    string
	Base     float64
	Min, Max float64 // both 0: what the data need
	// Format writes a mark; nil for Power.
	Format func(x float64) string
	// Every is the distance of marks, in powers of the base when it is logarithmic; 0: one (logarithmic) or what fits.
	Every float64
}

func (a Axis) apply(to *plot.Axis) {
	to.Label.Text = a.Label
	if a.Min != 0 || a.Max != 0 {
		to.Min, to.Max = a.place(a.Min), a.place(a.Max)
	}
	to.Tick.Marker = plot.TickerFunc(a.ticks)
}

// place of a value on the axis. Logarithms are taken here and not by gonum's LogScale, which thinks that the middle of such
// an axis, where its label stands, is the mean of its ends, and leaves space for the label up there.
func (a Axis) place(x float64) float64 {
	if a.Base > 0 {
		return math.Log(x) / math.Log(a.Base)
	}
	return x
}

func (a Axis) ticks(low, high float64) []plot.Tick {
	format := a.Format
	if format == nil {
		format = Power
	}
	if a.Base > 0 {
		return a.powers(low, high, format)
	}
	if a.Every == 0 {
		return labelled(plot.DefaultTicks{}.Ticks(low, high), format)
	}
	var ticks []plot.Tick
	first := math.Ceil(low/a.Every - 1e-9)
	for n := 0.0; (first+n)*a.Every <= high+1e-9*a.Every; n++ {
		x := (first + n) * a.Every
		ticks = append(ticks, plot.Tick{Value: x, Label: format(x)})
	}
	return ticks
}

func labelled(ticks []plot.Tick, format func(float64) string) []plot.Tick {
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = format(ticks[i].Value)
		}
	}
	return ticks
}

// powers marks powers of the base, and with base 10 the numbers between them without a label.
func (a Axis) powers(low, high float64, format func(float64) string) []plot.Tick {
	every := max(1, a.Every)
	var ticks []plot.Tick
	for e := math.Floor(low); e <= high+rounding; e++ {
		label := ""
		if math.Mod(e, every) == 0 {
			label = format(math.Pow(a.Base, e))
		}
		ticks = appendInside(ticks, plot.Tick{Value: e, Label: label}, low, high)
		for i := 2.0; a.Base == 10 && i < 10; i++ {
			ticks = appendInside(ticks, plot.Tick{Value: e + math.Log10(i)}, low, high)
		}
	}
	return ticks
}

const rounding = 1e-9

func appendInside(ticks []plot.Tick, t plot.Tick, low, high float64) []plot.Tick {
	if t.Value < low-rounding || t.Value > high+rounding {
		return ticks
	}
	return append(ticks, t)
}
