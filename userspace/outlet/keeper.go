package outlet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/feed"
	"github.com/xdpmon/xdpmon/userspace/outlet/settings"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// keeper writes windows to the store: all that are queued, in one transaction.
type keeper struct {
	cfg   settings.Store
	store *store.Store
	sub   *feed.Subscription
	log   *slog.Logger
	clock func() report.Clock
	done  chan struct{}
	whole atomic.Bool // store snapshots, too

	engine           *diagnose.Engine // whose baselines are stored, too
	saveFailed, full bool             // the last save failed; had no space for all: of run alone

	mu     sync.Mutex
	err    error
	failed uint64 // windows that were not stored
	stored uint64
	last   time.Time
}

func openStore(c settings.Store, log *slog.Logger) (*store.Store, error) {
	return store.Open(c.Path, store.Options{MaxAge: c.MaxAge, MaxBytes: c.MaxBytes,
		Notice: func(format string, args ...any) { log.Warn(fmt.Sprintf(format, args...)) }})
}

func newKeeper(c settings.Store, s *store.Store, set *Set) *keeper {
	k := &keeper{cfg: c, store: s, log: set.opts.Log, clock: set.opts.Clock, done: make(chan struct{}), sub: set.hub.Subscribe(feed.Options{Name: "store", Depth: 4096}),
		engine: set.engine}
	recall(s, set.engine, k.log, c.Path, time.Now())
	k.whole.Store(c.Snapshots)
	go k.run()
	return k
}

// most bounds the windows of a transaction.
const most = 256

// gather is how long a window waits for others before it is written: one transaction, which costs two disk flushes, contains those of all
// algorithms, and of instances that end together. A killed process loses what waits: less than a window, as the shortest has 100 ms.
const gather = 20 * time.Millisecond

func (k *keeper) run() {
	defer close(k.done)
	defer k.remember()
	for next := time.Now().Add(firstPasts); ; {
		until, cancel := context.WithDeadline(context.Background(), next)
		e, missed, err := k.sub.Next(until)
		cancel()
		k.lose(missed)
		if errors.Is(err, feed.ErrClosed) {
			return
		}
		if !time.Now().Before(next) {
			k.remember()
			next = time.Now().Add(everyPasts)
		}
		if err != nil {
			continue
		}
		records := k.add(nil, e)
		time.Sleep(gather)
		for len(records) < most {
			now, cancel := context.WithCancel(context.Background())
			cancel() // do not wait: take only what is queued
			e, missed, err := k.sub.Next(now)
			k.lose(missed)
			if err != nil {
				break
			}
			records = k.add(records, e)
		}
		k.append(records)
	}
}

func (k *keeper) lose(n uint64) {
	if n == 0 {
		return
	}
	k.mu.Lock()
	k.failed += n
	k.mu.Unlock()
	k.log.Warn("disk too slow for the store, windows dropped", "windows_lost", n)
}

func (k *keeper) add(list []store.Record, e feed.Event) []store.Record {
	if e.Finding != nil {
		return k.finding(list, *e.Finding)
	}
	if e.Line == nil {
		return list
	}
	c := k.clock()
	text, err := e.Line.Record(c)
	if err != nil {
		k.log.Error("store window failed", "error", err)
		return list
	}
	r := store.Record{End: time.Unix(0, e.Line.Window.End+c.UnixOffsetNS), Algorithm: e.Line.Algorithm, Instance: e.Line.Instance,
		Interfaces: e.Line.Interfaces, Key: e.Line.Key(), Line: text}
	if k.whole.Load() {
		r.Snapshot = e.Line.Snapshot
	}
	return append(list, r)
}

func (k *keeper) append(records []store.Record) {
	if len(records) == 0 {
		return
	}
	err := k.store.Append(records...)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.failed += uint64(len(records))
		if k.err == nil {
			k.log.Error("store windows failed", "error", err)
		}
	} else {
		k.stored += uint64(len(records))
		k.last = time.Now()
	}
	k.err = err
}

func (k *keeper) close() error {
	<-k.done
	return k.store.Close()
}

// free is the free space on the store's disk.
func (k *keeper) free() int64 {
	var fs unix.Statfs_t
	if unix.Statfs(k.cfg.Path, &fs) != nil {
		return -1
	}
	return int64(fs.Bavail) * fs.Bsize
}
