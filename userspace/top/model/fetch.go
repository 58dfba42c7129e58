package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/api"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/top/client"
)

// API is the source of answers; a client is one.
type API interface {
	Instances(ctx context.Context) (api.Instances, error)
	Findings(ctx context.Context, from, to time.Time) (api.Findings, error)
	Report(ctx context.Context, key, algorithm string, at time.Time) (api.Report, error)
	Distribution(ctx context.Context, key, algorithm, name string, at time.Time) (api.Distribution, error)
	Table(ctx context.Context, key, algorithm, name string, at time.Time) (api.Table, error)
	Windows(ctx context.Context, key, algorithm string, from, to time.Time, points int, fields []string) (api.Series, error)
	Health(ctx context.Context) (api.Health, error)
}

// Request is what a view needs.
type Request struct {
	At        time.Time // zero: now
	View      View
	Key       string // of the open instance
	Algorithm string
	Table     string
	Fields    []string // of the open row, over time
	Rates     []string // instances whose past rates are missing, or all visible ones at an earlier time
	Points    int
}

// same reports whether an answer to another request also answers this one.
func (r Request) same(o Request) bool {
	return r.At.Equal(o.At) && r.View == o.View && r.Key == o.Key && r.Algorithm == o.Algorithm && r.Table == o.Table && slices.Equal(r.Fields, o.Fields)
}

// Answer is the result of a request.
type Answer struct {
	Request   Request
	Instances api.Instances
	Findings  api.Findings
	Rates     map[string]*Row // at the time of the request, with Rates
	Report    *api.Report
	Steps     *api.Distribution // of the first distribution
	Delays    [][3]float64      // end in ms, p50 and p99 of the first distribution over time
	Fields    [][]float64       // of the request, over time
	Health    *api.Health
	Err       error
}

const (
	// sparkPoints is the maximum of windows in a sparkline.
	sparkPoints = 60
	// pastFindings is how long before the displayed time findings may have started.
	pastFindings = 24 * time.Hour
	// asksAtOnce bounds concurrent requests about instances: the API answers four.
	asksAtOnce = 3
)

// Fetch executes a request. Its error is the first one that matters.
func Fetch(ctx context.Context, c API, r Request) (a Answer) {
	a.Request = r
	if a.Instances, a.Err = c.Instances(ctx); a.Err != nil {
		return a
	}
	from := time.Time{}
	if !r.At.IsZero() {
		from = r.At.Add(-pastFindings)
	}
	if a.Findings, a.Err = c.Findings(ctx, from, r.At); a.Err != nil {
		return a
	}
	if a.Rates, a.Err = fetchRates(ctx, c, r, a.Instances); a.Err != nil {
		return a
	}
	switch r.View {
	case Health:
		h, err := c.Health(ctx)
		a.Health, a.Err = &h, err
	case Opened, RowDetails, Details:
		a.Err = fetchReport(ctx, c, r, &a)
	}
	return a
}

func fetchRates(ctx context.Context, c API, r Request, all api.Instances) (map[string]*Row, error) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	rows, turn := map[string]*Row{}, make(chan struct{}, asksAtOnce)
	for n := range all.Instances {
		i := &all.Instances[n]
		if !slices.Contains(r.Rates, i.Key) || len(i.Algorithms) == 0 {
			continue
		}
		wait.Add(1)
		go func() {
			defer wait.Done()
			turn <- struct{}{}
			defer func() { <-turn }()
			row, err := fetchRow(ctx, c, r.At, i)
			mu.Lock()
			defer mu.Unlock()
			if rows[i.Key] = row; err != nil && failed == nil {
				failed = err
			}
		}()
	}
	wait.Wait()
	return rows, failed
}

// longest is the length of the instance's windows, or of the algorithm's latest one where those are longer.
func longest(i *api.Instance, algorithm string) time.Duration {
	length := time.Duration(i.WindowNS)
	for _, a := range i.Algorithms {
		if a.Name == algorithm {
			length = max(length, time.Duration(a.Window.EndMS-a.Window.StartMS)*time.Millisecond)
		}
	}
	return length
}

// fetchRow is an instance at a time, with its rates before.
func fetchRow(ctx context.Context, c API, at time.Time, i *api.Instance) (*Row, error) {
	now := rowOf(i)
	to := at
	if at.IsZero() {
		to = MS(now.End + 1)
	} else {
		empty := *now
		empty.Packets, empty.Bits, empty.P50, empty.P99, empty.Loss, empty.Queue, empty.End = nan, nan, None(), None(), nan, nan, 0
		now = &empty
	}
	for _, f := range fieldsOf(i, at.IsZero()) {
		span := max(time.Second, longest(i, f.algorithm)) * (sparkPoints + 2)
		s, err := c.Windows(ctx, i.Key, f.algorithm, to.Add(-span), to, 2*sparkPoints, f.fields)
		if err != nil {
			return now, err
		}
		for n, row := range s.Rows {
			if len(row) != 2+len(f.fields) {
				continue
			}
			if f.fields[0] == "packets.seen" {
				one := Row{}
				f.apply(&one, row)
				now.Rates = append(now.Rates, one.Packets)
			}
			if n == len(s.Rows)-1 && !at.IsZero() {
				f.apply(now, row)
			}
		}
	}
	now.Rates = now.Rates[max(0, len(now.Rates)-sparkPoints):]
	return now, nil
}

// fetchReport requests a window with its open parts. A missing window is not an error: the view reports it.
func fetchReport(ctx context.Context, c API, r Request, a *Answer) error {
	report, err := c.Report(ctx, r.Key, r.Algorithm, r.At)
	var p *client.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	a.Report = &report
	for n := range report.Tables {
		if t := &report.Tables[n]; t.Name == r.Table && t.Total > len(t.Rows) {
			if *t, err = c.Table(ctx, r.Key, r.Algorithm, t.Name, r.At); err != nil {
				return err
			}
		}
	}
	end := MS(report.Window.EndMS + 1)
	span := max(time.Second, MS(report.Window.EndMS).Sub(MS(report.Window.StartMS))) * time.Duration(max(sparkPoints, r.Points)+2)
	if len(report.Distributions) > 0 {
		d := report.Distributions[0]
		if r.View == Details {
			steps, err := c.Distribution(ctx, r.Key, r.Algorithm, d.Name, r.At)
			if err != nil {
				return err
			}
			a.Steps = &steps
		}
		rows, err := fieldsOverTime(ctx, c, r, end.Add(-span), end, []string{"report." + d.Name + ".p50", "report." + d.Name + ".p99"})
		if err != nil {
			return err
		}
		for _, row := range rows {
			a.Delays = append(a.Delays, [3]float64{row[1], row[2], row[3]})
		}
	}
	if len(r.Fields) > 0 {
		rows, err := fieldsOverTime(ctx, c, r, end.Add(-span), end, r.Fields)
		if err != nil {
			return err
		}
		a.Fields = make([][]float64, len(r.Fields))
		for _, row := range rows {
			for n := range r.Fields {
				a.Fields[n] = append(a.Fields[n], row[2+n])
			}
		}
	}
	return nil
}

func fieldsOverTime(ctx context.Context, c API, r Request, from, to time.Time, fields []string) (rows [][]float64, err error) {
	s, err := c.Windows(ctx, r.Key, r.Algorithm, from, to, 2*max(sparkPoints, r.Points), fields)
	if err != nil {
		return nil, err
	}
	for _, row := range s.Rows {
		if len(row) == 2+len(fields) {
			rows = append(rows, numbers(row))
		}
	}
	return rows, nil
}

func numbers(row []json.RawMessage) []float64 {
	out := make([]float64, len(row))
	for n, text := range row {
		out[n] = Number(text)
	}
	return out
}

// openFindings are the findings active at a time, the most severe first, and those that had ended.
func openFindings(list []finding.Finding, at time.Time) (open, over []finding.Finding) {
	ns := int64(0)
	if !at.IsZero() {
		ns = at.UnixNano()
	}
	for _, f := range list {
		if activeAt(&f, ns) {
			open = append(open, f)
		} else {
			over = append(over, f)
		}
	}
	slices.SortStableFunc(open, func(a, b finding.Finding) int { return finding.Worse(&a, &b) })
	return open, over
}

// fieldsOfRow are the fields of a row to draw over time: the columns marked so.
func fieldsOfRow(t *api.Table, row int) (fields []string) {
	name := label(t, row)
	if name == "" || strings.ContainsAny(name, ",]") {
		return nil // no field can refer to it
	}
	for _, c := range t.Columns {
		if c.History {
			fields = append(fields, "report."+t.Name+"["+name+"]."+c.Name)
		}
	}
	return fields
}
