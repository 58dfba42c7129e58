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

	"github.com/xdpmon/xdpmon/lab/bench"
)

// compared are the figures of two builds of this command.
type compared struct {
	rows          []bench.Row // of the first turn of this build: what there is, in order
	before, after map[[2]string][]bench.Cell
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
	c := compared{before: map[[2]string][]bench.Cell{}, after: map[[2]string][]bench.Cell{}}
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
func (c *compared) turn(binary, dir string, args []string, into map[[2]string][]bench.Cell) ([]bench.Row, error) {
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
			into[[2]string{row.Subject, name}] = append(into[[2]string{row.Subject, name}], cell)
		}
	}
	return result.Rows, nil
}

// write shows what both builds know; the first subject is what the others are over. Where a neighbour disturbs half of the turns, the
// least shows more than the median: what the fastest turn took over what the mutator took in its fastest.
func (c *compared) write(w io.Writer, turns int) error {
	var b strings.Builder
	c.table(&b, fmt.Sprintf("medians of %d turns", turns), median)
	c.table(&b, fmt.Sprintf("least of %d turns", turns), least)
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *compared) table(b *strings.Builder, what string, of func([]bench.Cell) float64) {
	fmt.Fprintf(b, "nanoseconds a packet over the mutator, before to after: %s\n\n| program |", what)
	for _, k := range bench.Cases {
		fmt.Fprintf(b, " %s |", k.Name)
	}
	b.WriteString("\n|:---|" + strings.Repeat("---:|", len(bench.Cases)) + "\n")
	for _, row := range c.rows[1:] {
		fmt.Fprintf(b, "| %s |", row.Subject)
		for _, k := range bench.Cases {
			key := [2]string{row.Subject, k.Name}
			before, after := of(c.before[key]), of(c.after[key])
			fmt.Fprintf(b, " %.1f to %.1f (%+.1f) |", before, after, after-before)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// least is what took least of all turns, over the least of the empty program of its hook; NaN where one build does not know the subject.
func least(cells []bench.Cell) float64 {
	if len(cells) == 0 {
		return math.NaN()
	}
	total, empty := math.Inf(1), math.Inf(1)
	for _, c := range cells {
		total, empty = min(total, c.Total), min(empty, c.Total-c.NS)
	}
	return total - empty
}

// median of what each turn took over its own empty program.
func median(cells []bench.Cell) float64 {
	var v []float64
	for _, c := range cells {
		v = append(v, c.NS)
	}
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
