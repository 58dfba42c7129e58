package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// briefRows is how many rows of a table a brief block has at most; details have tableRows.
const briefRows = 8

// rows is how many rows of a table people get to see.
func (s Style) rows() int {
	most := tableRows
	if s.Brief {
		most = briefRows
	}
	if s.few > 0 {
		most = min(most, s.few)
	}
	return most
}

// briefBlocks are findings, then one line with the instances without traffic, then a block for each other one: its traffic and each algorithm's
// answers, without the counters about the measurement itself.
func briefBlocks(lines []Line, found []string, run Run, style Style) []string {
	text := slices.Clone(found)
	if len(found) == 0 && style.Findings {
		text = append(text, "Nothing found.")
	}
	idle, of := still(lines)
	text = append(text, noTraffic(idle, of, style)...)
	for _, group := range together(lines) {
		if slices.Contains(idle, group[0].Key()) {
			continue
		}
		text = append(text, style.spaced(groupHead(group, run, style))...)
		for _, l := range group {
			text = append(text, briefText(l, run, style)...)
		}
	}
	for i := range text {
		text[i] = style.clip(text[i], style.width())
	}
	return text
}

// still are the keys (report.Identity.Key) whose lines have no packet, in order, and how many keys there are.
func still(lines []Line) (idle []string, of int) {
	busy := map[string]bool{}
	var order []string
	for _, l := range lines {
		if _, known := busy[l.Key()]; !known {
			order = append(order, l.Key())
		}
		busy[l.Key()] = busy[l.Key()] || l.Packets.Seen > 0 || l.recent
	}
	return slices.DeleteFunc(slices.Clone(order), func(key string) bool { return busy[key] }), len(order)
}

func noTraffic(names []string, of int, style Style) []string {
	if len(names) == 0 {
		return nil
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = typeset.Printable(name)
	}
	if of == 1 {
		return typeset.Wrap("No traffic on "+list[0]+".", style.width(), 2)
	}
	return typeset.Wrap(fmt.Sprintf("No traffic on %d of %d: %s.", len(names), of, strings.Join(list, ", ")), style.width(), 2)
}

// together groups the lines of one place and one window, in the order of their arrival.
func together(lines []Line) (groups [][]Line) {
	for _, l := range lines {
		at := slices.IndexFunc(groups, func(g []Line) bool {
			return g[0].Key() == l.Key() && g[0].Window.Start == l.Window.Start && g[0].Window.End == l.Window.End
		})
		if at < 0 {
			groups = append(groups, []Line{l})
			continue
		}
		groups[at] = append(groups[at], l)
	}
	return groups
}

// groupHead is the common head of a group: place, time, traffic, and what was done to it.
func groupHead(group []Line, run Run, style Style) []string {
	most, acted := group[0], Line{}
	for _, l := range group {
		if l.Packets.Seen > most.Packets.Seen {
			most = l
		}
		if v := l.Packets.Verdicts; v != nil && (v.Dropped > 0 || v.Marked > 0 || v.Steered > 0) {
			acted = l
		}
	}
	p, seconds := most.Packets, float64(most.Window.End-most.Window.Start)/1e9
	lines := []string{style.headline(typeset.Printable(most.Key()), most.Window.brief(run.Clock))}
	text := fmt.Sprintf("%s packets, %s", Human(p.Seen, PacketUnit), Human(p.Bytes, Bytes))
	if seconds > 0 {
		text += fmt.Sprintf(": %s, %s packets/s", Human(float64(p.Bytes)*8/seconds, BitRate), strings.TrimSuffix(Human(float64(p.Seen)/seconds, PerSecond), "/s"))
	}
	if acted.Packets.Verdicts != nil {
		text += "; " + verdicts(acted.Packets)
	}
	return append(lines, typeset.Wrap(text, style.width(), 2)...)
}

// headline is a title, a rule and a text at the right.
func (s Style) headline(title, right string) string {
	title = s.clip(title, max(12, s.width()-typeset.Length(right)-4))
	fill := max(1, s.width()-typeset.Length(title)-typeset.Length(right)-2)
	return title + " " + strings.Repeat(s.glyph("─", "-"), fill) + " " + right
}

// brief is the time of the window, to the second.
func (w Window) brief(clock Clock) string {
	took := Human(w.End-w.Start, Nanosecond)
	if w.Stretched {
		took += " (stretched)"
	}
	if !clock.Known(w.Start) {
		return fmt.Sprintf("%.3f s + %s", float64(w.Start)/1e9, took)
	}
	return time.Unix(0, w.Start+clock.UnixOffsetNS).UTC().Format("2006-01-02 15:04:05Z") + " + " + took
}

// briefText is one algorithm: a line with its name, its answers and the names of empty results; the first distribution in full and the others in a
// line each; tables with rows. With a truth it is complete, since every compared value was asked for.
func briefText(l Line, run Run, style Style) []string {
	var lines []string
	if l.Hosts != nil {
		lines = item("hosts", l.Hosts.text(), style)
	}
	switch {
	case l.Truth != nil:
		body := bodyText(l.Report, l.Truth, l.Error, float64(l.Window.End-l.Window.Start)/1e9, style)
		return append(append(lines, typeset.Printable(l.Algorithm)+taken(l.Packets)), body...)
	case l.Packets.Used == 0 && l.Hosts == nil && !l.recent:
		return append(lines, typeset.Wrap(typeset.Printable(l.Algorithm)+": no packets of the kind that it measures", style.width(), 2)...)
	}
	lines = append(lines, typeset.Wrap(headOf(l), style.width(), 2)...)
	lines = append(lines, briefBody(l, style)...)
	if len(run.Algorithms) < 2 && style.dense == airy {
		for _, note := range l.Report.Notes {
			lines = append(lines, typeset.Wrap("note: "+typeset.Printable(note), style.width(), 6)...)
		}
	}
	return lines
}

// headOf is a line with an algorithm's name, its numeric answers, and the names of empty results.
func headOf(l Line) string {
	var parts []string
	for _, v := range answers(l.Report.Values) {
		parts = append(parts, plainWords(v.Name, v.Unit)+" "+v.text())
	}
	if q := l.Packets.Queue; q != nil && q.Dropped > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s dropped in the queue", Human(q.Dropped, PacketUnit), Human(q.Carried, PacketUnit)))
	}
	var none []string
	for _, d := range l.Report.Distributions {
		if d.Count == 0 {
			none = append(none, d.heading())
		}
	}
	for _, t := range l.Report.Tables {
		if len(t.Rows) == 0 && !t.Details {
			none = append(none, t.heading())
		}
	}
	if len(none) > 0 {
		parts = append(parts, "none: "+strings.Join(none, ", "))
	}
	text := typeset.Printable(l.Algorithm) + taken(l.Packets)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, "; ")
	}
	return text
}

// taken is the share of the packets that an algorithm looked at, unless it is all.
func taken(p Packets) string {
	of := p.Seen
	if p.UsedSegments {
		of = max(p.Segments, p.Seen)
	}
	if of == 0 || p.Used >= of {
		return ""
	}
	return fmt.Sprintf(" (%s of the packets)", Human(float64(p.Used)/float64(of), Ratio))
}

func answers(values []Value) []Value {
	marked := slices.DeleteFunc(slices.Clone(values), func(v Value) bool { return !v.Answer })
	if len(marked) == 0 {
		return values
	}
	return marked
}

func briefBody(l Line, style Style) (lines []string) {
	drawn := false
	for _, d := range l.Report.Distributions {
		switch {
		case d.Count == 0:
		case drawn || style.dense > airy:
			lines = append(lines, d.line(style)...)
		default:
			drawn = true
			lines = append(lines, against{}.distribution(d, style)...)
		}
	}
	for _, t := range l.Report.Tables {
		if len(t.Rows) > 0 && !t.Details {
			lines = append(lines, against{seconds: float64(l.Window.End-l.Window.Start) / 1e9}.table(t, style)...)
		}
	}
	return lines
}

// line is a distribution in a line: its percentiles with their intervals.
func (d Distribution) line(style Style) []string {
	text := d.heading() + ":"
	for _, q := range d.Quantiles {
		if q.Defined && (q.Q == .5 || q.Q >= .95 && q.Q <= .99) {
			text += fmt.Sprintf(" %s %s,", q.label(), Enclosed(q.Value, q.low(), q.high(), d.Unit, q.Promise))
		}
	}
	return typeset.Wrap(strings.TrimRight(text, ",:"), style.width(), 2)
}
