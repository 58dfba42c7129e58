package main

import (
	"fmt"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// BenchmarkRound is what rules, tests and diagnosis cost in one round of windows of ten instances with eight algorithms each; a round is 10 s.
func BenchmarkRound(b *testing.B) {
	const instances, warm, rounds = 10, 150, 64
	e := diagnose.New()
	var lines [warm + rounds][]report.Line
	for i := range instances {
		h := newHost(uint64(i + 1))
		for n := range lines {
			for _, l := range h.window() {
				l.Identity = report.Identity{Instance: "all", Each: fmt.Sprintf("eth%d", i), Interfaces: []string{fmt.Sprintf("eth%d", i)}}
				lines[n] = append(lines[n], l)
			}
		}
	}
	take := func(n int, later int64) {
		for _, l := range lines[n] {
			l.Window.Start, l.Window.End = l.Window.Start+later, l.Window.End+later
			e.Line(l)
		}
	}
	for n := range warm { // a past as long as it gets
		take(n, 0)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		take(warm+n%rounds, int64(n/rounds)*rounds*windowNS)
	}
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N)/10*100, "%core")
}
