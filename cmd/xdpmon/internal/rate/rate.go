// Package rate reads events per second.
package rate

import (
	"fmt"
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

// Parse reads events per second: 1M/s, 500k/s, 200000.
func Parse(text string) (float64, error) {
	number := strings.TrimSuffix(text, "/s")
	factor := 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if n, ok := strings.CutSuffix(number, suffix); ok {
			number, factor = n, f
		}
	}
	f, err := algo.ParseFloat(number)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%q is not a rate like 1M/s, 500k/s or 200000", text)
	}
	return f * factor, nil
}
