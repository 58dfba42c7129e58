package view

import (
	"fmt"
	"math"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// RowText is an instance as a sentence.
func RowText(r *model.Row) string {
	parts := []string{perSecond(r.Packets) + ", " + report.Human(r.Bits, report.BitRate)}
	for _, q := range []struct {
		name string
		e    model.Estimate
	}{{"median", r.P50}, {"99th percentile", r.P99}} {
		if !math.IsNaN(q.e.Value) {
			promise := report.Interval
			if q.e.Bound {
				promise = report.Bound
			}
			parts = append(parts, q.name+" of "+strings.ToLower(delayName(r))+" "+report.Enclosed(q.e.Value, q.e.Low, q.e.High, report.Nanosecond, promise))
		}
	}
	if !math.IsNaN(r.Loss) {
		parts = append(parts, "loss "+report.Human(r.Loss, report.Ratio))
	}
	if !math.IsNaN(r.Queue) {
		parts = append(parts, "longest delay in the queue "+report.Human(r.Queue, report.Nanosecond))
	}
	if r.Known > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d hosts", r.Merged, r.Known))
	}
	if r.Unmeasured > 0 {
		parts = append(parts, report.Human(r.Unmeasured, report.Count)+" events not measured")
	}
	name := r.Key
	if p := r.Place(); p != "" && p != r.Key {
		name += " on " + p
	}
	return name + ": " + strings.Join(parts, "; ")
}

func delayName(r *model.Row) string {
	if r.Delay == "" {
		return "delay"
	}
	return r.Delay
}
