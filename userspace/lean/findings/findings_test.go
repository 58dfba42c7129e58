package findings

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Segments that are sent again because several in a row are missing here were lost before, whatever the number of gaps; the others were lost after.
func TestResentBesideGaps(t *testing.T) {
	for name, c := range map[string]struct {
		values map[string]float64
		want   float64 // share sent again though they had passed here
	}{
		"a queue before that overflows": {map[string]float64{"loss_gaps": 27, "loss_missing": 105704, "retransmitted": 75}, 0},
		"lost after":                    {map[string]float64{"loss_gaps": 0, "loss_missing": 0, "retransmitted": 75}, 75. / 4000},
		"both":                          {map[string]float64{"loss_gaps": 10, "loss_missing": 14600, "retransmitted": 75}, 60. / 4000},
		"short segments":                {map[string]float64{"loss_gaps": 10, "loss_missing": 1000, "retransmitted": 75}, 60. / 4000},
		"late, not lost":                {map[string]float64{"loss_gaps": 27, "loss_missing": 105704, "loss_given_back": 27, "retransmitted": 75}, 75. / 4000},
		"bytes are not counted":         {map[string]float64{"loss_gaps": 10, "loss_missing": math.NaN(), "retransmitted": 75}, 60. / 4000},
	} {
		l := report.Line{Algorithm: "lean", Report: report.Body{Values: []report.Value{{Name: "loss_examined", Value: 4000.}, {Name: "retrans_examined", Value: 4000.}}}}
		if _, is := c.values["loss_given_back"]; !is {
			c.values["loss_given_back"] = 0
		}
		for field, v := range c.values {
			l.Report.Values = append(l.Report.Values, report.Value{Name: field, Value: v})
		}
		for _, m := range Of(l).Measures {
			if m.Symptom == finding.Resent && math.Abs(m.Value.Value-c.want) > 1e-9 {
				t.Errorf("%s: %v are sent again, want %v", name, m.Value.Value, c.want)
			}
		}
	}
}

// A network from which segments are missing is measured by itself, of all segments of its interface; what is missing from others, or little, is not its own.
func TestHolesFrom(t *testing.T) {
	type row struct {
		src       string
		lost, low float64
	}
	for name, c := range map[string]struct {
		examined float64
		rows     []row
		want     string
	}{
		"one network":    {10000, []row{{"10.1.1.1", 30 * segmentBytes, 28 * segmentBytes}, {"10.1.1.2", 10 * segmentBytes, 9 * segmentBytes}, {"10.1.2.1", segmentBytes, segmentBytes}}, "10.1.1.0/24 0.0040 apart=true"},
		"few":            {10000, []row{{"10.1.1.1", 12 * segmentBytes, 12 * segmentBytes}}, "10.1.1.0/24 0.0012 apart=false"},
		"not certain":    {10000, []row{{"10.1.1.1", 40 * segmentBytes, 2 * segmentBytes}}, "10.1.1.0/24 0.0040 apart=false"},
		"two":            {10000, []row{{"10.1.1.1", 30 * segmentBytes, 30 * segmentBytes}, {"2001:db8:1::1", 25 * segmentBytes, 25 * segmentBytes}}, "10.1.1.0/24 0.0030 apart=true, 2001:db8:1::/48 0.0025 apart=true"},
		"short window":   {150, []row{{"10.1.1.1", 30 * segmentBytes, 30 * segmentBytes}}, ""},
		"of many others": {100000, []row{{"10.1.1.1", 30 * segmentBytes, 30 * segmentBytes}}, ""},
		"no bounds":      {10000, []row{{"10.1.1.1", 30 * segmentBytes, math.NaN()}}, ""},
	} {
		table := report.Table{Name: "loss", Columns: []report.Column{{Name: "src"}, {Name: "dst"}, {Name: "lost"}, {Name: "lost_at_least"}}}
		for _, r := range c.rows {
			table.Rows = append(table.Rows, []any{r.src, "10.2.2.2", r.lost, r.low})
		}
		l := report.Line{Algorithm: "lean", Report: report.Body{Tables: []report.Table{table}, Values: []report.Value{{Name: "loss_examined", Value: c.examined}}}}
		usual := finding.Usual{Median: unlistedFrom, Scatter: 0, Most: unlistedFrom, Windows: 20}
		var got []string
		for _, m := range Of(l).Measures {
			if m.Symptom != finding.HolesFrom || m.Subject.Name == "" {
				continue
			}
			_, apart, _ := usual.Compare(&m)
			got = append(got, fmt.Sprintf("%s %.4f apart=%t", m.Subject.Name, m.Value.Value, apart))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// lossy is a line of 6,000 segments with what is missing and what is sent again, both in segments, in tables of one flow.
func lossy(missing, again float64) report.Line {
	columns := func(name string) []report.Column {
		return []report.Column{{Name: "src"}, {Name: "dst"}, {Name: name}, {Name: name + "_at_least"}}
	}
	loss, retrans := report.Table{Name: "loss", Columns: columns("lost")}, report.Table{Name: "retrans", Columns: columns("retransmitted")}
	if missing > 0 {
		loss.Rows = [][]any{{"10.1.1.1", "10.2.2.2", missing * segmentBytes, missing / 2 * segmentBytes}}
	}
	if again > 0 {
		retrans.Rows = [][]any{{"10.1.1.1", "10.2.2.2", again, again / 2}}
	}
	return report.Line{Algorithm: "lean", Report: report.Body{Tables: []report.Table{loss, retrans}, Values: []report.Value{{Name: "loss_examined", Value: 6000.}, {Name: "retrans_examined", Value: 6000.}}}}
}

// A network that loses for the first time, before this place or after it, is found in the second window: windows in which nothing is missing from anybody, and nothing is sent again, are its
// past. What is sent again because it is missing here was lost before.
func TestFirstOfOneNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		missing, again float64
		want           string
	}{
		"missing": {50, 0, "holes-from 10.1.1.0/24 in 11"}, "sent again": {0, 60, "resent-to 10.2.2.0/24 in 11"}, "missing and sent again": {50, 70, "holes-from 10.1.1.0/24 in 11"}, "little": {0, 15, ""},
	} {
		streams, began := finding.NewStreams(), map[string]int{}
		for n := range 20 {
			l := lossy(0, 0)
			if n >= 10 {
				l = lossy(c.missing, c.again)
			}
			for _, r := range streams.Window("lean", Of(l).Measures, int64(n)*2e9, int64(n+1)*2e9) {
				name := fmt.Sprint(r.Symptom, " ", r.Subject.Name)
				if _, is := began[name]; r.Active && !is {
					began[name] = n
				}
			}
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(began)) {
			got = append(got, fmt.Sprint(name, " in ", began[name]))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// A table is too small where segments with data find no place for certain: connections without data leave nothing to see, however many of them find none.
func TestTooSmallForData(t *testing.T) {
	for name, c := range map[string]struct {
		examined, withData float64
		refused            uint64
		memory             float64
		want               float64 // share of segments with data; negative: nothing is measured
	}{
		"no data":             {1500, 0, 600, 0, -1},
		"few data":            {1500, 150, 1400, 0, -1},
		"short connections":   {3000, 1000, 1800, 0, 0},
		"data of many flows":  {3000, 3000, 1500, 0, .5},
		"most of all kinds":   {3000, 1000, 2700, 0, .7},
		"a web server's":      {510, 340, 255, 152064, 0}, // 50 connections a second, which have ended long before their places are wanted
		"more than places":    {9615, 9369, 4496, 152064, 4250. / 9369},
		"a few find no place": {3000, 2000, 90, 0, 0},
	} {
		l := report.Line{Algorithm: "lean", Lost: map[string]uint64{"loss_not_followed": c.refused}}
		for field, v := range map[string]float64{"window_memory": c.memory, "loss_examined": c.examined, "ooo_examined": c.withData, "retrans_examined": c.withData} {
			l.Report.Values = append(l.Report.Values, report.Value{Name: field, Value: v})
		}
		got := -1.
		for _, m := range Of(l).Measures {
			if m.Symptom == finding.TooSmall {
				got = m.Value.Value
			}
		}
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v of the segments with data found no place, want %v", name, got, c.want)
		}
	}
}
