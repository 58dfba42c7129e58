package api

import (
	"encoding/json"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Window is the time of a window. Numbers count from 0 since the start of the instance.
type Window struct {
	StartMS   int64 `json:"start_ms" doc:"start, milliseconds since 1970"`
	EndMS     int64 `json:"end_ms" doc:"end, milliseconds since 1970"`
	Number    int   `json:"number"`
	Stretched bool  `json:"stretched" doc:"more than 5 % longer than configured"`
	Cut       bool  `json:"cut" doc:"shorter than configured"`
}

// Report is a window with everything needed to show it: units, intervals and help.
type Report struct {
	Key           string            `json:"key" doc:"the instance, or instance/interface if each interface has registers of its own"`
	Algorithm     string            `json:"algorithm"`
	Window        Window            `json:"window"`
	Packets       json.RawMessage   `json:"packets" doc:"as in a JSON line (docs/output.md)"`
	Memory        json.RawMessage   `json:"memory" doc:"as in a JSON line"`
	Lost          map[string]uint64 `json:"lost" doc:"everything that could be lost, by name"`
	Hosts         json.RawMessage   `json:"hosts,omitempty" doc:"hosts whose windows were merged, at a coordinator"`
	Values        []Value           `json:"values"`
	Distributions []Distribution    `json:"distributions"`
	Tables        []Table           `json:"tables"`
	Notes         []string          `json:"notes" doc:"sentences for the operator"`
}

// Value is a number or text of a report.
type Value struct {
	Name    string          `json:"name" doc:"its field is report.NAME"`
	Value   json.RawMessage `json:"value"`
	Low     json.RawMessage `json:"low,omitempty" doc:"lower end, 95 %"`
	High    json.RawMessage `json:"high,omitempty" doc:"upper end, 95 %"`
	Promise string          `json:"promise,omitempty" doc:"interval (from samples) or bound (from theory)"`
	Unit    string          `json:"unit" doc:"ns, bytes, packets, ratio, 1/s, bit/s, count, or the name of what is counted"`
	Kind    string          `json:"kind" doc:"gauge, counter or info"`
	Answer  bool            `json:"answer,omitempty" doc:"a main result; the others are details of the measurement"`
	Help    string          `json:"help,omitempty"`
}

// Quantile is a percentile of a distribution.
type Quantile struct {
	Name    string          `json:"name" doc:"its field is report.DISTRIBUTION.NAME"`
	Q       float64         `json:"q" doc:"0 to 1"`
	Value   json.RawMessage `json:"value"`
	Low     json.RawMessage `json:"low,omitempty"`
	High    json.RawMessage `json:"high,omitempty"`
	Promise string          `json:"promise,omitempty"`
}

// Distribution is a distribution of a report.
type Distribution struct {
	Name      string          `json:"name"`
	Title     string          `json:"title"`
	Unit      string          `json:"unit"`
	Count     json.RawMessage `json:"count" doc:"estimated number of values"`
	CountLow  json.RawMessage `json:"count_low,omitempty"`
	CountHigh json.RawMessage `json:"count_high,omitempty"`
	Mean      json.RawMessage `json:"mean"`
	Quantiles []Quantile      `json:"quantiles"`
	Steps     []Step          `json:"steps,omitempty" doc:"of the cumulative distribution; only in /distributions"`
	From      string          `json:"steps_from,omitempty" doc:"registers: every step; percentiles: of a window whose registers are not stored"`
	Help      string          `json:"help,omitempty"`
}

// Step is a step of a cumulative distribution.
type Step struct {
	LE    float64 `json:"le" doc:"upper bound, in the unit"`
	Share float64 `json:"share" doc:"of values that are at most le, 0 to 1"`
}

// Column is a column of a table.
type Column struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`
	Help    string `json:"help,omitempty"`
	Label   bool   `json:"label,omitempty" doc:"the row's name"`
	Rate    bool   `json:"rate,omitempty" doc:"it counts packets or bytes of the window"`
	History bool   `json:"history,omitempty" doc:"useful over time: field report.TABLE[ROW].COLUMN"`
	Hidden  bool   `json:"hidden,omitempty" doc:"for programs only"`
	Low     string `json:"low,omitempty" doc:"the column with the lower end of this one"`
	High    string `json:"high,omitempty"`
	Least   string `json:"least,omitempty" doc:"the column that bounds this one from below"`
	Most    string `json:"most,omitempty"`
	Err     string `json:"err,omitempty" doc:"the column with the standard error of this one"`
}

// Table is a list of a report, the most important rows first.
type Table struct {
	Name     string              `json:"name"`
	Title    string              `json:"title"`
	Help     string              `json:"help,omitempty"`
	Settings bool                `json:"settings,omitempty" doc:"rows are named by settings, not by traffic"`
	Columns  []Column            `json:"columns"`
	Rows     [][]json.RawMessage `json:"rows" doc:"cells in the order of columns"`
	Names    []json.RawMessage   `json:"names,omitempty" doc:"names of the addresses, networks and ports of each row: a list of objects, or null (docs/output.md)"`
	Total    int                 `json:"total" doc:"number of rows of the window"`
	Offset   int                 `json:"offset"`
}

var kinds = map[report.Kind]string{report.Gauge: "gauge", report.Counter: "counter", report.Info: "info"}

var promises = map[report.Promise]string{report.Interval: "interval", report.Bound: "bound"}

// record is a window in the form of a store.
type record struct {
	Algorithm string `json:"algorithm"`
	Key       string `json:"interface"` // its name in a line until 0.2.0
	Window    struct {
		Start     int64 `json:"start"`
		End       int64 `json:"end"`
		Number    int   `json:"number"`
		Stretched bool  `json:"stretched"`
		Cut       bool  `json:"cut"`
	} `json:"window"`
	Packets json.RawMessage   `json:"packets"`
	Memory  json.RawMessage   `json:"memory"`
	Lost    map[string]uint64 `json:"lost"`
	Hosts   json.RawMessage   `json:"hosts"`
	Report  json.RawMessage   `json:"report"`
}

// body is a report's members with their meaning.
type body map[string]json.RawMessage

// at is the member at a path; null if there is none.
func (b body) at(path string) json.RawMessage {
	name, rest, nested := strings.Cut(path, ".")
	v := b[name]
	if v != nil && nested {
		v = member(v, rest)
	}
	return v
}

func (b body) or(path string) json.RawMessage {
	if v := b.at(path); v != nil {
		return v
	}
	return json.RawMessage("null")
}

// ends are the two ends of an estimate's interval, and its kind.
func (b body) ends(path string) (low, high json.RawMessage, promise string) {
	for _, p := range []report.Promise{report.Interval, report.Bound} {
		below, above := p.Suffixes()
		if low, high = b.at(path+below), b.at(path+above); low != nil || high != nil {
			return low, high, promises[p]
		}
	}
	return nil, nil, ""
}

// mostRows bounds a table in a report; /tables has the rest.
const mostRows = 100

// read parses a window, using the shape of its algorithm's reports. endMS is its end in Unix time.
func read(text []byte, endMS int64, s *shape) (*Report, error) {
	var k record
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, err
	}
	var b body
	if err := json.Unmarshal(k.Report, &b); err != nil {
		return nil, err
	}
	r := &Report{Key: k.Key, Algorithm: k.Algorithm, Packets: k.Packets, Memory: k.Memory, Lost: k.Lost, Hosts: k.Hosts, Values: []Value{}, Distributions: []Distribution{}, Tables: []Table{},
		Notes:  []string{},
		Window: Window{StartMS: endMS - (k.Window.End-k.Window.Start)/1e6, EndMS: endMS, Number: k.Window.Number, Stretched: k.Window.Stretched, Cut: k.Window.Cut}}
	if notes := b["notes"]; notes != nil {
		_ = json.Unmarshal(notes, &r.Notes) // a list of sentences, or none
	}
	for _, v := range s.values {
		if at := b.at(v.Name); at != nil {
			low, high, promise := b.ends(v.Name)
			r.Values = append(r.Values, Value{Name: v.Name, Value: at, Low: low, High: high, Promise: promise, Unit: string(v.Unit), Kind: kinds[v.Kind], Answer: v.Answer, Help: v.Help})
		}
	}
	for _, d := range s.distributions {
		if b.at(d.Name) != nil {
			r.Distributions = append(r.Distributions, b.distribution(d))
		}
	}
	for _, t := range s.tables {
		if at := b.at(t.Name); at != nil {
			r.Tables = append(r.Tables, rows(at, t, 0, mostRows))
		}
	}
	return r, nil
}

func (b body) distribution(d report.Distribution) Distribution {
	out := Distribution{Name: d.Name, Title: d.Title, Unit: string(d.Unit), Help: d.Help, Count: b.or(d.Name + ".count"), Mean: b.or(d.Name + ".mean"), Quantiles: []Quantile{}}
	out.CountLow, out.CountHigh, _ = b.ends(d.Name + ".count")
	for _, q := range d.Quantiles {
		one := Quantile{Name: q.Name, Q: q.Q, Value: b.or(d.Name + "." + q.Name)}
		one.Low, one.High, one.Promise = b.ends(d.Name + "." + q.Name)
		out.Quantiles = append(out.Quantiles, one)
	}
	return out
}

// rows is a page of a table.
func rows(text json.RawMessage, t report.Table, offset, limit int) Table {
	out := Table{Name: t.Name, Title: t.Title, Help: t.Help, Settings: t.Settings, Offset: offset, Columns: []Column{}, Rows: [][]json.RawMessage{}}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, Column{Name: c.Name, Unit: string(c.Unit), Help: c.Help, Label: c.Label, Rate: c.Rate, History: c.History, Hidden: c.JSON, Low: c.Low, High: c.High,
			Least: c.Least, Most: c.Most, Err: c.Err})
	}
	var all []json.RawMessage
	_ = json.Unmarshal(text, &all) // a list, or null
	out.Total = len(all)
	known := false
	for i := min(offset, len(all)); i < min(offset+limit, len(all)); i++ {
		var one body
		_ = json.Unmarshal(all[i], &one) // an object, or null
		cells := make([]json.RawMessage, len(t.Columns))
		for n, c := range t.Columns {
			cells[n] = one.or(c.Name)
		}
		out.Rows, out.Names = append(out.Rows, cells), append(out.Names, one.or("names"))
		known = known || one["names"] != nil
	}
	if !known {
		out.Names = nil
	}
	return out
}

// cell is the cell in a row and column of a table; any label of the row identifies it.
func cell(table json.RawMessage, row, column string) json.RawMessage {
	var all []body
	if json.Unmarshal(table, &all) != nil {
		return nil
	}
	for _, one := range all {
		for _, v := range one {
			var name string
			if len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &name) == nil && name == row {
				return one.at(column)
			}
		}
	}
	return nil
}
