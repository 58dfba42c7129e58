package outlet

import (
	"time"
)

// ReaderHealth is the state of one reader of windows.
type ReaderHealth struct {
	Name   string `json:"name"`
	Queued int    `json:"queued"`
	Missed uint64 `json:"missed"`
	Failed uint64 `json:"failed"` // windows that could not be written
	Error  string `json:"error,omitempty"`
}

// StoreHealth is the state of the store and its disk.
type StoreHealth struct {
	Path    string  `json:"path"`
	Kept    uint64  `json:"kept_windows"` // since the start
	Failed  uint64  `json:"failed_windows"`
	Age     float64 `json:"last_write_age_seconds"`
	Free    int64   `json:"disk_free_bytes"`
	Error   string  `json:"error,omitempty"`
	Dropped uint64  `json:"-"`
}

// Health returns the state of readers and store; nil if no store is configured.
func (s *Set) Health() ([]ReaderHealth, *StoreHealth) {
	s.mu.Lock()
	outputs, keeper := s.outputs, s.keeper
	s.mu.Unlock()
	readers := []ReaderHealth{}
	for _, r := range s.hub.Readers() {
		h := ReaderHealth{Name: r.Name, Queued: r.Queued, Missed: r.Missed}
		for _, x := range outputs {
			x.mu.Lock()
			if x.cfg.Name() == r.Name {
				if h.Failed = x.failed; x.err != nil {
					h.Error = x.err.Error()
				}
			}
			x.mu.Unlock()
		}
		readers = append(readers, h)
	}
	if keeper == nil {
		return readers, nil
	}
	return readers, keeper.health()
}

func (k *keeper) health() *StoreHealth {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := &StoreHealth{Path: k.cfg.Path, Kept: k.stored, Failed: k.failed, Free: k.free(), Dropped: k.store.Dropped()}
	if !k.last.IsZero() {
		h.Age = time.Since(k.last).Seconds()
	}
	if k.err != nil {
		h.Error = k.err.Error()
	}
	return h
}
