package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval"
)

// section of the document that has the table.
const section = "rows"

// head of the table.
const head = "| flows, capacity, hook, round trip | asked for | runs | use | off a share of what passed, 1 s | off a share of the capacity, 1 s | flows' means off by weight | when, UTC; commit; load |\n" +
	"|:---|:---|---:|---:|---:|---:|---:|:---|\n"

// asked is the bar of a row: use, and how far off a share.
func (r run) asked() string {
	switch {
	case r.weights != nil:
		return "15 % by weight"
	case r.congestion != "cubic" || r.delay == 0:
		return ""
	}
	use, off := ".88", "14 %"
	if r.hook == "tc" {
		use = ".85"
	}
	if r.flows == 8 {
		off = "16 %"
	}
	return use + ", " + off
}

// line is the row of the table: medians.
func (r run) line(results []result) string {
	percent := func(of func(result) float64) string { return fmt.Sprintf("%.1f %%", 100*median(results, of)) }
	commit, _ := exec.Command("git", "log", "-1", "--format=%h").Output()
	load, _ := os.ReadFile("/proc/loadavg")
	return fmt.Sprintf("| %v | %s | %d of %d s | %.2f | %s | %s | %s | %s; %s; %s |", r, r.asked(), len(results), *seconds,
		median(results, func(r result) float64 { return r.use }), percent(func(r result) float64 { return r.deviation }),
		percent(func(r result) float64 { return r.ideal }), percent(func(r result) float64 { return r.weighted }),
		time.Now().UTC().Format("2006-01-02 15:04"), strings.TrimSpace(string(commit)), strings.Fields(string(load) + " ?")[0])
}

// keep puts a row into the table of a document, in the place of the one of the same name.
func keep(path, line string) error {
	old, err := eval.ReadSection(path, section)
	if err != nil {
		return err
	}
	return eval.WriteSection(path, section, merged(old, line))
}

func merged(table, line string) string {
	name := func(line string) string {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			return strings.TrimSpace(cells[1])
		}
		return ""
	}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) < 2 {
		lines = nil
	} else {
		lines = lines[2:] // the head
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return name(l) == name(line) }); i >= 0 {
		lines[i] = line
	} else {
		lines = append(lines, line)
	}
	place := func(l string) int {
		i := slices.IndexFunc(rows(), func(r run) bool { return r.String() == name(l) })
		if i < 0 {
			return len(rows()) // somebody's own
		}
		return i
	}
	slices.SortStableFunc(lines, func(a, b string) int { return place(a) - place(b) })
	return head + strings.Join(lines, "\n") + "\n"
}
