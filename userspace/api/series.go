package api

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/userspace/store"
)

// Series are fields of windows over time.
type Series struct {
	Fields []string            `json:"fields" doc:"of a row after start and end"`
	Rows   [][]json.RawMessage `json:"rows" doc:"start and end of the window in milliseconds since 1970, then the fields; null if a window has none"`
	StepMS int64               `json:"step_ms" doc:"one window per step; 0: all windows"`
	Next   string              `json:"next,omitempty" doc:"the parameter from of the next page, if there is one"`
}

// field is a path and, for a cell of a table, its row and column.
type field struct {
	path, row, column string
}

func parseField(name string) (field, error) {
	open := strings.IndexByte(name, '[')
	if open < 0 {
		return field{path: name}, nil
	}
	end := strings.LastIndex(name, "].")
	if end < open {
		return field{}, wrong("fields", "%.100q: a cell of a table is report.TABLE[ROW].COLUMN", name)
	}
	return field{path: name[:open], row: name[open+1 : end], column: name[end+2:]}, nil
}

// reader reads fields of windows.
type reader struct {
	fields []field
	tree   *wanted
	found  []json.RawMessage
}

func newReader(names []string) (*reader, error) {
	r := &reader{}
	paths := []string{"window.start", "window.end"}
	for _, name := range names {
		f, err := parseField(name)
		if err != nil {
			return nil, err
		}
		r.fields = append(r.fields, f)
	}
	for _, f := range r.fields {
		paths = append(paths, f.path)
	}
	r.tree, r.found = tree(paths), make([]json.RawMessage, len(paths))
	return r, nil
}

// row is the fields of a window.
func (r *reader) row(line []byte, end time.Time) ([]json.RawMessage, error) {
	if err := pick(line, r.tree, r.found); err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, 2+len(r.fields))
	var start, stop int64
	_ = json.Unmarshal(r.found[0], &start) // integers: written by this program
	_ = json.Unmarshal(r.found[1], &stop)
	out[0], out[1] = milliseconds(end.UnixMilli()-(stop-start)/1e6), milliseconds(end.UnixMilli())
	for i, f := range r.fields {
		v := r.same(i)
		if f.column != "" {
			v = cell(v, f.row, f.column)
		}
		if v == nil {
			v = json.RawMessage("null")
		}
		out[2+i] = append(json.RawMessage{}, v...)
	}
	return out, nil
}

// same is the member of a field: fields with the same path (cells of one table) share it.
func (r *reader) same(i int) json.RawMessage {
	for n := len(r.fields) - 1; n >= 0; n-- {
		if r.fields[n].path == r.fields[i].path && r.found[2+n] != nil {
			return r.found[2+n]
		}
	}
	return nil
}

func milliseconds(ms int64) json.RawMessage {
	text, _ := json.Marshal(ms) // a number
	return text
}

// usualRange is the range without the parameter from.
const usualRange = time.Hour

func (a *API) windows(ctx context.Context, q query) (any, error) {
	r, err := newReader(q.list("fields"))
	if err != nil {
		return nil, err
	}
	from, to, points := q.time("from"), q.time("to"), q.integer("points")
	if to.IsZero() {
		to = a.opts.Now().Add(time.Second)
	}
	if from.IsZero() {
		from = to.Add(-usualRange)
	}
	if !from.Before(to) {
		return nil, wrong("from", "from %s is not before to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	step := q.duration("step")
	if points == 0 {
		points = usualPoints
	}
	if step == 0 {
		step = (to.Sub(from) / time.Duration(points)).Truncate(time.Second)
	}
	out := Series{Fields: q.list("fields"), Rows: [][]json.RawMessage{}, StepMS: step.Milliseconds()}
	sq := store.Query{Key: q.text("key"), Algorithm: q.text("algorithm"), From: from, To: to}
	err = a.ask(ctx, func() error {
		err := a.past().Sample(sq, step, func(rec store.Record) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(out.Rows) == min(points+1, mostPoints) {
				out.Next = rec.End.UTC().Format(time.RFC3339Nano)
				return errFound
			}
			row, err := r.row(rec.Line, rec.End)
			if err == nil {
				out.Rows = append(out.Rows, row)
			}
			return err
		})
		if err == errFound {
			err = nil
		}
		return err
	})
	return out, err
}
