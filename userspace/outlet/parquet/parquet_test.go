package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/report/known"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// midnight separates two days of the tests.
var midnight = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

var unix = report.Clock{Name: "unix"}

// window is one that ends at a time.
func window(end time.Time, values ...report.Value) feed.Event {
	return feed.Event{Line: &report.Line{Algorithm: "fridge", Identity: report.Identity{Instance: "eth0", Interfaces: []string{"eth0"}},
		Window: report.Window{Start: end.UnixNano() - 10e9, End: end.UnixNano()}, Report: report.Body{Values: values}}}
}

func open(t *testing.T, cfg settings.Parquet, now func() time.Time) *Writer {
	t.Helper()
	w, err := New(cfg, true, now)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *Writer) must(t *testing.T, events ...feed.Event) {
	t.Helper()
	for _, e := range events {
		if err := w.Write(e, unix); err != nil {
			t.Fatal(err)
		}
	}
}

// files are what there is below a folder, without the part of a name that is the writer's.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*/*/*/*", "*/*/*/.*", "*", ".*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
				list = append(list, f)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// read is a file's columns and rows: "name type" and values by name.
func read(t *testing.T, path string) (columns []string, rows []map[string]any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewReader(f)
	defer r.Close()
	for _, field := range r.Schema().Fields() {
		columns = append(columns, field.Name()+" "+field.Type().String())
	}
	for {
		row := map[string]any{}
		if err := r.Read(&row); errors.Is(err, io.EOF) {
			return columns, rows
		} else if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

// words writes values with spaces between.
func words(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

// Values, distributions and tables become typed columns in the report's order, intervals beside them; a window of the next day is in another folder.
func TestColumns(t *testing.T) {
	dir := t.TempDir()
	now := midnight
	w := open(t, settings.Parquet{Dir: dir, Every: time.Minute, MaxAge: time.Hour, MaxBytes: 1 << 20}, func() time.Time { return now })
	first := window(midnight.Add(-time.Second),
		report.Value{Name: "requests.matched", Value: 3.6, Low: 2.2, High: 5.1, Unit: report.Requests}, report.Value{Name: "share", Value: 0.25, Unit: report.Ratio},
		report.Value{Name: "rule", Value: "tcp-ack"}, report.Value{Name: "exact", Value: true}, report.Value{Name: "seed", Value: uint64(math.MaxUint64)}, report.Value{Name: "none", Value: math.NaN()})
	b := &first.Line.Report
	b.Distributions = []report.Distribution{{Name: "delay_ns", Unit: report.Nanosecond, Count: 4, CountErr: 1, Sum: 40.4, Mean: 10.1,
		Quantiles: []report.Quantile{{Name: "p50", Value: 9.6, Low: 8, High: 11, Defined: true, Promise: report.Bound}, {Name: "p99"}}, Buckets: []report.Bucket{{Upper: 8, Cumulative: 1}, {Upper: 16, Cumulative: 4}}}}
	b.Tables = []report.Table{{Name: "flows", Columns: []report.Column{{Name: "src", Label: true}, {Name: "sport", Label: true}, {Name: "bytes", Unit: report.Bytes}, {Name: "instance"}},
		Rows: [][]any{{"10.0.0.1", 80, 1500.4, "x"}, {"10.0.0.2", math.NaN(), uint64(7)}}, Names: [][]known.Name{nil, {{}}}}}
	first.Line.Lost = map[string]uint64{"evicted": 2}
	second := window(midnight.Add(time.Second), report.Value{Name: "requests.matched", Value: 1, Unit: report.Requests}, report.Value{Name: "seed", Value: "text"})
	w.must(t, first, second, feed.Event{Run: &report.Run{}})
	if list := files(t, dir); len(list) != 0 {
		t.Fatalf("before its time: %v", list)
	}
	now = now.Add(time.Minute)
	if err := w.Tick(); err != nil {
		t.Fatal(err)
	}
	list := files(t, dir)
	var places []string
	for _, f := range list {
		places = append(places, strings.TrimPrefix(filepath.Dir(f), dir+"/"))
	}
	want := []string{"algorithm=fridge/table=delay_ns_cdf/day=2026-03-01", "algorithm=fridge/table=flows/day=2026-03-01", "algorithm=fridge/table=windows/day=2026-03-01", "algorithm=fridge/table=windows/day=2026-03-02"}
	if !slices.Equal(places, want) {
		t.Fatalf("%v, want %v", places, want)
	}
	columns, rows := read(t, list[2])
	for i, name := range []string{"window_start TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "window_end TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "instance STRING", "interface STRING"} {
		if columns[i] != name {
			t.Errorf("column %d is %q, want %q", i, columns[i], name)
		}
	}
	for _, name := range []string{"requests_matched INT(64,true)", "requests_matched_low INT(64,true)", "share DOUBLE", "rule STRING", "exact BOOLEAN", "seed STRING", "delay_ns_p50 INT(64,true)",
		"delay_ns_p50_at_least INT(64,true)", "delay_ns_p99 INT(64,true)", "lost_evicted INT(64,true)", "window_cut BOOLEAN"} {
		if !slices.Contains(columns, name) {
			t.Errorf("no column %q in %q", name, columns)
		}
	}
	r := rows[0]
	if got := words(len(rows), r["requests_matched"], r["requests_matched_high"], r["share"], r["rule"], r["exact"], r["delay_ns_p50"], r["delay_ns_p99"], r["lost_evicted"]); got != "1 4 5 0.25 tcp-ack true 10 <nil> 2" {
		t.Errorf("row %s", got)
	}
	if at := fmt.Sprint(r["window_end"]); at != fmt.Sprint(midnight.Add(-time.Second)) && at != fmt.Sprint(midnight.Add(-time.Second).UnixMicro()) {
		t.Errorf("ends at %s", at)
	}
	columns, rows = read(t, list[1])
	if got := words(rows[0]["rank"], rows[0]["src"], rows[0]["sport"], rows[0]["bytes"], rows[0]["instance"], rows[0]["row_instance"], rows[1]["sport"], rows[1]["bytes"], rows[1]["row_instance"]); got != "1 10.0.0.1 80 1500 eth0 x <nil> 7 <nil>" {
		t.Errorf("rows %s of %v", got, columns)
	}
	if _, rows = read(t, list[0]); len(rows) != 2 || words(rows[1]["le"], rows[1]["count"]) != "16 4" {
		t.Errorf("steps %v", rows)
	}
}

// Types of one column that differ between windows become the larger one, in any order.
func TestKinds(t *testing.T) {
	for _, c := range []struct{ a, b, want kind }{{unknown, integer, integer}, {integer, unknown, integer}, {integer, real, real}, {real, integer, real}, {truth, integer, text}, {moment, moment, moment}, {text, real, text}, {unknown, unknown, unknown}} {
		if got := both(c.a, c.b); got != c.want {
			t.Errorf("%d and %d: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	b := &buffer{}
	for _, v := range []any{int64(1), 2.5, nil} {
		var r row
		r.add("x", v, report.None)
		b.add(r)
	}
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	if columns, rows := read(t, path); fmt.Sprint(columns, rows) != "[x DOUBLE] [map[x:1] map[x:2.5] map[x:<nil>]]" {
		t.Errorf("%v %v", columns, rows)
	}
}

// Files beyond age and size are removed, the oldest first, and parts that nobody completes; files of others stay.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	cfg := settings.Parquet{Dir: dir, Every: time.Second, MaxAge: time.Hour, MaxBytes: 1 << 40}
	now := time.Now()
	clock := func() time.Time { return now }
	w := open(t, cfg, clock)
	var whole []string
	for n := range 4 {
		w.must(t, window(midnight.Add(time.Duration(n)*time.Second), report.Value{Name: "x", Value: n}))
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		for _, f := range files(t, dir) {
			if !slices.Contains(whole, f) {
				whole = append(whole, f)
				age := now.Add(-time.Duration(100-20*n) * time.Minute) // 100, 80, 60 and 40 minutes old
				if err := os.Chtimes(f, age, age); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	place := filepath.Dir(whole[0])
	for name, age := range map[string]time.Duration{".1.part": stale + time.Second, ".2.part": stale - time.Minute, "theirs.csv": 100 * time.Hour} {
		path := filepath.Join(place, name)
		if err := errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	w = open(t, cfg, clock)
	want := []string{filepath.Join(place, ".2.part"), filepath.Join(place, "theirs.csv"), whole[2], whole[3]}
	slices.Sort(want)
	if list := files(t, dir); !slices.Equal(list, want) {
		t.Fatalf("%v, want %v", list, want)
	}
	info, err := os.Stat(whole[3])
	if err != nil {
		t.Fatal(err)
	}
	w.cfg.MaxBytes = info.Size()
	if err := w.trim(); err != nil {
		t.Fatal(err)
	}
	if list := files(t, dir); slices.Contains(list, whole[2]) || !slices.Contains(list, whole[3]) {
		t.Errorf("for one file: %v", list)
	}
}

// What cannot be written is counted in windows and leaves nothing; a closed writer takes no more, and much is written before its time.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	w := open(t, settings.Parquet{Dir: dir, Every: time.Hour, MaxAge: time.Hour, MaxBytes: 1 << 30}, time.Now)
	blocked := filepath.Join(dir, "algorithm=fridge")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must(t, window(midnight), window(midnight))
	var lost *LostError
	if err := w.flush(); !errors.As(err, &lost) || lost.Lost() != 2 {
		t.Fatalf("%v", err)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	many := window(midnight)
	for n := range 300 {
		many.Line.Report.Values = append(many.Line.Report.Values, report.Value{Name: fmt.Sprint("v", n), Value: n})
	}
	for range mostCells/300 + 1 {
		w.must(t, many)
	}
	if list := files(t, dir); len(list) != 1 {
		t.Fatalf("%v", list)
	}
	w.must(t, window(midnight))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(window(midnight), unix); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if list := files(t, dir); len(list) != 2 {
		t.Errorf("%v", list)
	}
	if _, err := New(settings.Parquet{Dir: filepath.Join(files(t, dir)[0], "below")}, false, time.Now); err == nil {
		t.Error("a folder below a file")
	}
}
