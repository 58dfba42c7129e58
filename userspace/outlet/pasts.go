package outlet

import (
	"log/slog"
	"time"

	"github.com/xdpmon/xdpmon/userspace/diagnose"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/store"
)

// pasts is the kind of state under which a store holds the baselines: one finding.Past per stream.
const pasts = "baselines"

// How often baselines are saved: soon after the start, then rarely, and at the end. A process that is killed loses what it learned since the last save.
const (
	firstPasts = 10 * time.Minute
	everyPasts = time.Hour
)

// recall restores the baselines saved by an earlier run. Unreadable ones are left out: measuring continues and learns them again.
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
		log.Error("baselines unreadable, learning them again", "store", path, "error", err)
	case refused > 0:
		log.Warn("some baselines unreadable, learning them again; the next save replaces them (if the store belongs to another program, stop xdpmon and move it)",
			"store", path, "refused", refused, "read", read, "error", first)
	case read > 0:
		log.Info("baselines read", "store", path, "streams", read)
	}
}

// remember saves the baselines.
func (k *keeper) remember() {
	values, left := k.engine.Pasts(k.store.StateRoom())
	if err := k.store.SetState(pasts, values); err != nil {
		if !k.saveFailed {
			k.log.Error("cannot save baselines, a restart would learn them again", "store", k.cfg.Path, "error", err)
		}
		k.saveFailed = true
		return
	}
	k.saveFailed = false
	if left > 0 && !k.full {
		k.log.Warn("store too small for the baselines of some subjects: raise store.max_bytes", "store", k.cfg.Path, "left_out", left, "saved", len(values))
	}
	k.full = left > 0
}
