// Package parquet reads the Parquet files of an hour with a library of others (Apache Arrow's), and compares them with the JSON lines of the same windows.
package parquet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	parquetfile "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/outlet/parquet"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("XDPMON_WRITE_FOREVER"); dir != "" {
		writeForever(dir)
	}
	testutil.Main(m)
}

// folder is what a dataset holds: rows, and the sum of each column of numbers.
type folder struct {
	rows int
	sums map[string]float64
}

// folders are those of an output by "algorithm table".
type folders map[string]*folder

func (f folders) at(algorithm, table string) *folder {
	key := algorithm + " " + table
	if f[key] == nil {
		f[key] = &folder{sums: map[string]float64{}}
	}
	return f[key]
}

// object adds an object of a JSON line to a row; lists of objects are tables of their own.
func (f folders) object(algorithm, prefix string, into *folder, o map[string]any) {
	for name, v := range o {
		path := strings.Trim(prefix+"_"+name, "_")
		switch v := v.(type) {
		case float64:
			into.sums[strings.ReplaceAll(path, ".", "_")] += v
		case map[string]any:
			f.object(algorithm, path, into, v)
		case []any:
			for _, row := range v {
				if row, ok := row.(map[string]any); ok {
					table := f.at(algorithm, path)
					table.rows++
					f.object(algorithm, "", table, row)
				}
			}
		}
	}
}

// written are all datasets below a folder, as Arrow reads them.
func written(t *testing.T, dir string) folders {
	t.Helper()
	all := folders{}
	paths, err := filepath.Glob(filepath.Join(dir, "algorithm=*", "table=*", "day=*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		parts := strings.Split(strings.TrimPrefix(path, dir+"/"), "/")
		d := all.at(strings.TrimPrefix(parts[0], "algorithm="), strings.TrimPrefix(parts[1], "table="))
		if err := d.add(path); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return all
}

func (f *folder) add(path string) error {
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		return err
	}
	defer r.Close()
	f.rows += int(r.NumRows())
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		for i := range group.NumColumns() {
			column, err := group.Column(i)
			if err != nil {
				return err
			}
			sum, err := total(column)
			if err != nil {
				return fmt.Errorf("%s: %w", column.Descriptor().Name(), err)
			}
			f.sums[column.Descriptor().Name()] += sum
		}
	}
	return nil
}

// total is the sum of a column of numbers; text, truth values and times are read only.
func total(column file.ColumnChunkReader) (sum float64, err error) {
	switch c := column.(type) {
	case *file.Int64ColumnChunkReader:
		if _, times := c.Descriptor().LogicalType().(schema.TimestampLogicalType); times {
			return 0, nil
		}
		return summed(c.ReadBatch, func(n int64) float64 { return float64(n) })
	case *file.Float64ColumnChunkReader:
		return summed(c.ReadBatch, func(f float64) float64 { return f })
	case *file.ByteArrayColumnChunkReader:
		return summed(c.ReadBatch, func(parquetfile.ByteArray) float64 { return 0 })
	case *file.BooleanColumnChunkReader:
		return summed(c.ReadBatch, func(bool) float64 { return 0 })
	}
	return 0, fmt.Errorf("type %s", column.Type())
}

// summed reads in batches. Columns are optional: as many levels as rows, and as many values as are present.
func summed[T any](read func(int64, []T, []int16, []int16) (int64, int, error), number func(T) float64) (sum float64, err error) {
	values, levels := make([]T, 128), make([]int16, 128)
	for {
		rows, present, err := read(int64(len(values)), values, levels, nil)
		if err != nil || rows == 0 {
			return sum, err
		}
		for _, v := range values[:present] {
			sum += number(v)
		}
	}
}

// An hour of all algorithms, twenty windows over midnight: every number of the JSON lines is in a column of its name, and rows and sums are equal.
func TestAnHour(t *testing.T) {
	testutil.NeedRoot(t)
	dir, capture := t.TempDir(), string(builder.Handshakes(t, 300))
	now := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC) // over midnight
	w, err := parquet.New(settings.Parquet{Dir: dir, Every: 5 * time.Minute, MaxAge: 24 * time.Hour, MaxBytes: 1 << 30}, false, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	lines := report.NewJSON(&text, io.Discard)
	clock := report.Clock{Name: "unix"}
	begin, names := now, []string{}
	for _, d := range algo.All() {
		if strings.HasPrefix(d.Name, "test-") {
			continue
		}
		names = append(names, d.Name)
		values, err := algo.NewValues(d.Name, d.Params, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		now = begin
		cfg := session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Window: 20 * time.Millisecond, Seed: 1, Notice: t.Logf, Emit: func(l report.Line) error {
			l.Window.Start, l.Window.End = begin.Add(time.Duration(n)*3*time.Minute).UnixNano(), begin.Add(time.Duration(n+1)*3*time.Minute).UnixNano()
			n++
			now = time.Unix(0, l.Window.End)
			if err := w.Write(feed.Event{Line: &l}, clock); err != nil {
				return err
			}
			return lines.Line(l)
		}}
		if err := session.Replay(context.Background(), cfg, []string{"-"}, io.NopCloser(strings.NewReader(capture)), nil); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d windows", d.Name, n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if len(names) < 10 {
		t.Errorf("%d algorithms: %v", len(names), names)
	}
	want := folders{}
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n") {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		algorithm := o["algorithm"].(string)
		d := want.at(algorithm, parquet.Windows)
		d.rows++
		want.object(algorithm, "", d, o["report"].(map[string]any))
		want.object(algorithm, "lost", d, o["lost"].(map[string]any))
	}
	compare(t, written(t, dir), want)
}

func compare(t *testing.T, got, want folders) {
	t.Helper()
	columns := 0
	for key, w := range want {
		g := got[key]
		if g == nil || g.rows != w.rows {
			t.Errorf("%s: %+v, want %d rows", key, g, w.rows)
			continue
		}
		for name, sum := range w.sums {
			have, ok := g.sums[name]
			if !ok {
				have, ok = g.sums["row_"+name]
			}
			if columns++; !ok || math.Abs(have-sum) > 1e-9*math.Abs(sum)+1e-9 {
				t.Errorf("%s: column %s sums to %v (%t), want %v", key, name, have, ok, sum)
			}
		}
	}
	for key := range got {
		if want[key] == nil {
			t.Errorf("%s is in no JSON line", key)
		}
	}
	t.Logf("%d tables, %d columns of numbers", len(want), columns)
}

// writeForever is the process that TestKilled kills: a window each millisecond or so, a file each ten.
func writeForever(dir string) {
	w, err := parquet.New(settings.Parquet{Dir: dir, Every: 10 * time.Millisecond, MaxAge: time.Hour, MaxBytes: 1 << 30}, false, time.Now)
	for n := int64(0); err == nil; n++ {
		l := report.Line{Algorithm: "a", Window: report.Window{Start: n, End: n + 1}}
		for i := range 200 {
			l.Report.Values = append(l.Report.Values, report.Value{Name: fmt.Sprint("v", i), Value: n})
		}
		err = w.Write(feed.Event{Line: &l}, report.Clock{})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A process that is killed leaves whole files only, and the next one continues beside them.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	files := 0
	for n := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "XDPMON_WRITE_FOREVER="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Duration(n) * time.Millisecond) {
			list, _ := filepath.Glob(filepath.Join(dir, "*/*/*/*.parquet"))
			if len(list) > files+3 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("no files")
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		list, _ := filepath.Glob(filepath.Join(dir, "*/*/*/*.parquet"))
		files = len(list)
	}
	if got := written(t, dir)["a windows"]; got == nil || got.rows < files {
		t.Errorf("%d files: %+v", files, got)
	}
}
