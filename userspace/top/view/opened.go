package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/plot"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
	"github.com/xdpmon/xdpmon/userspace/top/model"
)

// opened draws an instance: one algorithm's answers, and one of its tables.
func (s *screen) opened() {
	m := s.m
	i, r := m.Instance(), m.Report()
	s.instanceHead(i, r)
	switch {
	case i == nil && m.Known:
		s.add(Span{"This instance is no longer measured.", Warning})
		return
	case r == nil && m.Live():
		s.add(Span{"loading the window", Soft})
		return
	case r == nil:
		s.add(Span{"No window is stored from before this time: ] shows the next, l the latest.", Warning})
		return
	}
	for _, l := range s.brief(r) {
		s.add(l...)
	}
	s.y = min(s.y+1, s.foot)
	s.table(r)
}

// instanceHead draws the names of the instance and its algorithms.
func (s *screen) instanceHead(i *api.Instance, r *api.Report) {
	p := s.m.Place()
	left := p.Key
	if i != nil {
		if where := strings.Join(i.Interfaces, ","); where != p.Key && where != "" {
			left += "  " + where
		}
		if i.Guest != "" {
			left += "  (" + i.Guest + ")"
		}
	}
	right := ""
	if r != nil {
		right = s.window(r.Window)
	}
	s.add(Span{padRight(clip(left, max(8, s.Width-Width(right)-2), s.mark()), s.Width-Width(right)), Strong}, Span{right, Soft})
	if i == nil {
		return
	}
	tabs := Line{}
	for n, a := range i.Algorithms {
		switch {
		case a.Name == p.Algorithm:
			tabs = append(tabs, Span{"[" + a.Name + "]", Head})
		default:
			tabs = append(tabs, Span{" " + a.Name + " ", Soft})
		}
		if n+1 < len(i.Algorithms) {
			tabs = append(tabs, Span{" ", Normal})
		}
	}
	s.add(s.around(tabs, func(sp Span) bool { return sp.Style == Head })...)
}

// around drops spans at the left until the chosen one fits.
func (s *screen) around(spans Line, chosen func(Span) bool) Line {
	at := slices.IndexFunc(spans, chosen)
	for at > 0 && spans[:at+1].width() > s.Width-4 {
		spans, at = spans[1:], at-1
	}
	return spans
}

func (s *screen) window(w api.Window) string {
	took := report.Human((w.EndMS-w.StartMS)*1e6, report.Nanosecond)
	text := fmt.Sprintf("window %d, %s%s + %s", w.Number, s.date(model.MS(w.StartMS)), clock(w.StartMS), took)
	if w.Stretched {
		text += " (stretched)"
	}
	if w.Cut {
		text += " (cut)"
	}
	return text
}

// brief is traffic, answers and distributions in a few lines.
func (s *screen) brief(r *api.Report) (out []Line) {
	out = append(out, wrap(traffic(r), s.Width, 2, Normal)...)
	if text, bad := hostsText(r.Hosts); text != "" {
		style := Soft
		if bad {
			style = Warning
		}
		out = append(out, wrap(text, s.Width, 2, style)...)
	}
	var parts []string
	for _, v := range answers(r.Values) {
		parts = append(parts, model.Words(v.Name, v.Unit)+" "+valueText(v))
	}
	out = append(out, wrap(strings.Join(parts, "; "), s.Width, 2, Normal)...)
	for n, d := range r.Distributions {
		if n == 3 {
			out = append(out, line(fmt.Sprintf("%d more distributions: d", len(r.Distributions)-3), Soft))
			break
		}
		out = append(out, wrap(distributionText(d), s.Width, 2, Normal)...)
		if n == 0 && len(s.m.Answer.Delays) > 1 {
			out = append(out, s.overTime()...)
		}
	}
	return out
}

// overTime draws median and p99 of the first distribution, each on its own scale.
func (s *screen) overTime() (out []Line) {
	for n, name := range []string{"  p50 ", "  p99 "} {
		var values []float64
		most := 0.
		for _, d := range s.m.Answer.Delays {
			values = append(values, d[1+n])
			if d[1+n] > most {
				most = d[1+n]
			}
		}
		if most == 0 {
			continue // too few values for this one in each of the windows
		}
		const scale = 12
		out = append(out, Line{{name, Soft}, {plot.Sparks(s.o.Unicode, values, most, max(8, s.Width-len(name)-scale)), Spark}, {" of " + report.Human(most, report.Nanosecond), Soft}})
	}
	return out
}

// traffic is the traffic of the window.
func traffic(r *api.Report) string {
	var p struct {
		Seen, Used, Bytes uint64
		Segments          uint64
		UsedSegments      *uint64 `json:"used_segments"`
		Queue             *struct{ Carried, Dropped uint64 }
		Verdicts          *struct{ Dropped, Marked uint64 }
	}
	_ = json.Unmarshal(r.Packets, &p) // written by this program
	seconds := float64(r.Window.EndMS-r.Window.StartMS) / 1e3
	text := fmt.Sprintf("%s packets, %s", report.Human(p.Seen, report.PacketUnit), report.Human(p.Bytes, report.Bytes))
	if seconds > 0 {
		text += fmt.Sprintf(": %s, %s", report.Human(8*float64(p.Bytes)/seconds, report.BitRate), perSecond(float64(p.Seen)/seconds))
	}
	used, of := p.Used, p.Seen
	if p.UsedSegments != nil {
		used, of = *p.UsedSegments, max(p.Seen, p.Segments)
	}
	if of > 0 && used < of {
		text += "; " + report.Human(float64(used)/float64(of), report.Ratio) + " used"
	}
	if q := p.Queue; q != nil && q.Carried > 0 {
		text += fmt.Sprintf("; the queue dropped %s of %s", report.Human(q.Dropped, report.PacketUnit), report.Human(q.Carried, report.PacketUnit))
	}
	if v := p.Verdicts; v != nil && v.Dropped+v.Marked > 0 {
		text += fmt.Sprintf("; %s dropped and %s marked here", report.Human(v.Dropped, report.PacketUnit), report.Human(v.Marked, report.PacketUnit))
	}
	if lost := lostText(r.Lost); lost != "" {
		text += "; not measured: " + lost
	}
	return text
}

// perSecond formats packets per second: 10.1k packets/s.
func perSecond(x float64) string {
	return strings.ReplaceAll(strings.TrimSuffix(report.Human(x, report.PerSecond), "/s"), " ", "") + " packets/s"
}

// lostText lists the losses of the measurement, the largest first.
func lostText(lost map[string]uint64) string {
	var names []string
	for name, n := range lost {
		if n > 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if lost[a] != lost[b] {
			return int(min(1, max(-1, int64(lost[b])-int64(lost[a]))))
		}
		return strings.Compare(a, b)
	})
	for n, name := range names {
		names[n] = report.Human(lost[name], report.Count) + " " + model.Words(name, "")
	}
	return strings.Join(names, ", ")
}

func hostsText(text json.RawMessage) (out string, bad bool) {
	var h *struct {
		Known, Merged int
		Missing       []string `json:"missing_names"`
	}
	if json.Unmarshal(text, &h) != nil || h == nil {
		return "", false
	}
	out = fmt.Sprintf("%d of %d hosts", h.Merged, h.Known)
	if len(h.Missing) > 0 {
		out += "; missing: " + strings.Join(h.Missing, ", ")
	}
	return out, h.Merged < h.Known
}

// answers are the main results; all values if none is marked.
func answers(list []api.Value) []api.Value {
	out := slices.DeleteFunc(slices.Clone(list), func(v api.Value) bool { return !v.Answer })
	if len(out) == 0 {
		return list[:min(len(list), 8)]
	}
	return out
}

func valueText(v api.Value) string {
	promise := report.Interval
	if v.Promise == "bound" {
		promise = report.Bound
	}
	if f := model.Number(v.Value); f == f {
		return report.Enclosed(f, model.Number(v.Low), model.Number(v.High), report.Unit(v.Unit), promise)
	}
	return model.Text(v.Value, v.Unit)
}

func distributionTitle(d api.Distribution) string {
	if d.Title != "" {
		return d.Title
	}
	return model.Words(d.Name, d.Unit)
}

func distributionText(d api.Distribution) string {
	if n := model.Number(d.Count); !(n > 0) {
		return distributionTitle(d) + ": none in this window"
	}
	text := distributionTitle(d) + ":"
	for _, q := range d.Quantiles {
		if q.Q == .5 || q.Q >= .95 && q.Q <= .99 {
			text += " " + q.Name + " " + quantileText(q, d.Unit) + ","
		}
	}
	return strings.TrimRight(text, ",:")
}

func quantileText(q api.Quantile, unit string) string {
	return valueText(api.Value{Value: q.Value, Low: q.Low, High: q.High, Promise: q.Promise, Unit: unit})
}

// table draws the open table in the remaining lines.
func (s *screen) table(r *api.Report) {
	m, p := s.m, s.m.Place()
	t := m.Table()
	if t == nil || s.linesLeft() < 2 {
		if t == nil {
			s.add(Span{"This algorithm has no table: d shows everything it reports.", Soft})
		}
		return
	}
	tabs := Line{}
	for n := range r.Tables {
		one := &r.Tables[n]
		name := fmt.Sprintf("%s %d", model.Words(one.Name, ""), one.Total)
		if one == t {
			tabs = append(tabs, Span{"[" + name + "]", Head})
		} else {
			tabs = append(tabs, Span{" " + name + " ", Soft})
		}
		tabs = append(tabs, Span{" ", Normal})
	}
	s.add(s.around(tabs, func(sp Span) bool { return sp.Style == Head })...)
	cells := m.Cells()
	if p.Filter != "" || len(t.Rows) < t.Total {
		text := fmt.Sprintf("%d of %d rows", len(cells.Rows), t.Total)
		if p.Filter != "" {
			text += fmt.Sprintf(": filter %q (Esc shows all)", p.Filter)
		} else {
			text += ", the first ones"
		}
		s.add(Span{text, Warning})
	}
	if len(t.Rows) == 0 {
		s.add(Span{"none in this window: " + tableTitle(t), Soft})
		return
	}
	s.grid(cells)
}

func tableTitle(t *api.Table) string {
	if t.Title != "" {
		return t.Title
	}
	return model.Words(t.Name, "")
}

// widest bounds the width of a text column.
const widest = 44

// grid draws as many columns as fit.
func (s *screen) grid(c model.Cells) {
	p := s.m.Place()
	fit := max(0, s.linesLeft()-1)
	if len(c.Rows) > fit {
		fit = max(0, fit-1)
	}
	first := top(p.Selected, len(c.Rows), fit)
	shown := c.Rows[first:min(len(c.Rows), first+fit)]
	widths := s.widths(c, shown)
	if len(widths) < len(c.Heads) {
		for n := range shown { // without intervals more columns fit; the view of the row shows them
			shown[n].Texts = shown[n].Short
		}
		widths = s.widths(c, shown)
	}
	x := 0
	for n, w := range widths {
		text := c.Heads[n]
		if p.Order.Column == n {
			text += s.arrow(c.Right[n] != p.Order.Reverse)
		}
		text = clip(text, w, s.mark())
		if c.Right[n] {
			text = padLeft(text, w)
		}
		s.Put(x, s.y, Span{padRight(text, w), Head})
		x += w + 2
	}
	if left := len(c.Heads) - len(widths); left > 0 {
		text := fmt.Sprintf("+%d", left)
		s.Put(max(0, s.Width-len(text)), s.y, Span{text, Head})
	}
	s.Fill(s.y, Head)
	s.y++
	for n, row := range shown {
		x := 0
		for k, w := range widths {
			text := cellOf(row, k)
			text = clip(text, w, s.mark())
			if c.Right[k] {
				text = padLeft(text, w)
			}
			s.Put(x, s.y, Span{text, Normal})
			x += w + 2
		}
		if first+n == p.Selected {
			s.Select(s.y)
		}
		s.y++
	}
	if len(c.Rows) > len(shown) {
		s.add(Span{fmt.Sprintf("  %d to %d of %d rows", first+1, first+len(shown), len(c.Rows)), Soft})
	}
}

// cellOf is a cell's text; the first one of a prefix is indented by its depth in the tree.
func cellOf(r model.CellRow, column int) string {
	if column == 0 && r.Depth > 0 {
		return strings.Repeat("  ", r.Depth) + r.Texts[0]
	}
	return r.Texts[column]
}

// widths of the columns that fit, from the left.
func (s *screen) widths(c model.Cells, rows []model.CellRow) (out []int) {
	used := 0
	for n := range c.Heads {
		w := Width(c.Heads[n])
		if s.m.Place().Order.Column == n {
			w++
		}
		for _, r := range rows {
			w = max(w, Width(cellOf(r, n)))
		}
		w = min(w, widest)
		if used+w > s.Width && n > 0 {
			break
		}
		out = append(out, min(w, s.Width))
		used += w + 2
	}
	return out
}

// curve is a cumulative distribution.
type curve []api.Step

func (c curve) Total() float64 { return float64(len(c)) }

func (c curve) Share(x float64) float64 {
	share := 0.
	for _, s := range c {
		if s.LE > x {
			break
		}
		share = s.Share
	}
	return share
}

func (c curve) At(share float64) float64 {
	for _, s := range c {
		if s.Share >= share {
			return s.LE
		}
	}
	return c[len(c)-1].LE
}

// details is everything in a report.
func (s *screen) details() (out []Line) {
	i, r := s.m.Instance(), s.m.Report()
	s.instanceHead(i, r)
	if r == nil {
		return []Line{line("loading the window", Soft)}
	}
	out = append(out, wrap(traffic(r), s.Width, 2, Normal)...)
	if text, bad := hostsText(r.Hosts); text != "" {
		out = append(out, wrap(text, s.Width, 2, map[bool]Style{true: Warning}[bad])...)
	}
	for _, n := range r.Notes {
		out = append(out, wrap("note: "+n, s.Width, 6, Info)...)
	}
	for n, d := range r.Distributions {
		out = append(out, Line{}, line(distributionTitle(d), Head))
		out = append(out, s.quantiles(d)...)
		if a := s.m.Answer; n == 0 && a.Steps != nil && a.Steps.Name == d.Name && len(a.Steps.Steps) > 1 {
			for _, l := range plot.Lines(plot.Options{Unicode: s.o.Unicode, Width: min(s.Width, 100), Rows: 8, Tick: func(x float64) string { return report.Human(x, report.Unit(d.Unit)) }}, curve(a.Steps.Steps), nil) {
				out = append(out, line(l, Spark))
			}
			out = append(out, s.overTime()...)
		}
	}
	out = append(out, Line{}, line("numbers", Head))
	for _, v := range r.Values {
		out = append(out, s.pair(model.Words(v.Name, v.Unit), valueText(v), v.Help)...)
	}
	out = append(out, Line{}, line("lost by the measuring", Head))
	if len(r.Lost) == 0 {
		out = append(out, line("  nothing can be lost", Soft))
	}
	for _, name := range sortedNames(r.Lost) {
		out = append(out, s.pair(model.Words(name, ""), report.Human(r.Lost[name], report.Count), "")...)
	}
	for _, part := range []struct {
		name string
		text json.RawMessage
		unit string
	}{{"packets", r.Packets, ""}, {"memory", r.Memory, "bytes"}} {
		out = append(out, Line{}, line(part.name, Head))
		out = append(out, s.flat(part.text, "", part.unit)...)
	}
	return append(out, s.parameters(i)...)
}

func (s *screen) parameters(i *api.Instance) (out []Line) {
	if i == nil {
		return nil
	}
	for _, a := range i.Algorithms {
		if a.Name != s.m.Place().Algorithm || len(a.Params) == 0 {
			continue
		}
		out = append(out, Line{}, line("parameters", Head))
		for _, name := range sortedNames(a.Params) {
			out = append(out, s.pair(name, fmt.Sprint(a.Params[name]), "")...)
		}
	}
	return out
}

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *screen) quantiles(d api.Distribution) (out []Line) {
	for _, q := range d.Quantiles {
		out = append(out, s.pair(q.Name, quantileText(q, d.Unit), "")...)
	}
	out = append(out, s.pair("values", valueText(api.Value{Value: d.Count, Low: d.CountLow, High: d.CountHigh, Unit: "count"}), "")...)
	return append(out, s.pair("mean", model.Text(d.Mean, d.Unit), d.Help)...)
}

// pair is a name, its value, and its help.
func (s *screen) pair(name, value, help string) (out []Line) {
	const names, values = 26, 24
	l := Line{{"  " + padRight(name, names) + " ", Normal}, {value, Strong}}
	if help == "" {
		return []Line{l}
	}
	at := 2 + names + 1 + max(values, Width(value)) + 1
	if at+Width(help) <= s.Width {
		return []Line{append(l, Span{strings.Repeat(" ", at-l.width()) + help, Soft})}
	}
	return append([]Line{l}, indent(wrap(help, s.Width-6, 0, Soft), 6)...)
}

func indent(lines []Line, n int) []Line {
	for i := range lines {
		lines[i] = append(Line{{strings.Repeat(" ", n), Normal}}, lines[i]...)
	}
	return lines
}

// flat lists the numbers of a JSON object.
func (s *screen) flat(text json.RawMessage, prefix, unit string) (out []Line) {
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil {
		return nil
	}
	for _, name := range sortedNames(object) {
		v := object[name]
		switch {
		case len(v) > 0 && v[0] == '{':
			out = append(out, s.flat(v, prefix+name+" ", unit)...)
		case len(v) > 0 && v[0] == '[':
			out = append(out, s.list(prefix+name, v)...)
		default:
			u := unit
			if u == "" && model.Number(v) == model.Number(v) {
				u = "count"
			}
			out = append(out, s.pair(prefix+model.Words(name, ""), model.Text(v, u), "")...)
		}
	}
	return out
}

func (s *screen) list(name string, text json.RawMessage) (out []Line) {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil || len(all) == 0 {
		return nil
	}
	for n, v := range all {
		if len(v) > 0 && v[0] == '{' {
			out = append(out, line(fmt.Sprintf("  %s %d", model.Words(name, ""), n+1), Soft))
			out = append(out, s.flat(v, "  ", "")...)
			continue
		}
		out = append(out, s.pair(model.Words(name, ""), model.Text(v, ""), "")...)
	}
	return out
}

// row is a row of a table with all columns, and those marked so over time.
func (s *screen) row() (out []Line) {
	r := s.m.Report()
	s.instanceHead(s.m.Instance(), r)
	t, n := s.m.Row()
	if n < 0 {
		return wrap("This window has no row "+s.m.Place().Row+": it may reappear; [ and ] show other windows.", s.Width, 2, Warning)
	}
	out = append(out, line(tableTitle(t)+": "+s.m.Place().Row, Head))
	drawn := 0
	for k, c := range t.Columns {
		text := model.Text(t.Rows[n][k], c.Unit)
		out = append(out, s.pair(model.Words(c.Name, c.Unit), text, c.Help)...)
		if c.History && drawn < len(s.m.Answer.Fields) {
			values := s.m.Answer.Fields[drawn]
			drawn++
			if len(values) > 1 {
				most := 0.
				for _, x := range values {
					if x > most {
						most = x
					}
				}
				out = append(out, Line{{"    ", Normal}, {plot.Sparks(s.o.Unicode, values, most, max(8, s.Width-30)), Spark}, {" of " + report.Human(most, report.Unit(c.Unit)), Soft}})
			}
		}
	}
	return append(out, Line{}, line(s.window(r.Window), Soft))
}

// finding is everything about a finding.
func (s *screen) finding() (out []Line) {
	f := s.m.Finding()
	if f == nil {
		return []Line{line("This finding no longer exists.", Warning)}
	}
	state := f.Severity.String()
	if f.Until > 0 {
		state += ", over"
	}
	out = append(out, Line{{state, severityStyle(f)}}, Line{})
	out = append(out, wrap(f.Headline(), s.Width, 0, Strong)...)
	out = append(out, wrap(amount(f), s.Width, 0, Normal)...)
	out = append(out, Line{})
	if f.Next != "" {
		out = append(out, wrap("Next: "+f.Next, s.Width, 6, Info)...)
		out = append(out, Line{})
	}
	for _, p := range [][2]string{{"kind", string(f.Kind)}, {"subject", f.Subject.Type + " " + f.Subject.Name}, {"on", f.Interface}, {"windows that show it", fmt.Sprint(f.Windows)},
		{"from", strings.Join(f.Evidence, ", ")}, {"hosts", strings.Join(f.Hosts, ", ")}, {"suspect links", strings.Join(f.Links, ", ")}} {
		if p[1] != "" && p[1] != "0" {
			for n, l := range typeset.Wrap(Safe(p[1]), max(20, s.Width-30), 0) {
				out = append(out, s.pair(map[bool]string{true: p[0]}[n == 0], l, "")...)
			}
		}
	}
	return out
}

func (s *screen) health() (out []Line) {
	h := s.m.Answer.Health
	if h == nil {
		return []Line{line("loading the state of the process", Soft)}
	}
	if h.Failing {
		out = append(out, line("FAILING: /healthz answers 503", Critical), Line{})
	} else {
		out = append(out, line("The process is healthy.", Good), Line{})
	}
	text, err := json.Marshal(h.Health)
	if err != nil {
		return append(out, line(err.Error(), Critical))
	}
	out = append(out, s.flat(text, "", "")...)
	if len(s.m.Notices) > 0 {
		out = append(out, Line{}, line("notices", Head))
		for _, n := range s.m.Notices {
			out = append(out, wrap(clock(n.At.UnixMilli())+" "+n.Text, s.Width, 9, Normal)...)
		}
	}
	if over := s.m.Over; len(over) > 0 {
		out = append(out, Line{}, line("ended findings", Head))
		for _, f := range over[:min(len(over), 50)] {
			out = append(out, wrap(f.Sentence(), s.Width, 2, Soft)...)
		}
	}
	return out
}

// help explains keys and notation.
func (s *screen) help() (out []Line) {
	keys := func(title string, pairs ...string) {
		out = append(out, line(title, Head))
		for n := 0; n < len(pairs); n += 2 {
			lines := typeset.Wrap(pairs[n+1], max(20, s.Width-20), 0)
			for k, l := range lines {
				out = append(out, Line{{"  " + padRight(map[bool]string{true: pairs[n]}[k == 0], 17), Strong}, {l, Normal}})
			}
		}
		out = append(out, Line{})
	}
	keys("Everywhere", "Up Down j k", "choose or scroll; PageUp, PageDown, Home (g), G", "Enter", "go down: finding, its instance, row", "Esc Backspace", "go back; clears a filter first",
		"[  ]", "the window before, the window after (as far as windows are stored)", "{  }", "thirty windows earlier or later", "l End", "live again", "Space p", "pause; again: live", "q Ctrl-C", s.o.Quit)
	keys("Findings and instances", "Tab", "from findings to instances and back", "Right", "from a finding to the instance and the row that it is about", "/", "filter by text", "s S  < >  1-9", "sort by the next column, reverse; the previous and the next column; column by number",
		"i", "one interface only", "h", "state of the process, notices, ended findings", "d", "everything of an instance")
	keys("An instance", "Left Right", "another algorithm", "Tab", "another table: flows, prefixes, slices, bursts, alerts", "Enter", "a row with all columns and what they mean", "d", "everything: distributions, numbers, losses, parameters")
	keys("Notation", "(a .. b), a-b", "95 % interval from the samples", "[a .. b], [a-b]", "guaranteed bounds from theory, wider", "loss", "packets lost on the path, if an algorithm measures that", "queue",
		"longest delay in a queue, if an algorithm measures that", "not measured", "traffic that the measurement lost: its tables are too small", "over time", "packets per second, one character per window, the latest at the right")
	return append(out, line("All times are UTC. docs/top.md has the full description.", Soft))
}
