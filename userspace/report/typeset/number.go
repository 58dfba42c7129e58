package typeset

import (
	"math"
	"strconv"
)

// Round rounds to three significant digits.
func Round(x float64) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	return r
}

// Digits writes three significant digits without an exponent; above 1000 all digits before the point.
func Digits(x float64) string {
	a := math.Abs(Round(x))
	switch {
	case a >= 100:
		return Thousands(math.Round(x))
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case a >= 1e-4:
		return strconv.FormatFloat(x, 'f', 2-int(math.Floor(math.Log10(a))), 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Thousands writes a whole number with a comma at every third digit.
func Thousands(f float64) string {
	text := strconv.FormatFloat(math.Abs(f), 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if f < 0 {
		return "-" + text
	}
	return text
}
