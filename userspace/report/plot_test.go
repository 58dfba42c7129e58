package report

import (
	"strings"
	"testing"
)

// The plot is next to the percentiles if there is space for its minimum width, else below them.
func TestPlotBesideOrBelow(t *testing.T) {
	d := logNormal("delay_ns", 1000, 1e7, 1)
	left := []string{strings.Repeat("left", 20)}
	for room, beside := range map[int]bool{minPlotWidth - 1: false, minPlotWidth: true, maxPlotWidth + 20: true} {
		lines := withPlot(left, d, nil, Style{Width: len(left[0]) + 3 + room})
		if got := len(strings.TrimSpace(strings.TrimPrefix(lines[0], left[0]))) > 0; got != beside {
			t.Errorf("with room for %d columns the plot is beside: %v\n%s", room, got, strings.Join(lines, "\n"))
		}
		if widest(lines) > len(left[0])+3+maxPlotWidth {
			t.Errorf("the plot is %d wide", widest(lines))
		}
	}
}
