package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/report/draw"
	"github.com/xdpmon/xdpmon/userspace/snapshot/folder"
)

// snapshotOptions are the flags of snapshots.
type snapshotOptions struct {
	dir, limit string
	bytes      int64
}

func addSnapshots(cmd *cobra.Command) *snapshotOptions {
	o := &snapshotOptions{}
	cmd.Flags().StringVar(&o.dir, "snapshots", "", "write a snapshot of every window and algorithm into `DIR`, a file each, for xdpmon merge")
	cmd.Flags().StringVar(&o.limit, "snapshots-limit", "1GiB", "limit of their total, a `SIZE`; the oldest files are removed first")
	return o
}

const leastSnapshots = 1 << 20

func (o *snapshotOptions) check() (err error) {
	if o.bytes, err = algo.ParseSize(o.limit); err != nil {
		return cli.UsageError("--snapshots-limit: %v", err)
	}
	if o.bytes < leastSnapshots {
		return cli.UsageError("--snapshots-limit %s: 1MiB or more", o.limit)
	}
	return nil
}

// snapshotWriter is the subscriber that writes them. A disk that is slow or full delays no window.
type snapshotWriter struct {
	m      *measurement
	sub    *feed.Subscription
	folder *folder.Folder
	live   bool
	done   chan struct{}
	warned bool
}

// keepSnapshots starts writing snapshots, if they are requested.
func (m *measurement) keepSnapshots(o *snapshotOptions, live bool) error {
	if o.dir == "" {
		return nil
	}
	f, err := folder.Open(o.dir, folder.Options{Limit: o.bytes, Clock: m.run.Clock, Full: func() {
		m.notice("%s is as large as --snapshots-limit allows: the oldest snapshots are removed", o.dir)
	}})
	if err != nil {
		return fmt.Errorf("--snapshots: %w", err)
	}
	w := &snapshotWriter{m: m, folder: f, live: live, done: make(chan struct{})}
	w.sub = m.hub.Subscribe(feed.Options{Name: "snapshots", Depth: 64, Wait: !live})
	m.snapshots = w
	go w.run()
	return nil
}

func (w *snapshotWriter) run() {
	defer close(w.done)
	for {
		e, missed, err := w.sub.Next(context.Background())
		if missed > 0 {
			w.m.notice("snapshots of %d reports are missing in %s: they arrived faster than they could be written", missed, w.folder.Dir)
		}
		if err == nil && e.Line != nil && e.Line.Snapshot != nil {
			w.failed(w.folder.Write(e.Line))
		}
		if errors.Is(err, feed.ErrClosed) {
			return
		}
	}
}

// failed warns the operator once; a replay, which can be repeated, ends.
func (w *snapshotWriter) failed(err error) {
	if err == nil {
		return
	}
	if !w.live {
		w.m.fail(fmt.Errorf("--snapshots: %w", err))
	} else if !w.warned {
		w.warned = true
		w.m.notice("snapshots are missing in %s: %v", w.folder.Dir, err)
	}
}

// close waits for the snapshots that are still to be written; the hub is already closed.
func (w *snapshotWriter) close(after func(time.Duration) <-chan time.Time) error {
	select {
	case <-w.done:
		return nil
	case <-after(draw.Patience):
		return fmt.Errorf("writing to %s takes too long: the last snapshots are lost", w.folder.Dir)
	}
}
