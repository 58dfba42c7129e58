package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/userspace/report/typeset"
)

// recentFor is how long a live table shows rows of Table.Events after their window, recentRows the most rows it stores.
const (
	recentFor  = 10 * time.Minute
	recentRows = 50
)

// recent are the rows of an algorithm's tables of events, by the table's name, the newest first.
type recent map[string][]event

type event struct {
	name string // of the row; a later row of the same name replaces this one
	row  []any
	at   time.Time // when its window ended
}

// add takes a window.
func (r recent) add(b *Body, now time.Time) {
	for _, t := range b.Tables {
		if !t.Events {
			continue
		}
		list := r[t.Name]
		for _, row := range t.Rows {
			name := t.rowName(row)
			list = slices.DeleteFunc(list, func(e event) bool { return e.name == name })
			list = slices.Insert(list, 0, event{name, row, now})
		}
		r[t.Name] = list[:min(len(list), recentRows)]
	}
}

// in is the line with the rows of recent windows in its tables, and a column that states how old they are.
func (r recent) in(l Line, now time.Time) Line {
	l.Report.Tables = slices.Clone(l.Report.Tables)
	for i := range l.Report.Tables {
		t := &l.Report.Tables[i]
		rows := r[t.Name]
		for len(rows) > 0 && now.Sub(rows[len(rows)-1].at) > recentFor {
			rows = rows[:len(rows)-1]
		}
		if len(rows) == 0 {
			continue
		}
		l.recent = true
		place := 0
		for place < len(t.Columns) && t.Columns[place].Label {
			place++
		}
		t.Title = fmt.Sprintf("%s, the last %d min", t.heading(), recentFor/time.Minute)
		t.Columns = slices.Insert(slices.Clone(t.Columns), place, Column{Name: "age of window", Help: "time since the end of the row's window"})
		t.Rows = make([][]any, len(rows))
		for n, e := range rows {
			t.Rows[n] = slices.Insert(slices.Clone(e.row), place, any(typeset.Clock(now.Sub(e.at))))
		}
	}
	return l
}
