package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/tests/bench"
)

// compared are the figures of two builds of this command: by subject and case, one of each turn.
type compared struct {
	rows          []bench.Row // of the first turn of this build: what there is, in order
	before, after map[[2]string][]float64
}

// compare runs another build of this command (built from an earlier commit) and this one by turns, so that a disturbance
// hits both, and shows the medians. args are theirs.
func compare(w io.Writer, other string, turns int, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "xdpmon-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := compared{before: map[[2]string][]float64{}, after: map[[2]string][]float64{}}
	for turn := range turns {
		if _, err := c.turn(other, dir, args, c.before); err != nil {
			return err
		}
		rows, err := c.turn(self, dir, args, c.after)
		if err != nil {
			return err
		}
		if turn == 0 {
			c.rows = rows
		}
		log.Printf("turn %d of %d", turn+1, turns)
	}
	return c.write(w, turns)
}

// turn is one run of one build.
func (c *compared) turn(binary, dir string, args []string, into map[[2]string][]float64) ([]bench.Row, error) {
	file := filepath.Join(dir, "result.json")
	out, err := exec.Command(binary, append([]string{"-json", file}, args...)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", binary, err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var result bench.Result
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", binary, err)
	}
	for _, row := range result.Rows {
		for name, cell := range row.Cells {
			into[[2]string{row.Subject, name}] = append(into[[2]string{row.Subject, name}], cell.NS)
		}
	}
	return result.Rows, nil
}

// write shows what both builds know; the first subject is what the others are over.
func (c *compared) write(w io.Writer, turns int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "nanoseconds a packet over the mutator, before to after: medians of %d turns\n\n| program |", turns)
	for _, k := range bench.Cases {
		fmt.Fprintf(&b, " %s |", k.Name)
	}
	b.WriteString("\n|:---|" + strings.Repeat("---:|", len(bench.Cases)) + "\n")
	for _, row := range c.rows[1:] {
		fmt.Fprintf(&b, "| %s |", row.Subject)
		for _, k := range bench.Cases {
			key := [2]string{row.Subject, k.Name}
			before, after := median(c.before[key]), median(c.after[key])
			fmt.Fprintf(&b, " %.1f to %.1f (%+.1f) |", before, after, after-before)
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// median of what was measured; NaN where one build does not know the subject.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
