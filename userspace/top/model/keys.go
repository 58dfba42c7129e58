package model

import (
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
)

// Key is a pressed key: a character, or a name.
type Key struct {
	Rune rune
	Name string // Up, Down, Left, Right, PageUp, PageDown, Home, End, Enter, Escape, Tab, BackTab, Backspace, Interrupt
}

// Effect of a key.
type Effect int

// Effects: the screen is redrawn after each.
const (
	Draw Effect = iota
	Ask         // another window or view is shown: request it
	Quit
)

// Press handles a key.
func (m *Model) Press(k Key) Effect {
	if k.Name == "Interrupt" {
		return Quit
	}
	if m.Filtering {
		return m.typed(k)
	}
	if e, done := m.anywhere(k); done {
		return e
	}
	switch m.Place().View {
	case Overview:
		return m.pressOverview(k)
	case Opened:
		return m.pressOpened(k)
	case FindingDetails:
		if k.Name == "Enter" {
			return m.openSubject(m.Finding())
		}
	case Interfaces:
		if k.Name == "Enter" {
			m.Interface = m.Interfaces()[m.Place().Selected]
			m.back()
			m.clamp()
			return Ask
		}
	case Details:
		if k.Rune == 'd' {
			m.back()
			return Ask
		}
	}
	return Draw
}

// typed handles a key while a filter is edited.
func (m *Model) typed(k Key) Effect {
	p := m.Place()
	switch {
	case k.Name == "Enter":
		m.Filtering = false
	case k.Name == "Escape":
		m.Filtering, p.Filter = false, ""
	case k.Name == "Backspace":
		if r := []rune(p.Filter); len(r) > 0 {
			p.Filter = string(r[:len(r)-1])
		}
	case k.Rune >= ' ' && len(p.Filter) < mostFilter:
		p.Filter += string(k.Rune)
	}
	m.clamp()
	return Draw
}

// anywhere handles the keys that all views share.
func (m *Model) anywhere(k Key) (e Effect, done bool) {
	if m.moved(k) {
		return Draw, true
	}
	p := m.Place()
	switch {
	case k.Rune == 'q':
		return Quit, true
	case k.Rune == '?' && p.View != Help:
		m.enter(Place{View: Help})
	case k.Rune == '?' || k.Name == "Escape" || k.Name == "Backspace":
		return m.escape(), true
	case k.Rune == ' ' || k.Rune == 'p':
		m.pause()
		return Ask, true
	case k.Rune == 'l' || k.Name == "End":
		m.live()
		return Ask, true
	case strings.ContainsRune("[]{}", k.Rune) && k.Rune != 0:
		m.move(map[rune]int{'[': -1, ']': 1, '{': -far, '}': far}[k.Rune])
		return Ask, true
	case k.Rune == 'i' && p.View == Overview:
		m.enter(Place{View: Interfaces, Selected: max(0, slices.Index(m.Interfaces(), m.Interface))})
	case k.Rune == 'h' && p.View == Overview:
		m.enter(Place{View: Health})
		return Ask, true
	case k.Rune == '/' && (p.View == Overview || p.View == Opened):
		m.Filtering = true
	default:
		return Draw, false
	}
	return Draw, true
}

// escape takes one step back: it clears a filter, leaves a view, or clears the choice of an interface.
func (m *Model) escape() Effect {
	switch p := m.Place(); {
	case p.Filter != "":
		p.Filter = ""
	case m.back():
		m.clamp()
	default:
		m.Interface = ""
	}
	return Ask
}

// moved handles the keys that move the selection.
func (m *Model) moved(k Key) bool {
	p, page := m.Place(), max(1, m.Height-8)
	switch {
	case k.Name == "Up" || k.Rune == 'k':
		p.Selected--
	case k.Name == "Down" || k.Rune == 'j':
		p.Selected++
	case k.Name == "PageUp":
		p.Selected -= page
	case k.Name == "PageDown":
		p.Selected += page
	case k.Name == "Home" || k.Rune == 'g':
		p.Selected = 0
	case k.Rune == 'G':
		p.Selected = m.Count() - 1
	default:
		return false
	}
	m.clamp()
	return true
}

func (m *Model) pressOverview(k Key) Effect {
	p, findings := m.Place(), m.Findings()
	switch {
	case m.ordered(k, len(columns)):
	case k.Name == "Tab" || k.Name == "BackTab":
		if p.Selected < len(findings) {
			p.Selected = len(findings)
		} else {
			p.Selected = 0
		}
		m.clamp()
	case k.Name == "Right" && p.Selected < len(findings):
		return m.openSubject(findings[p.Selected])
	case k.Name == "Enter" || k.Rune == 'd' || k.Name == "Right":
		if p.Selected < len(findings) {
			m.enter(Place{View: FindingDetails, Finding: findings[p.Selected].ID})
			return Draw
		}
		rows := m.Rows()
		if n := p.Selected - len(findings); n < len(rows) && rows[n].main != nil {
			m.open(rows[n].Key, rows[n].main.Name)
			if k.Rune == 'd' {
				m.enter(Place{View: Details, Key: rows[n].Key, Algorithm: rows[n].main.Name})
			}
			return Ask
		}
	}
	return Draw
}

func (m *Model) open(key, algorithm string) {
	m.enter(Place{View: Opened, Key: key, Algorithm: algorithm, Order: Order{Column: -1}})
}

// ordered handles the keys that sort: s and S, < and >, and the number of a column.
func (m *Model) ordered(k Key, columns int) bool {
	o := &m.Place().Order
	switch {
	case k.Rune == 's' || k.Rune == '>':
		*o = Order{Column: o.Column + 1}
	case k.Rune == '<':
		*o = Order{Column: o.Column - 1}
	case k.Rune == 'S' || k.Rune == 'r':
		o.Reverse = !o.Reverse
	case k.Rune >= '1' && k.Rune <= '9' && int(k.Rune-'1') < columns:
		if n := int(k.Rune - '1'); o.Column == n {
			o.Reverse = !o.Reverse
		} else {
			*o = Order{Column: n}
		}
	default:
		return false
	}
	if o.Column >= columns {
		o.Column = -1
	}
	if o.Column < -1 {
		o.Column = columns - 1
	}
	return true
}

func (m *Model) pressOpened(k Key) Effect {
	p := m.Place()
	switch {
	case m.ordered(k, len(m.Cells().Columns)):
	case k.Name == "Left" || k.Name == "Right":
		m.nextAlgorithm(k.Name == "Right")
		return Ask
	case k.Name == "Tab" || k.Name == "BackTab":
		m.nextTable(k.Name == "Tab")
		return Ask
	case k.Rune == 'd':
		m.enter(Place{View: Details, Key: p.Key, Algorithm: p.Algorithm, Table: p.Table})
		return Ask
	case k.Name == "Enter":
		t, cells := m.Table(), m.Cells()
		if t != nil && p.Selected < len(cells.Rows) {
			m.enter(Place{View: RowDetails, Key: p.Key, Algorithm: p.Algorithm, Table: t.Name, Row: label(t, cells.Rows[p.Selected].Row)})
			return Ask
		}
	}
	return Draw
}

// next is the next or previous index of n, cyclically.
func next(at, n int, up bool) int {
	if up {
		return (at + 1) % n
	}
	return (max(at, 0) + n - 1) % n
}

func (m *Model) nextAlgorithm(up bool) {
	i, p := m.Instance(), m.Place()
	if i == nil || len(i.Algorithms) == 0 {
		return
	}
	at := -1
	for n, a := range i.Algorithms {
		if a.Name == p.Algorithm {
			at = n
		}
	}
	*p = Place{View: Opened, Key: p.Key, Algorithm: i.Algorithms[next(at, len(i.Algorithms), up)].Name, Order: Order{Column: -1}}
}

func (m *Model) nextTable(up bool) {
	r, t, p := m.Report(), m.Table(), m.Place()
	if r == nil || t == nil {
		return
	}
	at := 0
	for n := range r.Tables {
		if r.Tables[n].Name == t.Name {
			at = n
		}
	}
	p.Table, p.Selected, p.Filter, p.Order = r.Tables[next(at, len(r.Tables), up)].Name, 0, "", Order{Column: -1}
}

// openSubject opens the instance of a finding, with the algorithm of its evidence, and selects the row of its subject.
func (m *Model) openSubject(f *finding.Finding) Effect {
	if f == nil {
		return Draw
	}
	key, algorithm := m.placeOf(f)
	if key == "" {
		return Draw
	}
	m.open(key, algorithm)
	m.Place().Subject = f.Subject.Name
	return Ask
}

// placeOf is where the numbers of a finding are: the instance that it names, else the first on its interface that runs an algorithm of its evidence.
func (m *Model) placeOf(f *finding.Finding) (key, algorithm string) {
	places := strings.Split(f.Interface, ",")
	named := func(i api.Instance) bool { return f.Numbers != "" && i.Key == f.Numbers }
	known := slices.ContainsFunc(m.Instances.Instances, named)
	for n := range m.Instances.Instances {
		i := &m.Instances.Instances[n]
		row := m.row(i.Key)
		if row == nil || row.main == nil || known && !named(*i) || !known && !slices.Contains(places, i.Key) && !slices.ContainsFunc(i.Interfaces, func(name string) bool { return slices.Contains(places, name) }) {
			continue
		}
		for _, e := range f.Evidence {
			if name, _, _ := strings.Cut(e, "."); slices.Contains(row.Algorithms, name) {
				return i.Key, name
			}
		}
		if key == "" {
			key, algorithm = i.Key, row.main.Name
		}
	}
	return key, algorithm
}

// seek selects the row of a subject, in the first table that contains one.
func (m *Model) seek() {
	p, r := m.Place(), m.Report()
	if p.Subject == "" || r == nil {
		return
	}
	want := p.Subject
	p.Subject = "" // do not return to it after the user moves on
	for n := range r.Tables {
		p.Table = r.Tables[n].Name
		for at, row := range m.Cells().Rows {
			if slices.Contains(row.Texts, want) {
				p.Selected = at
				return
			}
		}
	}
	p.Table = ""
}
