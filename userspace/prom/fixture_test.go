package prom

import (
	"math"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report"
)

var epoch = time.Unix(1_700_000_000, 0)

func fixedClock() time.Time { return epoch }

// delays spreads n values evenly (on a logarithmic axis) from 1 ms to 1.024 s.
func delays(n float64) report.Distribution {
	d := report.Distribution{Name: "delay_ns", Title: "delay from SYN to SYN-ACK", Unit: report.Nanosecond, Count: n,
		Sum: 0.15e9 * n, Mean: 0.15e9, Help: "Delay from a request to its response"}
	for i := range 101 {
		d.Buckets = append(d.Buckets, report.Bucket{Upper: 1e6 * math.Exp2(float64(i)/10), Cumulative: n * float64(i) / 100})
	}
	d.Quantiles = []report.Quantile{
		{Name: "p50", Q: 0.5, Value: 32e6, Low: 30e6, High: 34e6, Defined: true},
		{Name: "p999", Q: 0.999, Defined: false},
	}
	return d
}

func line(algorithm string, n float64) report.Line {
	return report.Line{
		Algorithm: algorithm, Identity: report.Identity{Instance: "eth0", Interfaces: []string{"eth0"}},
		Window:  report.Window{Start: 5e9, End: 15e9, Number: 3},
		Packets: report.Packets{Seen: 1000, Segments: 1000, Parsed: 990, Used: 500, Bytes: 64000, Reasons: map[string]uint64{"arp": 7, "truncated": 3}},
		Memory:  report.Memory{RegisterBytes: 1 << 20, KernelBytes: 1 << 21},
		Lost:    map[string]uint64{"evicted": 12, "refused": 0},
		Report: report.Body{
			Values: []report.Value{
				{Name: "matched", Value: uint64(100), Unit: report.Count, Kind: report.Counter, Help: "Responses that found their request"},
				{Name: "estimated", Value: n, Low: n - 10, High: n + 10, Unit: report.Count, Answer: true, Help: "Corrected number of matches"},
				{Name: "longest_ns", Value: int64(4e9), Unit: report.Nanosecond, Help: "Longest measurable delay"},
				{Name: "flow_count", Value: 3.0, Unit: report.Count, Answer: true},
				{Name: "match_rate", Value: 0.5, Unit: report.Ratio, Low: 0.4, High: math.NaN(), Answer: true},
				{Name: "fill", Value: math.NaN(), Unit: report.Ratio},
				{Name: "fit", Value: "fitting", Kind: report.Info},
			},
			Distributions: []report.Distribution{delays(n)},
			Tables: []report.Table{{
				Name: "groups", Title: "slowest groups", Limit: 3,
				Columns: []report.Column{{Name: "interface", Label: true}, {Name: "dport", Label: true},
					{Name: "p95_ns", Unit: report.Nanosecond, Metric: true, Help: "95th percentile of the delay"}, {Name: "broken"}},
				Rows: [][]any{
					{"192.0.2.0/24", int64(443), 90e6, true},
					{"192.0.2.0/24", int64(443), 91e6, true}, // a row twice must not break the scrape
					{"bad\xff", int64(53), 12e6, false},
					{"beyond the limit", int64(1), 1e6, false},
				},
			}},
		},
	}
}
