package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/plot"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// Options of drawing.
type Options struct {
	Unicode bool
	Quit    string // label of q: "quit", or "end" if it ends a measurement
}

// screen is a screen being drawn.
type screen struct {
	*Canvas
	m    *model.Model
	o    Options
	y    int // next line
	foot int // first line of the footer
}

// Draw draws the state. It limits the selection to existing items.
func Draw(m *model.Model, o Options) *Canvas {
	s := &screen{Canvas: NewCanvas(m.Width, m.Height), m: m, o: o}
	s.title()
	s.footer()
	switch m.Place().View {
	case model.Help:
		s.scrolled(s.help())
	case model.Interfaces:
		s.interfaces()
	case model.FindingDetails:
		s.scrolled(s.finding())
	case model.Health:
		s.scrolled(s.health())
	case model.Opened:
		s.opened()
	case model.Details:
		s.scrolled(s.details())
	case model.RowDetails:
		s.scrolled(s.row())
	default:
		s.overview()
	}
	return s.Canvas
}

func (s *screen) mark() string {
	if s.o.Unicode {
		return "…"
	}
	return "~"
}

func (s *screen) glyph(unicode, ascii string) string {
	if s.o.Unicode {
		return unicode
	}
	return ascii
}

// linesLeft is the number of lines left above the footer.
func (s *screen) linesLeft() int { return max(0, s.foot-s.y) }

func (s *screen) add(l ...Span) {
	if s.y < s.foot {
		s.Put(0, s.y, l...)
		s.y++
	}
}

// title draws source and time on the first line, and problems of the connection on a second one.
func (s *screen) title() {
	m := s.m
	state, style := s.when()
	right := " " + state + " "
	left := strings.TrimSpace("xdpmon " + m.Instances.Command + "  " + m.Source)
	s.Put(0, 0, Span{" " + clip(left, max(0, s.Width-Width(right)-2), s.mark()), Title})
	s.Fill(0, Title)
	s.Put(max(0, s.Width-Width(right)), 0, Span{right, style})
	s.y = 1
	if m.Trouble != "" {
		text := m.Trouble
		if !m.Up {
			text = "no connection for " + typeset.Clock(m.Now().Sub(m.Changed).Truncate(time.Second)) + ", trying again: " + text
		}
		s.Put(0, 1, Span{clip(text, s.Width, s.mark()), Critical})
		s.y = 2
	}
}

// when is the displayed time.
func (s *screen) when() (text string, style Style) {
	m := s.m
	switch {
	case m.Paused:
		return "PAUSED at " + clock(m.At.UnixMilli()-1) + " UTC", Warning
	case !m.Live():
		return "PAST " + s.date(m.At) + clock(m.At.UnixMilli()) + " UTC, " + ago(m.Latest, m.At.UnixMilli()) + " before the latest", Warning
	case m.Ended:
		return "ended, last window " + clock(m.ShownEnd()) + " UTC", Title
	case !m.Up:
		return "NOT CONNECTED", Critical
	case m.ShownEnd() == 0 && m.Known:
		return "live, the first window is being measured", Title
	}
	if m.ShownEnd() == 0 {
		return "live", Title
	}
	return "live, last window " + clock(m.ShownEnd()) + " UTC", Title
}

func ago(later, earlier int64) string {
	return typeset.Clock(time.Duration(max(0, later-earlier)) * time.Millisecond / time.Second * time.Second)
}

// date is the day, unless it is today.
func (s *screen) date(t time.Time) string {
	if t.UTC().Format(time.DateOnly) == s.m.Now().UTC().Format(time.DateOnly) {
		return ""
	}
	return t.UTC().Format("2006-01-02 ")
}

func clock(ms int64) string { return model.MS(ms).Format("15:04:05") }

// noticeTime is how long notices are displayed.
const noticeTime = 30 * time.Second

// footer draws the keys of this view, and messages above them.
func (s *screen) footer() {
	m, p := s.m, s.m.Place()
	s.foot = s.Height - 1
	text := s.keys()
	if m.Filtering {
		text = " filter: " + p.Filter + s.glyph("█", "_") + "   Enter keeps it, Esc clears it"
	}
	s.Put(0, s.foot, Span{clip(text, s.Width, s.mark()), Title})
	s.Fill(s.foot, Title)
	var lines []Line
	if m.Missed > 0 {
		lines = append(lines, line(fmt.Sprintf("* %d events were not received: this screen was too slow; stored windows are complete", m.Missed), Warning))
	}
	fresh := m.Notices
	for len(fresh) > 0 && m.Now().Sub(fresh[0].At) > noticeTime {
		fresh = fresh[1:]
	}
	for _, n := range fresh[max(0, len(fresh)-4):] {
		lines = append(lines, wrap("* "+n.Text, s.Width, 2, Info)...)
	}
	lines = lines[max(0, len(lines)-s.Height/3):]
	for n, l := range lines {
		s.Put(0, s.foot-len(lines)+n, l...)
	}
	s.foot -= len(lines)
}

func (s *screen) keys() string {
	quit := "q " + s.o.Quit
	back := "Esc back"
	var list []string
	switch s.m.Place().View {
	case model.Overview:
		list = []string{"Enter open", "/ filter", "s sort", "i interface", "[ ] time", s.live(), "h health", "? help", quit}
	case model.Opened:
		list = []string{"\u2190 \u2192 algorithm", "Tab table", "Enter row", "d details", "s sort", "/ filter", "[ ] time", s.live(), "? help", back}
	case model.FindingDetails:
		list = []string{"Enter opens its instance", back, "? help", quit}
	case model.Interfaces:
		list = []string{"Enter chooses", back}
	default:
		list = []string{"Up Down scroll", "[ ] time", s.live(), back, "? help", quit}
	}
	for len(list) > 2 && 1+Width(strings.Join(list, "  ")) > s.Width {
		list = slices.Delete(list, len(list)-3, len(list)-2) // help and back remain
	}
	text := " " + strings.Join(list, "  ")
	if !s.o.Unicode {
		text = strings.Replace(text, "\u2190 \u2192", "< >", 1)
	}
	return text
}

func (s *screen) live() string {
	if s.m.Live() {
		return "Space stop"
	}
	return "l live"
}

// scrolled draws lines from the selected one on.
func (s *screen) scrolled(lines []Line) {
	p, room := s.m.Place(), s.linesLeft()
	if len(lines) > room {
		room = max(1, room-1) // the last line shows the position
	}
	p.Selected = max(0, min(p.Selected, len(lines)-room))
	for n, l := range lines[p.Selected:min(len(lines), p.Selected+room)] {
		s.Put(0, s.y+n, l...)
	}
	if len(lines) > room {
		s.Put(0, s.foot-1, Span{fmt.Sprintf("  lines %d to %d of %d", p.Selected+1, min(len(lines), p.Selected+room), len(lines)), Soft})
	}
	s.y += min(room, len(lines))
}

func severityStyle(f *finding.Finding) Style {
	return []Style{Info, Warning, Critical}[f.Severity]
}

// overview draws findings, then instances.
func (s *screen) overview() {
	m := s.m
	findings, rows := m.Findings(), m.Rows()
	s.findings(findings, len(rows))
	s.instances(rows, m.Place().Selected-len(findings))
}

func (s *screen) findings(list []*finding.Finding, rows int) {
	m := s.m
	selected := m.Place().Selected
	switch {
	case !m.Known:
		s.add(Span{"asking " + m.Source, Soft})
		return
	case len(list) == 0 && len(m.Open) > 0:
		s.add(Span{fmt.Sprintf("%d open findings; the filter hides them", len(m.Open)), Warning})
	case len(list) == 0 && m.Latest == 0:
	case len(list) == 0:
		s.add(Span{"Nothing is wrong, as far as is measured.", Good})
	}
	room := s.linesLeft() - min(rows+2, max(4, s.linesLeft()/2))
	per := 1
	if 2*len(list) <= room {
		per = 2
	}
	fit := max(1, room/per)
	first := top(selected, len(list), fit)
	for n := first; n < min(len(list), first+fit); n++ {
		y := s.y
		s.oneFinding(list[n], per)
		if n == selected {
			s.Select(y)
		}
	}
	if hidden := len(list) - fit; hidden > 0 {
		s.add(Span{fmt.Sprintf("  %d of %d findings, the most severe first", fit, len(list)), Soft})
	}
	s.y = min(s.y+1, s.foot)
}

// top is the index of the first of n items to draw, so that the selected one is visible.
func top(selected, n, fit int) int {
	return max(0, min(selected-fit/2, n-fit))
}

// amount is the sentence of a finding without its headline: value, start, cause.
func amount(f *finding.Finding) string {
	text := strings.TrimPrefix(f.Sentence(), f.Headline()+": ")
	if f.Next != "" {
		text = strings.TrimSuffix(text, " Next: "+f.Next)
	}
	return text
}

func (s *screen) oneFinding(f *finding.Finding, per int) {
	word := fmt.Sprintf("%-9s", f.Severity)
	head := f.Headline()
	if per == 1 {
		head += ": " + amount(f)
		s.add(Span{word, severityStyle(f)}, Span{clip(head, s.Width-10, s.mark()), Strong})
		return
	}
	since := " since " + strings.TrimSuffix(finding.Clock(f.Since), " UTC")
	if f.Since > 1e18 {
		since = " since " + s.date(time.Unix(0, f.Since)) + clock(f.Since/1e6)
	}
	s.add(Span{word, severityStyle(f)}, Span{clip(head, s.Width-10-Width(since), s.mark()), Strong}, Span{since, Soft})
	s.add(Span{strings.Repeat(" ", 9), Normal}, Span{clip(strings.Replace(amount(f), "; since "+finding.Clock(f.Since), "", 1), s.Width-10, s.mark()), Normal})
}

// col is a column of the overview.
type col struct {
	head  string
	sort  string // its sort order in the model
	width int
	right bool
	cell  func(*model.Row) Span
}

func (s *screen) columns(rows []*model.Row) []col {
	number := func(unit report.Unit, of func(*model.Row) float64) func(*model.Row) Span {
		return func(r *model.Row) Span {
			v := of(r)
			text := report.Human(v, unit)
			if unit == report.PerSecond {
				text = strings.ReplaceAll(text, " ", "")
			}
			if math.IsNaN(v) || v == 0 {
				return Span{text, Soft}
			}
			return Span{text, Normal}
		}
	}
	name := 8
	for _, r := range rows {
		name = max(name, min(24, Width(r.Key)))
	}
	left := s.Width - (8 + 18 + 18 + 6 + 7 + 5)
	name = min(name, max(8, left-9))
	spark := max(0, min(12, left-name-1))
	tight := true
	left -= name + spark + 1
	bits := left >= 12
	if bits {
		left -= 12
	}
	if left >= 16 {
		tight, left = false, left-16
	}
	estimates := 18
	if !tight {
		estimates = 26
	}
	estimate := func(of func(*model.Row) model.Estimate) func(*model.Row) Span {
		return func(r *model.Row) Span { return s.estimate(of(r), tight) }
	}
	list := []col{{"instance", "name", name, false, func(r *model.Row) Span { return Span{r.Key, Strong} }}}
	place := 0
	for _, r := range rows {
		if p := r.Place(); p != r.Key {
			place = max(place, min(28, Width(p)))
		}
	}
	if place > 0 && left > max(place, 9)+1 {
		place = max(place, 9)
		left -= place + 1
		list = append(list, col{"measures", "", place, false, func(r *model.Row) Span { return Span{r.Place(), Soft} }})
	}
	algorithms := 0
	for _, r := range rows {
		algorithms = max(algorithms, Width(strings.Join(r.Algorithms, " ")))
	}
	if algorithms = min(algorithms, left-12); algorithms < 12 {
		algorithms = 0
	} else {
		left -= algorithms + 1
	}
	if spark > 0 {
		spark = min(40, spark+max(0, left))
		head := "over time"
		if spark < len(head) {
			head = "trend"
		}
		list = append(list, col{head, "", spark, false, func(r *model.Row) Span { return Span{s.spark(r.Rates, spark), Spark} }})
	}
	list = append(list, col{"packets", "rate", 8, true, number(report.PerSecond, func(r *model.Row) float64 { return r.Packets })})
	if bits {
		list = append(list, col{"bits", "bits", 11, true, number(report.BitRate, func(r *model.Row) float64 { return r.Bits })})
	}
	list = append(list, col{"p50 of delay", "p50", estimates, true, estimate(func(r *model.Row) model.Estimate { return r.P50 })},
		col{"p99", "p99", estimates, true, estimate(func(r *model.Row) model.Estimate { return r.P99 })},
		col{"loss", "loss", 6, true, number(report.Ratio, func(r *model.Row) float64 { return r.Loss })},
		col{"queue", "queue", 7, true, number(report.Nanosecond, func(r *model.Row) float64 { return r.Queue })})
	if algorithms > 0 {
		list = append(list, col{"algorithms", "", algorithms, false, func(r *model.Row) Span { return Span{strings.Join(r.Algorithms, " "), Soft} }})
	}
	return list
}

// estimate is a value with its interval; bounds are in square brackets.
func (s *screen) estimate(e model.Estimate, tight bool) Span {
	if math.IsNaN(e.Value) {
		return Span{"-", Soft}
	}
	text := report.Enclosed(e.Value, e.Low, e.High, report.Nanosecond, report.Interval)
	if e.Bound {
		text = strings.NewReplacer("(", "[", ")", "]").Replace(text)
	}
	if tight {
		value, ends, _ := strings.Cut(text, " (")
		if e.Bound {
			value, ends, _ = strings.Cut(text, " [")
		}
		text = strings.Replace(value, " ", "", 1)
		if ends != "" {
			ends = strings.Replace(strings.TrimRight(ends, ")]"), " .. ", "-", 1)
			if e.Bound {
				ends = "[" + ends + "]"
			}
			text += " " + ends
		}
	}
	return Span{text, Normal}
}

// spark draws a rate over time, the latest at the right.
func (s *screen) spark(values []float64, width int) string {
	most := 0.
	for _, v := range values[max(0, len(values)-width):] {
		if v > most {
			most = v
		}
	}
	return padLeft(plot.Sparks(s.o.Unicode, values, most, width), width)
}

func (s *screen) instances(rows []*model.Row, selected int) {
	m := s.m
	if !m.Known || s.linesLeft() < 2 {
		return
	}
	if m.All() == 0 {
		s.add(Span{"The first window is being measured.", Soft})
		return
	}
	if text := s.chosen(len(rows)); text != "" {
		s.add(Span{text, Warning})
	}
	list := s.columns(rows)
	s.head(list, rows)
	fit := s.linesLeft()
	if len(rows) > fit {
		fit-- // the last line counts the others
	}
	first := top(selected, len(rows), fit)
	for n := first; n < min(len(rows), first+fit); n++ {
		s.instance(list, rows[n])
		if n == selected {
			s.Select(s.y - 1)
		}
	}
	if len(rows) > fit {
		s.add(Span{fmt.Sprintf("  %d to %d of %d instances", first+1, min(len(rows), first+fit), len(rows)), Soft})
	}
}

// chosen describes filter and sort order of instances.
func (s *screen) chosen(shown int) string {
	m, p := s.m, s.m.Place()
	var parts []string
	if m.Interface != "" {
		parts = append(parts, "interface "+m.Interface)
	}
	if p.Filter != "" {
		parts = append(parts, fmt.Sprintf("filter %q", p.Filter))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d instances: %s (Esc shows all)", shown, m.All(), strings.Join(parts, ", "))
}

func (s *screen) head(list []col, rows []*model.Row) {
	o := s.m.Place().Order
	x := 0
	for _, c := range list {
		text := c.head
		if c.sort == "p50" && c.width >= 26 {
			text = "p50 of " + delayTitle(rows, c.width-7, s.mark())
		}
		if o.Column >= 0 && c.sort == model.Columns()[o.Column] {
			text += s.arrow(c.sort != "name" != o.Reverse)
		}
		if text = clip(text, c.width, s.mark()); c.right {
			text = padLeft(text, c.width)
		}
		s.Put(x, s.y, Span{padRight(text, c.width), Head})
		x += c.width + 1
	}
	s.Fill(s.y, Head)
	s.y++
}

// arrow shows the direction of sorting.
func (s *screen) arrow(down bool) string {
	if down {
		return s.glyph("▼", "v")
	}
	return s.glyph("▲", "^")
}

// delayTitle is the title of the delay in all rows; "delay" if they differ.
func delayTitle(rows []*model.Row, width int, mark string) string {
	title := ""
	for _, r := range rows {
		if title != "" && r.Delay != "" && r.Delay != title {
			return "delay"
		}
		if r.Delay != "" {
			title = r.Delay
		}
	}
	if title == "" {
		return "delay"
	}
	return clip(strings.TrimPrefix(title, "delay from "), width, mark)
}

func (s *screen) instance(list []col, r *model.Row) {
	x := 0
	for _, c := range list {
		cell := c.cell(r)
		cell.Text = clip(cell.Text, c.width, s.mark())
		if c.right {
			cell.Text = padLeft(cell.Text, c.width)
		}
		s.Put(x, s.y, cell)
		x += c.width + 1
	}
	if len(r.Missing) > 0 {
		s.Put(0, s.y, Span{clip(fmt.Sprintf("%s %d/%d hosts", r.Key, r.Merged, r.Known), list[0].width, s.mark()), Warning})
	}
	s.y++
}

func (s *screen) interfaces() {
	s.add(Span{"Show one interface:", Strong})
	p, list := s.m.Place(), s.m.Interfaces()
	fit := s.linesLeft()
	first := top(p.Selected, len(list), fit)
	for n := first; n < min(len(list), first+fit); n++ {
		name := list[n]
		if name == "" {
			name = "all interfaces"
		}
		s.add(Span{"  " + clip(name, s.Width-4, s.mark()), Normal})
		if n == p.Selected {
			s.Select(s.y - 1)
		}
	}
}
