package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// snapshotSuffix is how files of snapshots end.
const snapshotSuffix = ".xdpsnap"

// snapshotOptions are the flags that ask for snapshots.
type snapshotOptions struct {
	dir, limit string
	bytes      int64
}

func addSnapshots(cmd *cobra.Command) *snapshotOptions {
	o := &snapshotOptions{}
	cmd.Flags().StringVar(&o.dir, "snapshots", "", "write what every window was made of into `DIR`, a file a window and algorithm, for xdpmon merge")
	cmd.Flags().StringVar(&o.limit, "snapshots-limit", "1GiB", "room for them; the oldest files go first")
	return o
}

const leastSnapshots = 1 << 20

func (o *snapshotOptions) check() (err error) {
	if o.bytes, err = algo.ParseSize(o.limit); err != nil {
		return usageError("--snapshots-limit: %v", err)
	}
	if o.bytes < leastSnapshots {
		return usageError("--snapshots-limit %s: 1MiB or more", o.limit)
	}
	return nil
}

// snapshotWriter is the subscriber that writes them. A disk that is slow or full delays no window.
type snapshotWriter struct {
	m     *measurement
	sub   *feed.Subscription
	dir   string
	limit int64
	clock report.Clock
	live  bool
	done  chan struct{}
	files []snapshotFile // oldest first
	bytes int64
	told  map[string]bool
}

type snapshotFile struct {
	name string
	size int64
	at   time.Time
}

// keepSnapshots begins to write snapshots, if they are asked for.
func (m *measurement) keepSnapshots(o *snapshotOptions, live bool) error {
	if o.dir == "" {
		return nil
	}
	w := &snapshotWriter{m: m, dir: o.dir, limit: o.bytes, clock: m.run.Clock, live: live, done: make(chan struct{}), told: map[string]bool{}}
	if err := w.open(); err != nil {
		return fmt.Errorf("--snapshots: %w", err)
	}
	w.sub = m.hub.Subscribe(feed.Options{Name: "snapshots", Depth: 64, Wait: !live})
	m.snapshots = w
	go w.run()
	return nil
}

// open makes the folder, and finds what is there already: it counts, too.
func (w *snapshotWriter) open() error {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), snapshotSuffix) {
			w.files = append(w.files, snapshotFile{e.Name(), info.Size(), info.ModTime()})
			w.bytes += info.Size()
		}
	}
	slices.SortFunc(w.files, func(a, b snapshotFile) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	return nil
}

func (w *snapshotWriter) run() {
	defer close(w.done)
	for {
		e, missed, err := w.sub.Next(context.Background())
		if missed > 0 {
			w.m.notice("%d reports came too fast to be written to %s: their snapshots are missing there", missed, w.dir)
		}
		if err == nil && e.Line != nil && e.Line.Snapshot != nil {
			w.failed(w.write(e.Line))
		}
		if errors.Is(err, feed.ErrClosed) {
			return
		}
	}
}

// failed tells the operator once; a replay, which can be run again, ends.
func (w *snapshotWriter) failed(err error) {
	if err == nil {
		return
	}
	if !w.live {
		w.m.fail(fmt.Errorf("--snapshots: %w", err))
	} else if !w.told["error"] {
		w.told["error"] = true
		w.m.notice("snapshots are missing in %s: %v", w.dir, err)
	}
}

// name sorts by the end of the window and says whose it is.
func (w *snapshotWriter) name(l *report.Line) string {
	end := time.Unix(0, l.Window.End+w.clock.UnixOffsetNS).UTC().Format("20060102T150405.000000000Z")
	where := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == ',' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, filepath.Base(l.Interface))
	return fmt.Sprintf("%s-%s-%.64s%s", end, l.Algorithm, where, snapshotSuffix)
}

// write puts a file there whole or not at all, and makes room first.
func (w *snapshotWriter) write(l *report.Line) error {
	size := int64(len(l.Snapshot))
	if size > w.limit {
		return fmt.Errorf("a snapshot of %s has %d bytes, --snapshots-limit is %d", l.Algorithm, size, w.limit)
	}
	if err := w.room(size); err != nil {
		return err
	}
	name := w.name(l)
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path+".tmp", l.Snapshot, 0o600); err != nil {
		return errors.Join(err, os.Remove(path+".tmp"))
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	w.files = slices.DeleteFunc(w.files, func(f snapshotFile) bool { // a capture that is replayed again
		if f.name == name {
			w.bytes -= f.size
		}
		return f.name == name
	})
	w.files = append(w.files, snapshotFile{name: name, size: size})
	w.bytes += size
	return nil
}

func (w *snapshotWriter) room(size int64) error {
	for w.bytes+size > w.limit && len(w.files) > 0 {
		if !w.told["room"] {
			w.told["room"] = true
			w.m.notice("%s is as large as --snapshots-limit allows: the oldest snapshots go", w.dir)
		}
		oldest := w.files[0]
		if err := os.Remove(filepath.Join(w.dir, oldest.name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		w.files, w.bytes = w.files[1:], w.bytes-oldest.size
	}
	return nil
}

// close waits for what is still to be written; the hub has been closed before.
func (w *snapshotWriter) close(after func(time.Duration) <-chan time.Time) error {
	select {
	case <-w.done:
		return nil
	case <-after(drawPatience):
		return fmt.Errorf("writing to %s takes too long: the last snapshots are lost", w.dir)
	}
}
