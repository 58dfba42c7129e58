package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// scale is one step of a unit: 12300000 ns are 12.3 ms.
type scale struct {
	factor float64
	name   string
}

var (
	timeScales = []scale{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}
	byteScales = []scale{{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}}
	bitScales  = []scale{{1, "bit/s"}, {1e3, "kbit/s"}, {1e6, "Mbit/s"}, {1e9, "Gbit/s"}, {1e12, "Tbit/s"}}
	rateScales = []scale{{1, "/s"}, {1e3, "k/s"}, {1e6, "M/s"}, {1e9, "G/s"}}
)

func (u Unit) scales() []scale {
	switch u {
	case Nanosecond:
		return timeScales
	case Bytes:
		return byteScales
	case BitRate:
		return bitScales
	case PerSecond:
		return rateScales
	}
	return nil
}

// Human formats a value for people: 12.3 ms, 1.2 MiB, 3.4 %, 1,234,567. NaN is "-".
func Human(value any, unit Unit) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return typeset.Printable(v)
	case bool:
		return yesNo(v)
	}
	f, ok := Number(value)
	if !ok {
		return typeset.Printable(fmt.Sprint(value))
	}
	return humanNumber(f, unit)
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func humanNumber(f float64, unit Unit) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	switch scales := unit.scales(); {
	case scales != nil:
		s := pick(scales, f)
		return scaled(f, s) + " " + s.name
	case unit == Ratio:
		return percent(f) + " %"
	case unit == None && f == math.Trunc(f):
		return strconv.FormatFloat(f, 'f', 0, 64) // a port, a VLAN: names rather than amounts
	case unit == None:
		return typeset.Digits(f)
	default:
		return typeset.Thousands(math.Round(f))
	}
}

// pick chooses the largest step in which the value, rounded to three digits, is at least 1.
func pick(scales []scale, f float64) scale {
	chosen := scales[0]
	for _, s := range scales[1:] {
		if math.Abs(typeset.Round(f/s.factor)) >= 1 {
			chosen = s
		}
	}
	return chosen
}

// scaled formats f in the given step, without the step's name. The smallest step of a counted unit has no fraction.
func scaled(f float64, s scale) string {
	x := f / s.factor
	if s.factor == 1 && x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return typeset.Digits(x)
}

// percent formats a ratio as per cent without the sign: one decimal, two below 1 %, and below that enough for two significant
// digits.
func percent(f float64) string {
	x := 100 * f
	a := math.Abs(x)
	switch {
	case a == 0:
		return "0"
	case a >= 999.95:
		return typeset.Thousands(math.Round(x))
	case a >= 0.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 0.0995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a >= 0.000995:
		return strconv.FormatFloat(x, 'f', 1-int(math.Floor(math.Log10(a))), 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// signed writes a relative error: +1.2 %, -3.4 %.
func signed(f float64) string {
	text := humanNumber(f, Ratio)
	if f > 0 && !math.IsInf(f, 0) {
		return "+" + text
	}
	return text
}

// Enclosed writes a value with its ends in the same unit: "12.3 ms (12.0 .. 12.6)", a bound as "12.3 ms (at least 3.0, at most
// 40.1)". Ends that are NaN are omitted.
func Enclosed(value, low, high any, unit Unit, promise Promise) string {
	text := Human(value, unit)
	f, ok := Number(value)
	l, okLow := Number(low)
	h, okHigh := Number(high)
	if !ok || !okLow || !okHigh || math.IsNaN(f+l+h) || math.IsInf(f+l+h, 0) {
		return text
	}
	if promise == Bound {
		return fmt.Sprintf("%s (at least %s, at most %s)", text, bound(l, f, unit), bound(h, f, unit))
	}
	return fmt.Sprintf("%s (%s .. %s)", text, bound(l, f, unit), bound(h, f, unit))
}

// bound formats a bound in the same step as the value, without the step's name.
func bound(x, value float64, unit Unit) string {
	if scales := unit.scales(); scales != nil {
		return scaled(x, pick(scales, value))
	}
	if unit == Ratio {
		return percent(x)
	}
	return humanNumber(x, unit)
}

// Printable makes text safe for a terminal: control characters are escaped, except ends of lines.
func Printable(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = typeset.Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
