// Package parquet writes windows as Parquet files for engines like DuckDB, ClickHouse and Spark: a folder for each algorithm, table and day,
// in the form that they take for partitions. Columns have types, and the ends of intervals are columns beside their values.
//
// Rows stay in memory for some minutes and are then written as one file, which has its name only when it is complete. A process that is killed
// loses these minutes, and leaves no part of a file that a reader sees.
package parquet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// mostCells bounds what is in memory, at some 40 bytes each: with more, files are written before their time.
const mostCells = 500_000

// Writer writes windows into a folder. It is safe for concurrent use.
type Writer struct {
	cfg  settings.Parquet
	cdf  bool
	now  func() time.Time
	name string // distinguishes writers of several processes in one folder

	mu     sync.Mutex
	closed bool
	next   time.Time // when files are due; zero: nothing is in memory
	cells  int
	lines  uint64 // windows in memory
	files  int
	data   map[dataset]*buffer
}

// LostError is a failure to write, and how many windows were lost by it.
type LostError struct {
	Windows uint64
	Err     error
}

func (e *LostError) Error() string { return fmt.Sprintf("%d windows lost: %v", e.Windows, e.Err) }
func (e *LostError) Unwrap() error { return e.Err }

// Lost is the number of windows.
func (e *LostError) Lost() uint64 { return e.Windows }

// New makes the folder, and removes files that a process did not complete.
func New(cfg settings.Parquet, cdf bool, now func() time.Time) (*Writer, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	probe, err := os.CreateTemp(cfg.Dir, ".xdpmon-*.part")
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	host, _ := os.Hostname()
	w := &Writer{cfg: cfg, cdf: cdf, now: now, name: fmt.Sprintf("%s-%d", url.PathEscape(host), os.Getpid()), data: map[dataset]*buffer{}}
	return w, w.trim()
}

// Write takes a window. Runs and findings have no place in these files.
func (w *Writer) Write(e feed.Event, c report.Clock) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return os.ErrClosed
	case e.Line == nil:
		return nil
	}
	if w.next.IsZero() {
		w.next = w.now().Truncate(w.cfg.Every).Add(w.cfg.Every)
	}
	w.lines++
	rows(*e.Line, c, w.cdf, func(d dataset, r row) {
		b := w.data[d]
		if b == nil {
			b = &buffer{}
			w.data[d] = b
		}
		w.cells += b.add(r)
	})
	if w.cells > mostCells {
		return w.flush()
	}
	return w.due()
}

// Tick writes files when their time has come.
func (w *Writer) Tick() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.due()
}

func (w *Writer) due() error {
	if w.next.IsZero() || w.now().Before(w.next) {
		return nil
	}
	return w.flush()
}

// Close writes what is in memory.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return w.flush()
}

func (w *Writer) flush() error {
	var errs []error
	lines := w.lines
	for d, b := range w.data {
		if len(b.rows) > 0 {
			errs = append(errs, w.file(d, b))
		}
	}
	w.data, w.cells, w.lines, w.next = map[dataset]*buffer{}, 0, 0, time.Time{}
	if err := errors.Join(errs...); err != nil {
		return &LostError{lines, err}
	}
	if lines == 0 {
		return nil
	}
	return w.trim()
}

// file writes a dataset's rows, each day's into a folder of its own.
func (w *Writer) file(d dataset, b *buffer) error {
	days := map[string]*buffer{}
	for _, r := range b.rows {
		day := w.day(b, r)
		if days[day] == nil {
			days[day] = &buffer{columns: b.columns}
		}
		days[day].rows = append(days[day].rows, r)
	}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		dir := filepath.Join(w.cfg.Dir, "algorithm="+url.PathEscape(d.algorithm), "table="+url.PathEscape(d.table), "day="+day)
		if err := w.whole(dir, days[day]); err != nil {
			return fmt.Errorf("write %s: %w", dir, err)
		}
	}
	return nil
}

// day is the day on which a row's window ended.
func (w *Writer) day(b *buffer, r []any) string {
	at := w.now().UTC()
	if t, ok := r[b.at["window_end"]].(time.Time); ok {
		at = t
	}
	return at.Format(time.DateOnly)
}

// whole writes a file that is either complete or not there.
func (w *Writer) whole(dir string, b *buffer) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	w.files++
	f, err := os.CreateTemp(dir, ".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = b.write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%d.parquet", w.now().UTC().Format("20060102T150405Z"), w.name, w.files)
	if err = os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// stale is the age of a part that nobody completes any more.
const stale = 10 * time.Minute

// trim removes files beyond age and size, the oldest first, and parts of files. It touches only what this package has named.
func (w *Writer) trim() error {
	type file struct {
		path string
		at   time.Time
		size int64
	}
	var list []file
	var total int64
	now := w.now()
	err := filepath.WalkDir(w.cfg.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !w.ours(path) {
			return ignoreGone(err)
		}
		info, err := e.Info()
		if err != nil {
			return ignoreGone(err)
		}
		if strings.HasSuffix(path, ".part") {
			if now.Sub(info.ModTime()) > stale {
				return ignoreGone(os.Remove(path))
			}
			return nil
		}
		list = append(list, file{path, info.ModTime(), info.Size()})
		total += info.Size()
		return nil
	})
	if err != nil {
		return fmt.Errorf("trim %s: %w", w.cfg.Dir, err)
	}
	slices.SortFunc(list, func(a, b file) int { return a.at.Compare(b.at) })
	for _, f := range list {
		if now.Sub(f.at) <= w.cfg.MaxAge && total <= w.cfg.MaxBytes {
			break
		}
		if err := ignoreGone(os.Remove(f.path)); err != nil {
			return fmt.Errorf("trim %s: %w", w.cfg.Dir, err)
		}
		total -= f.size
		_ = os.Remove(filepath.Dir(f.path)) // a day without files
	}
	return nil
}

// ours reports whether the file's place and name are those that this package gives.
func (w *Writer) ours(path string) bool {
	rel, err := filepath.Rel(w.cfg.Dir, path)
	if err != nil {
		return false
	}
	for _, pattern := range []string{"algorithm=*/table=*/day=*/*.parquet", "algorithm=*/table=*/day=*/.*.part", ".xdpmon-*.part"} {
		if ok, _ := filepath.Match(pattern, rel); ok {
			return true
		}
	}
	return false
}

// ignoreGone is nil for a file that another process has removed.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
