package main

import (
	"fmt"
	"regexp"
	"strings"
)

// metric is a line of docs/output.md.
type metric struct{ name, unit, meaning string }

// names are metrics by algorithm and name of the report.
type names map[string]map[string]metric

var (
	algorithmLine = regexp.MustCompile("^### `([a-z-]+)`$")
	nameLine      = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]*) \\| `?([a-z0-9_]*)`? \\| (.*) \\|$")
)

func parseNames(text string) (names, error) {
	all, algorithm := names{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := algorithmLine.FindStringSubmatch(line); m != nil {
			algorithm = m[1]
			all[algorithm] = map[string]metric{}
		}
		if m := nameLine.FindStringSubmatch(line); m != nil && algorithm != "" && m[3] != "" {
			all[algorithm][m[1]] = metric{m[3], strings.TrimSpace(m[2]), strings.ReplaceAll(m[4], "\\|", "|")}
		}
	}
	if len(all) < 8 {
		return nil, fmt.Errorf("read names: %d algorithms, expected more", len(all))
	}
	return all, nil
}

// of is the metric of a report's name; a name that was removed ends the program, so that no dashboard asks for it.
func (n names) of(algorithm, name string) metric {
	m, ok := n[algorithm][name]
	if !ok {
		panic(fmt.Sprintf("docs/output.md has no metric %s of %s", name, algorithm))
	}
	return m
}

// suffixed puts a suffix before the unit: xdpmon_fridge_delay_seconds, _window, is xdpmon_fridge_delay_window_seconds.
func (m metric) suffixed(suffix string) string {
	for _, unit := range []string{"_bytes_per_second", "_seconds", "_bytes", "_ratio", "_per_second"} {
		if stem, ok := strings.CutSuffix(m.name, unit); ok {
			return stem + suffix + unit
		}
	}
	return m.name + suffix
}

// units of Grafana, by those of reports; bit/s are bytes a second in metrics.
var units = map[string]string{"ns": "s", "bytes": "bytes", "ratio": "percentunit", "bit/s": "Bps", "1/s": "cps", "": "short"}

func (m metric) grafana() string {
	if u, ok := units[m.unit]; ok {
		return u
	}
	return "short"
}
