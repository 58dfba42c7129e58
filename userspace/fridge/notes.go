package fridge

import (
	"fmt"
	"math"

	bpf "github.com/xdpmon/xdpmon/bpf/fridge"
	"github.com/xdpmon/xdpmon/userspace/fridge/delay"
	"github.com/xdpmon/xdpmon/userspace/fridge/group"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// notes are sentences for the operator, most important first.
func (e *estimator) notes(c counts, total *delay.Spectrum, f fit) []string {
	var notes []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	requests, matched := c.at(bpf.FridgeFridgeCounterFRIDGE_REQUESTS), c.at(bpf.FridgeFridgeCounterFRIDGE_MATCHED)
	responses, full := c.at(bpf.FridgeFridgeCounterFRIDGE_RESPONSES), c.at(bpf.FridgeFridgeCounterFRIDGE_GROUP_FULL)
	torn := c.at(bpf.FridgeFridgeCounterFRIDGE_TORN)

	add(requests > 0 && responses == 0, "requests were seen and no response: does one interface see only one direction? Attach "+
		"all interfaces that the traffic crosses in one command, and both directions (--direction both).")
	add(responses > 0 && requests == 0 && matched == 0, "responses were seen and no request: attach the interface where the requests go out as well.")
	if advice := f.advice(); advice != "" && !e.follows() {
		notes = append(notes, advice)
	}
	add(e.follows() && f.blind, "slow responses may have left no sample in this window: percentiles are lower bounds. The next windows have smaller entry probabilities.")
	add(full > 0, "%s of %s samples belong to groups whose row was taken by another group and are counted under %q: raise "+
		"fridge.rows to about four times the number of groups.", report.Human(full, report.Count), report.Human(matched, report.Count), group.Others)
	if lost := e.lost; !e.rules.Restart && lost >= 1 {
		notes = append(notes, fmt.Sprintf("about %s repeated requests found their record overwritten: their delay counts from the repetition "+
			"(retransmit=keep). They count once; more entries lose fewer.", report.Human(math.Round(lost), report.Count)))
	}
	if long := c.at(bpf.FridgeFridgeCounterFRIDGE_TOO_LONG); long > 0 {
		notes = append(notes, fmt.Sprintf("%s responses took longer than the %s that can be measured and are in no distribution: raise fridge.tick.",
			report.Human(long, report.Count), report.Human(e.rules.Longest, report.Nanosecond)))
	}
	add(torn > 0 && torn*100 > matched, "%s samples were inserted by two cores into one slot at a time: their survived "+
		"insertions are off by a few.", report.Human(torn, report.Count))
	add(e.table, "factors are read from a table with steps of %s: a sample's weight is off by up to half of that, the total by far less.",
		report.Human(tableStep-1, report.Ratio))
	add(!e.recorded && matched > 0, "survived insertions are inferred from delay and rate: right while the rate is steady, "+
		"biased when delays and bursts coincide (section 3.3).")
	return notes
}
