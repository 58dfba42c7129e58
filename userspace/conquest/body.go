package conquest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

func counter(name string, n uint64, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: n, Unit: unit, Kind: report.Counter, Help: help}
}

func gauge(name string, v any, unit report.Unit, help string) report.Value {
	return report.Value{Name: name, Value: v, Unit: unit, Help: help}
}

// body is the report of a window.
func (c *config) body(n counts, h *history, offset int64) report.Body {
	b := c.answer(n, h, offset)
	if text := h.timeline(); text != "" {
		b.Values = append(b.Values, report.Value{Name: "timeline", Value: text, Kind: report.Info,
			Help: "longest delays over time, the highest is the peak; blank: below conquest.tau"},
			report.Value{Name: "timeline_step_ns", Value: h.lineStep, Unit: report.Nanosecond, Kind: report.Info, Help: "time of one character of timeline"})
	}
	b.Values = append(b.Values,
		gauge("interval_ns", c.interval(), report.Nanosecond, "length of a snapshot"),
		gauge("coarse_interval_ns", c.coarseInterval(), report.Nanosecond, "length of a coarse snapshot, for packets that waited longer than snapshots reach back; 0: there are none"),
		gauge("tau_ns", c.tau, report.Nanosecond, "delay from which the queue is congested"))
	b.Notes, b.Overview = c.notes(n), report.Overview{Queue: "peak_delay_ns"}
	return b.Answering("mean_delay_ns", "congested", "dropped", "longest_burst_ns", "peak_delay_ns", "timeline")
}

// answer is what the truth has, too.
func (c *config) answer(n counts, h *history, offset int64) report.Body {
	mean := math.NaN()
	if left := n.fate(fateLeft); left > 0 {
		mean = float64(n.at(bpf.ConquestConquestCounterCONQUEST_DELAY)) / float64(left)
	}
	b := report.Body{Values: []report.Value{
		counter("departures", n.departures(), report.PacketUnit, "packets that left the queue"),
		gauge("mean_delay_ns", mean, report.Nanosecond, "of the packets of which it is known"),
		counter("congested", n.at(bpf.ConquestConquestCounterCONQUEST_CONGESTED), report.PacketUnit, "packets that waited conquest.tau or longer"),
		counter("of_culprits", n.at(bpf.ConquestConquestCounterCONQUEST_CULPRIT), report.PacketUnit, "... whose flow had more than conquest.alpha of the queue"),
	}}
	b.Values = append(b.Values, c.sourceValues(n)...)
	c.describe(&b, h, offset)
	return b
}

func (c *config) sourceValues(n counts) []report.Value {
	switch c.source {
	case sourceModel:
		return []report.Value{counter("dropped", n.fate(fateDropped), report.PacketUnit, "that found the model's queue full")}
	case sourceTap:
		return []report.Value{
			counter("arrivals", n.fate(fateWaits)+n.fate(fateExpired)+n.fate(fateBlocked)+n.fate(fateAgain), report.PacketUnit, "packets before the queue"),
			counter("not_seen_behind", n.fate(fateExpired), report.PacketUnit, "... whose place was taken over because they were dropped or left another way"),
		}
	}
	return nil
}

// describe writes what a history has: bursts, culprits, the time line. The truth has the same.
func (c *config) describe(b *report.Body, h *history, offset int64) {
	var began uint64
	var longest, peak int64
	for _, one := range h.bursts {
		began++
		longest, peak = max(longest, one.last-one.begin), max(peak, one.peak)
	}
	b.Values = append(b.Values,
		gauge("bursts", began, report.Events, "bursts of this window, open ones included"),
		gauge("longest_burst_ns", longest, report.Nanosecond, "from the first packet that waited conquest.tau to the last"),
		gauge("peak_delay_ns", peak, report.Nanosecond, "longest delay"))
	b.Tables = append(b.Tables, c.burstTable(h, offset), c.culpritTable(h))
	if c.ramp > 0 {
		b.Tables = append(b.Tables, c.rampTable(h, offset))
	}
}

var bars = []rune("▁▂▃▄▅▆▇█")

// timeline draws delays in characters.
func (h *history) timeline() string {
	peak := slices.Max(h.line[:])
	if peak == 0 {
		return ""
	}
	var b strings.Builder
	for _, delay := range h.line {
		if delay == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(bars[min(len(bars)-1, int(int64(len(bars))*delay/(peak+1)))])
	}
	return strings.TrimRight(b.String(), " ")
}

// size is the unit of what is counted.
func (c *config) size() report.Unit {
	if c.bytes {
		return report.Bytes
	}
	return report.PacketUnit
}

// burstTable is the log of bursts, the last one first.
func (c *config) burstTable(h *history, offset int64) report.Table {
	t := report.Table{Name: "log", Title: "Bursts", Limit: int(c.values.Int("bursts")), Help: "bursts, the last one first", Columns: []report.Column{
		{Name: "at", Help: "departure of the first packet that waited conquest.tau: time of day, UTC"},
		{Name: "length_ns", Unit: report.Nanosecond, Help: "to the last one"},
		{Name: "peak_ns", Unit: report.Nanosecond, Help: "longest delay"},
		{Name: "culprit", Help: "of the flows that had conquest.alpha of what left in the burst for certain, the one with the largest lower bound; unknown: there is none"},
		{Name: "share", Unit: report.Ratio, Low: "share_at_least", High: "share_at_most", Promise: report.Bound, Help: "of what left from the arrival of the first packet that waited conquest.tau to the departure of the last one"},
		{Name: "share_at_least", Unit: report.Ratio, Help: "lower bound of that"},
		{Name: "share_at_most", Unit: report.Ratio, Help: "upper bound of that"},
		{Name: "culprits", Unit: report.Flows, Help: "flows that had more than conquest.alpha of the queue, or may have had"},
		{Name: "queue", Help: "transmit queue"},
		{Name: "open", Help: "it was open at the end of the window"},
		{Name: "when", JSON: true, Help: "the same as at, with its date"},
		{Name: "begin_ns", Unit: report.Nanosecond, JSON: true, Help: "the same as at, in the clock of the packets"},
	}}
	for i := len(h.bursts) - 1; i >= 0 && len(t.Rows) < t.Limit; i-- {
		b := &h.bursts[i]
		name, had := "-", share{math.NaN(), math.NaN(), math.NaN()}
		if len(b.flows) > 0 {
			name = "unknown"
		}
		if a, known := b.headline(c.alphaShare()); known {
			name, had = c.name(a.key), a.share
		}
		t.Rows = append(t.Rows, []any{report.TimeOfDay(b.begin, offset), b.last - b.begin, b.peak, name, had.value, had.low, had.high, uint64(len(b.flows)) + min(b.more, 1), uint64(b.queue), b.open,
			report.When(b.begin, offset), b.begin})
	}
	return t
}

// name of a flow in one cell.
func (c *config) name(key heavy.Key) string {
	if c.classes {
		return class(key)
	}
	var parts []string
	cells := c.spec.Cells(key)
	for i, column := range c.spec.Columns() {
		text := fmt.Sprint(cells[i])
		switch column.Name {
		case "dst":
			if len(parts) > 0 {
				text = "→ " + text
			}
		case "sport", "dport":
			if text == "0" {
				continue
			}
			parts[len(parts)-1] += ":" + text
			continue
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// class writes a traffic class as routers do.
func class(key heavy.Key) string {
	code := key[0] >> 8 & 0x3f
	switch {
	case code == 46:
		return "ef"
	case code&7 == 0:
		return fmt.Sprintf("cs%d", code>>3)
	case code&1 == 0 && code>>3 >= 1 && code>>3 <= 4:
		return fmt.Sprintf("af%d%d", code>>3, code>>1&3)
	}
	return fmt.Sprintf("dscp %d", code)
}

func (c *config) keyColumns() []report.Column {
	if c.classes {
		return []report.Column{{Name: "class", Label: true, Help: "code point of the DS field"}}
	}
	return c.spec.Columns()
}

func (c *config) keyCells(key heavy.Key) []any {
	if c.classes {
		return []any{class(key)}
	}
	return c.spec.Cells(key)
}

// culpritTable puts the flows of all bursts together: those that are known to have been culprits first, of which most left before the others.
func (c *config) culpritTable(h *history) report.Table {
	t := report.Table{Name: "culprits", Title: "Culprits", Limit: int(c.values.Int("top")), Help: "flows that had more than conquest.alpha of the queue, those of which most left first; those whose share is not known to reach it last, without a share"}
	t.Columns = append(c.keyColumns(),
		report.Column{Name: "share", Unit: report.Ratio, Metric: true, Low: "share_at_least", High: "share_at_most", Promise: report.Bound, Help: "share of what left in the burst whose bounds bear out most; none where the lower one is below conquest.alpha"},
		report.Column{Name: "share_at_least", Unit: report.Ratio, Help: "lower bound of that"},
		report.Column{Name: "share_at_most", Unit: report.Ratio, Help: "upper bound of that"},
		report.Column{Name: "in_queue", Unit: c.size(), Help: "of the flow, while the packet waited that shows most of it"},
		report.Column{Name: "delay_ns", Unit: report.Nanosecond, Help: "how long that packet had waited"},
		report.Column{Name: "left", Unit: c.size(), Help: "what left in these snapshots, about"},
		report.Column{Name: "snapshots", Unit: report.Count, Metric: true, Help: "snapshots in which it was a culprit"},
		report.Column{Name: "bursts", Unit: report.Events, Help: "bursts that it was a culprit of"})
	for _, f := range h.worst(c.alphaShare(), t.Limit) {
		had := f.share.value
		if !f.share.known(c.alphaShare()) {
			had = math.NaN() // its bounds state what is known
		}
		t.Rows = append(t.Rows, append(c.keyCells(f.key), had, f.share.low, f.share.high, f.size, f.delay, uint64(math.Round(f.left)), f.times, f.bursts))
	}
	return t
}

type blamed struct {
	accused
	bursts uint64
}

// worst are the flows of this window: known culprits before those that may have been, and each by what of it left the queue. Nothing that is smaller by
// slightOf than the largest is listed, unless a burst bears its name: acknowledgements beside data.
func (h *history) worst(alpha float64, limit int) []blamed {
	byKey := map[heavy.Key]*blamed{}
	names := map[heavy.Key]bool{}
	for i := range h.bursts {
		if a, known := h.bursts[i].headline(alpha); known {
			names[a.key] = true
		}
		for _, a := range h.bursts[i].flows {
			now := a.tally.less(a.before)
			if now.times == 0 {
				continue
			}
			f := byKey[a.key]
			if f == nil {
				f = &blamed{accused: a}
				f.tally = tally{}
				byKey[a.key] = f
			}
			f.judge(a)
			f.tally = f.tally.plus(now)
			f.bursts++
		}
	}
	most := 0.0
	list := make([]blamed, 0, len(byKey))
	for _, f := range byKey {
		list, most = append(list, *f), max(most, f.left)
	}
	list = slices.DeleteFunc(list, func(f blamed) bool { return !names[f.key] && f.left*slightOf < most })
	slices.SortFunc(list, func(a, b blamed) int {
		if known := a.share.known(alpha); known != b.share.known(alpha) {
			return map[bool]int{true: -1, false: 1}[known]
		}
		return cmp.Or(-cmp.Compare(a.left, b.left), -cmp.Compare(a.share.value, b.share.value), a.key.Compare(b.key))
	})
	return list[:min(len(list), limit)]
}

const slightOf = 100

func (c *config) rampTable(h *history, offset int64) report.Table {
	t := report.Table{Name: "ramps", Title: "Growing flows", Limit: int(c.values.Int("top")), Help: "flows that grew by more than conquest.ramp from one snapshot to the next, the last ones first"}
	t.Columns = append(c.keyColumns(),
		report.Column{Name: "at", Help: "when that was seen: time of day, UTC"},
		report.Column{Name: "when", JSON: true, Help: "the same as at, with its date"},
		report.Column{Name: "before", Unit: c.size(), Help: "in the snapshot before"},
		report.Column{Name: "after", Unit: c.size(), Help: "in the last snapshot"})
	for i := len(h.ramps) - 1; i >= 0 && len(t.Rows) < t.Limit; i-- {
		r := h.ramps[i]
		t.Rows = append(t.Rows, append(c.keyCells(r.key), report.TimeOfDay(r.time, offset), report.When(r.time, offset), r.before, r.size))
	}
	return t
}

// notes are what an operator should know of this window.
func (c *config) notes(n counts) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	congested, beyond := n.at(bpf.ConquestConquestCounterCONQUEST_CONGESTED), n.at(bpf.ConquestConquestCounterCONQUEST_BEYOND)
	if beyond > 0 && 20*beyond > congested {
		add("%s of the congested packets waited longer than the snapshots reach back (%s), so that nobody knows who had the queue in front of them: raise conquest.longest", report.Human(float64(beyond)/float64(max(congested, 1)), report.Ratio),
			report.Human(c.reaches(), report.Nanosecond))
	}
	if left, none := n.departures(), n.fate(fateUnmatched); none > 0 && 20*none > left {
		add("the arrival of %s of the packets after the queue is unknown: they count as departures only", report.Human(float64(none)/float64(left), report.Ratio))
	}
	if lost := n.at(bpf.ConquestConquestCounterCONQUEST_LOST); lost > 0 {
		add("%d reports were lost: flows and bursts are missing", lost)
	}
	return notes
}
