package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report/known"
	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// tableRows is how many rows of a top-k table are shown to people; JSON has all.
const tableRows = 20

// Text draws one window of one algorithm for people: the lines of a block within the style's width.
func Text(l Line, run Run, style Style) []string {
	lines := heading(l, run, style)
	lines = append(lines, accounts(l, style)...)
	lines = append(lines, bodyText(l.Report, l.Truth, l.Error, float64(l.Window.End-l.Window.Start)/1e9, style)...)
	for i := range lines {
		lines[i] = style.clip(lines[i], style.width())
	}
	return lines
}

// BodyText draws a body alone, as `xdpmon plan` shows it; truth and errors may be nil.
func BodyText(b Body, truth, errors *Body, style Style) []string {
	lines := bodyText(b, truth, errors, 0, style)
	if len(lines) > 0 && lines[0] == "" {
		return lines[1:]
	}
	return lines
}

// bodyText separates all parts but the notes by blank lines; seconds is the length of the window, 0 where there is none.
func bodyText(b Body, truth, errors *Body, seconds float64, style Style) []string {
	t := against{truth: truth, errors: errors, seconds: seconds}
	lines := style.spaced(t.values(b.Values, style))
	for _, d := range b.Distributions {
		lines = append(lines, style.spaced(t.distribution(d, style))...)
	}
	for _, tab := range b.Tables {
		lines = append(lines, style.spaced(t.table(tab, style))...)
	}
	for _, note := range b.Notes {
		lines = append(lines, typeset.Wrap("note: "+typeset.Printable(note), style.width(), 6)...)
	}
	if truth != nil {
		for _, note := range truth.Notes {
			lines = append(lines, typeset.Wrap("truth: "+typeset.Printable(note), style.width(), 7)...)
		}
	}
	return lines
}

func heading(l Line, run Run, style Style) []string {
	title := fmt.Sprintf("%s on %s", typeset.Printable(l.Algorithm), typeset.Printable(l.Key()))
	when := l.Window.text(run.Clock)
	room := style.width() - typeset.Length(when) - 2
	if room < 20 {
		return append([]string{style.clip(title, style.width()), when}, style.rule()...)
	}
	return append([]string{typeset.PadRight(style.clip(title, room), room+2) + when}, style.rule()...)
}

func (s Style) rule() []string {
	if s.dense > airy {
		return nil
	}
	return []string{strings.Repeat(s.glyph("─", "-"), s.width())}
}

// text is the time of the window: wall clock time if known, else seconds of the packets' clock.
func (w Window) text(clock Clock) string {
	number := fmt.Sprintf("window %d", w.Number)
	if w.Last {
		number += " (last)"
	}
	if w.Stretched {
		number += " (stretched)"
	}
	took := Human(w.End-w.Start, Nanosecond)
	if start, ok := clock.utc(w.Start).(string); ok {
		return fmt.Sprintf("%s, %s + %s", number, start, took)
	}
	return fmt.Sprintf("%s, %.3f s + %s", number, float64(w.Start)/1e9, took)
}

// accounts are the lines on packets, memory and losses.
func accounts(l Line, style Style) []string {
	p := l.Packets
	stand := ""
	if p.Segments != p.Seen {
		stand = ", " + Human(p.Segments, Segments) + " segments"
	}
	seen := fmt.Sprintf("%s seen (%s%s), %s parsed, %s", Human(p.Seen, PacketUnit), Human(p.Bytes, Bytes), stand,
		Human(p.Parsed, PacketUnit), used(p))
	lines := item("packets", seen, style)
	if p.Verdicts != nil {
		lines = append(lines, item("verdicts", verdicts(p), style)...)
	}
	if p.Queue != nil {
		lines = append(lines, item("queue", p.Queue.text(), style)...)
	}
	if reasons := nonZero(p.Reasons); reasons != "" && style.dense == airy {
		lines = append(lines, item("unparsed", reasons, style)...)
	}
	if l.Hosts != nil {
		lines = append(lines, item("hosts", l.Hosts.text(), style)...)
	}
	lines = append(lines, item("lost", orNothing(nonZero(l.Lost)), style)...)
	if style.dense > airy {
		return lines
	}
	memory := Human(l.Memory.RegisterBytes, Bytes) + " in registers"
	if l.Memory.KernelBytes > 0 {
		memory += ", " + Human(l.Memory.KernelBytes, Bytes) + " in the kernel"
	}
	return append(lines, item("memory", memory, style)...)
}

// verdicts is the line on actions on packets.
func verdicts(p Packets) string {
	v := p.Verdicts
	text := fmt.Sprintf("%s passed, %s dropped (%s), %s marked", Human(p.Passed(), PacketUnit), Human(v.Dropped, PacketUnit),
		Human(v.DroppedBytes, Bytes), Human(v.Marked, PacketUnit))
	if v.MarkedBefore > 0 {
		text += ", " + Human(v.MarkedBefore, PacketUnit) + " marked before"
	}
	if v.Steered > 0 {
		text += ", " + Human(v.Steered, PacketUnit) + " sent another way"
	}
	if v.Unmarkable > 0 {
		text += ", " + Human(v.Unmarkable, PacketUnit) + " could not be marked"
	}
	return text
}

// text is the line on packets handed to the queue.
func (q *Queue) text() string {
	text := fmt.Sprintf("%s handed over, %s sent, %s dropped, %s waiting, %s missed so far", Human(q.Carried, PacketUnit), Human(q.Sent, PacketUnit),
		Human(q.Dropped, PacketUnit), Human(q.Queued, PacketUnit), Human(q.Missed, PacketUnit))
	for _, odd := range []struct {
		n    uint64
		what string
	}{
		{q.Bare, "sent without being handed over"}, {q.Foreign, "with metadata of another program"}, {q.Stale, "with outdated metadata"},
		{q.Unparsed, "unreadable"},
	} {
		if odd.n > 0 {
			text += ", " + Human(odd.n, PacketUnit) + " " + odd.what
		}
	}
	return text
}

// item writes a named line, wrapped under its text.
func item(name, text string, style Style) []string {
	const indent = 10
	lines := typeset.Wrap(text, style.width()-indent, 0)
	for i := range lines {
		if i == 0 {
			lines[i] = typeset.PadRight(name, indent) + lines[i]
		} else {
			lines[i] = typeset.Blanks(indent) + lines[i]
		}
	}
	return lines
}

// used is the number of packets that an algorithm used, and their share of all, in the same unit.
func used(p Packets) string {
	unit, of, what := PacketUnit, p.Seen, "used"
	if p.UsedSegments && p.Segments != p.Seen {
		unit, of, what = Segments, p.Segments, "segments used"
	}
	text := Human(p.Used, unit) + " " + what
	if of > 0 {
		text += " (" + Human(float64(p.Used)/float64(of), Ratio) + ")"
	}
	return text
}

// nonZero lists counts that are not 0, the largest first.
func nonZero(counts map[string]uint64) string {
	var names []string
	for name, n := range counts {
		if n > 0 {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := counts[names[i]], counts[names[j]]
		return a > b || a == b && names[i] < names[j]
	})
	for i, name := range names {
		names[i] = Human(counts[name], Count) + " " + plainWords(name, None)
	}
	return strings.Join(names, ", ")
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// against holds the truth and the errors of an estimate; both may be nil.
type against struct {
	truth, errors *Body
	seconds       float64 // of the window
}

func (a against) value(name string) (Value, bool) {
	if a.truth == nil {
		return Value{}, false
	}
	return Find(a.truth.Values, name)
}

// err returns a relative error by name, written with its sign; "" when there is none.
func (a against) err(name string) string {
	if a.errors == nil {
		return ""
	}
	v, ok := Find(a.errors.Values, name)
	if !ok {
		return ""
	}
	f, _ := Number(v.Value)
	return signed(f)
}

// values lists numbers: those with a truth in a grid next to it, the others in as many columns as fit.
func (a against) values(values []Value, style Style) []string {
	compared := typeset.Grid{Right: []bool{false, true, true, true}}
	var free []Value
	for _, v := range values {
		t, ok := a.value(v.Name)
		if !ok {
			free = append(free, v)
			continue
		}
		compared.Add(plainWords(v.Name, v.Unit), v.text(), Human(t.Value, v.Unit), a.err(v.Name))
	}
	var lines []string
	if style.dense < bare {
		lines = flow(free, style)
	}
	if len(compared.Rows) > 0 {
		head := typeset.Grid{Right: compared.Right, Rows: [][]string{{"", "estimate", "truth", "error"}}}
		compared.Rows = append(head.Rows, compared.Rows...)
		lines = append(lines, compared.Lines()...)
	}
	return lines
}

func (v Value) text() string { return Enclosed(v.Value, v.Low, v.High, v.Unit, v.Promise) }

// flow writes "name value" pairs in columns of equal width; a pair wider than half the screen takes a line.
func flow(values []Value, style Style) []string {
	var lines, short []string
	wide := 0
	for _, v := range values {
		pair := plainWords(v.Name, v.Unit) + ": " + v.text()
		if 2*typeset.Length(pair)+3 > style.width() {
			lines = append(lines, typeset.Wrap(pair, style.width(), 2)...)
			continue
		}
		short = append(short, pair)
		wide = max(wide, typeset.Length(pair))
	}
	return append(typeset.Columns(short, wide+3, style.width()), lines...)
}

// table draws a top-k list and, with a truth, how much of the true list is in it.
func (a against) table(t Table, style Style) []string {
	t = t.forPeople(style).bySecond(a.seconds)
	lines := typeset.Wrap(t.heading(), style.width(), 2)
	if len(t.Rows) == 0 {
		return append(lines, "  none")
	}
	lines = append(lines, t.fit(style)...)
	if hidden := len(t.Rows) - style.rows(); hidden > 0 {
		where := "--output json has all"
		if style.Brief {
			where = "--details"
		}
		lines = append(lines, fmt.Sprintf("  and %s more (%s)", typeset.Thousands(float64(hidden)), where))
	}
	if recall, precision := a.err(t.Name+".recall"), a.err(t.Name+".precision"); recall != "" {
		text := fmt.Sprintf("%s of the true list were found; %s of this list are true",
			strings.TrimPrefix(recall, "+"), strings.TrimPrefix(precision, "+"))
		lines = append(lines, typeset.Wrap(text, style.width(), 2)...)
	}
	return lines
}

func (t Table) heading() string {
	if t.Title != "" {
		return typeset.Printable(t.Title)
	}
	return plainWords(t.Name, None)
}

// nameWidth is how many characters of a row's names are shown to people; JSON has the full names.
const nameWidth = 28

const nameColumn = "name"

// order lists the columns as people see them: what is to be first follows the labels, and ends that are shown together with their value are left out.
func (t Table) order() (list []int) {
	var ends []string
	for i, c := range t.Columns {
		if c.Together {
			ends = append(ends, c.Low, c.High)
		}
		if !c.JSON {
			list = append(list, i)
		}
	}
	list = slices.DeleteFunc(list, func(i int) bool { return slices.Contains(ends, t.Columns[i].Name) })
	place := func(i int) int {
		c := t.Columns[i]
		switch {
		case c.Label:
			return 0
		case c.First && slices.ContainsFunc(t.Rows, func(row []any) bool { return hasValue(cell(row, i)) }):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(list, func(i, k int) int { return cmp.Compare(place(i), place(k)) })
	return list
}

// hasValue reports whether a cell has a value.
func hasValue(x any) bool {
	f, ok := Number(x)
	return x != nil && !(ok && math.IsNaN(f))
}

// together is a cell with the value and its ends.
func (t Table) together(row []any, c Column) any {
	at := func(name string) any {
		if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
			return cell(row, i)
		}
		return nil
	}
	return Enclosed(at(c.Name), at(c.Low), at(c.High), c.Unit, Interval)
}

// forPeople omits the columns for programs, and inserts the rows' names after the first column that is not a label.
func (t Table) forPeople(style Style) Table {
	people, names := t, len(t.Names) > 0
	people.Columns, people.Rows = nil, make([][]any, len(t.Rows))
	add := func(c Column, cell func(n int) any) {
		people.Columns = append(people.Columns, c)
		for n := range t.Rows {
			people.Rows[n] = append(people.Rows[n], cell(n))
		}
	}
	for _, i := range t.order() {
		c := t.Columns[i]
		if c.Together {
			add(Column{Name: plainWords(c.Name, c.Unit)}, func(n int) any { return t.together(t.Rows[n], c) })
		} else {
			add(c, func(n int) any { return cell(t.Rows[n], i) })
		}
		if names && !c.Label {
			names = false
			add(Column{Name: nameColumn}, func(n int) any { return style.clip(known.Row(t.Names[n]), nameWidth) })
		}
	}
	return people
}

// bySecond adds a column of values per second next to a column with a rate; bits per second before bytes, and packets per second after names: what is last is left
// out first where the width does not suffice.
func (t Table) bySecond(seconds float64) Table {
	at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Rate })
	if at < 0 || !(seconds > 0) {
		return t
	}
	c, to, factor := Column{Name: t.Columns[at].Name + " per second", Unit: PerSecond}, at+1, 1/seconds
	if t.Columns[at].Unit == Bytes {
		c, to, factor = Column{Name: "rate", Unit: BitRate}, at, 8/seconds
	} else if to < len(t.Columns) && t.Columns[to].Name == nameColumn {
		to++
	}
	t.Columns = slices.Insert(slices.Clone(t.Columns), to, c)
	for n, row := range t.Rows {
		var rate any
		if f, ok := Number(cell(row, at)); ok {
			rate = f * factor
		}
		t.Rows[n] = slices.Insert(slices.Clone(row), to, rate)
	}
	return t
}

// whole draws the grid with full names and at least one more column, or returns nil if that does not fit.
func (t Table) whole(style Style) []string {
	names := 0
	for _, c := range t.Columns {
		if c.Label {
			names++
		}
	}
	for shown := len(t.Columns); shown > names; shown-- {
		if lines := t.grid(style, shown, style.width()); widest(lines) <= style.width() {
			return append(lines, t.left(shown, style)...)
		}
	}
	return nil
}

// fit draws the grid, narrowed until it fits: first long names are truncated, then columns at the right are omitted; in the
// opposite order where full names are needed.
func (t Table) fit(style Style) []string {
	if t.Whole || style.Brief {
		if lines := t.whole(style); lines != nil {
			return lines
		}
	}
	for shown := len(t.Columns); shown > 0; shown-- {
		for limit := 40; limit >= 12; limit -= 7 {
			lines := t.grid(style, shown, limit)
			if widest(lines) > style.width() && !(shown == 1 && limit == 12) {
				continue
			}
			return append(lines, t.left(shown, style)...)
		}
	}
	return nil
}

func (t Table) left(shown int, style Style) []string {
	if shown == len(t.Columns) || style.Brief {
		return nil
	}
	var names []string
	for _, c := range t.Columns[shown:] {
		names = append(names, c.Name)
	}
	return []string{"  not shown (too narrow): " + strings.Join(names, ", ")}
}

func widest(lines []string) int {
	n := 0
	for _, l := range lines {
		n = max(n, typeset.Length(l))
	}
	return n
}

func (t Table) grid(style Style, shown, limit int) []string {
	g := typeset.Grid{}
	head := make([]string, shown)
	for i, c := range t.Columns[:shown] {
		head[i] = plainWords(c.Name, c.Unit)
		g.Right = append(g.Right, t.numeric(i))
	}
	g.Add(head...)
	for _, row := range t.Rows[:min(style.rows(), len(t.Rows))] {
		cells := make([]string, shown)
		for i, c := range t.Columns[:shown] {
			cells[i] = style.clip(Human(cell(row, i), c.Unit), limit)
		}
		g.Add(cells...)
	}
	lines := g.Lines()
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// numeric reports whether a column holds numbers, which are aligned to the right.
func (t Table) numeric(column int) bool {
	for _, row := range t.Rows {
		if _, ok := Number(cell(row, column)); !ok && cell(row, column) != nil {
			return false
		}
	}
	return true
}
