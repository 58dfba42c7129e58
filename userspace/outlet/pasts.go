package outlet

import (
	"log/slog"
	"time"

	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// pasts is the kind of state under which a store has what was usual: finding.Past, one a stream.
const pasts = "baselines"

// How often what is usual is written: soon after the start, then rarely, and at the end. A process that is killed has learned that much in vain.
const (
	firstPasts = 10 * time.Minute
	everyPasts = time.Hour
)

// recall lets findings know what was usual before this start. Whatever cannot be read is left out: measuring goes on, and learns it again.
func recall(s *store.Store, e *diagnose.Engine, log *slog.Logger, path string, now time.Time) {
	read, refused := 0, 0
	var first error
	err := s.State(pasts, func(key string, value []byte) {
		p, err := finding.ReadBaseline(value)
		if err != nil {
			if refused++; first == nil {
				first = err
			}
			return
		}
		read++
		e.Recall(key, p, now.UnixNano())
	})
	switch {
	case err != nil:
		log.Error("baselines are unreadable: findings learn again what is usual", "store", path, "error", err)
	case refused > 0:
		log.Warn("baselines refused: findings learn again what is usual there; the next save replaces them, or stop xdpmon and move the store away if it is another program's",
			"store", path, "refused", refused, "read", read, "error", first)
	case read > 0:
		log.Info("baselines read", "store", path, "streams", read)
	}
}

// remember writes what is usual now.
func (k *keeper) remember() {
	values, left := k.engine.Pasts(k.store.StateRoom())
	if err := k.store.SetState(pasts, values); err != nil {
		if !k.forgetful {
			k.log.Error("baselines are not saved: after a restart findings learn again what is usual", "store", k.cfg.Path, "error", err)
		}
		k.forgetful = true
		return
	}
	k.forgetful = false
	if left > 0 && !k.full {
		k.log.Warn("baselines of some subjects have no room in the store: raise store.max_bytes", "store", k.cfg.Path, "left_out", left, "saved", len(values))
	}
	k.full = left > 0
}
