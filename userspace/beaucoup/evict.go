package beaucoup

import (
	"fmt"
	"math"
	"math/bits"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// evictEvery is how often a live run searches for hopeless collectors, in ns.
const evictEvery = 1_000_000_000

// held holds copies of the registers.
type held struct {
	ends, keys, vectors, tails *maps.Array
	end, key, coupons          []uint64
}

func newHeld(set *maps.Set) (*held, error) {
	h := &held{}
	for name, a := range map[string]**maps.Array{"beaucoup_ends": &h.ends, "beaucoup_keys": &h.keys, "beaucoup_vectors": &h.vectors, "beaucoup_tails": &h.tails} {
		array, err := set.Array(name)
		if err != nil {
			return nil, err
		}
		*a = array
	}
	return h, nil
}

// undate removes the end of the window from the coupons' words; coupons of another window than the collector's are cleared.
func (h *held) undate() {
	for slot, v := range h.coupons {
		h.coupons[slot] = v & math.MaxUint32
		if v>>32 != h.end[slot] {
			h.coupons[slot] = 0
		}
	}
}

// free ends the collector of a slot, unless another one occupies the slot meanwhile.
func (h *held) free(slot int, end uint64) (bool, error) {
	var now uint32
	if err := h.ends.Element(uint32(slot), &now); err != nil || uint64(now) != end {
		return false, err
	}
	return true, h.ends.SetElement(uint32(slot), uint32(0))
}

// evict ends the collectors that will not raise an alert any more, if a larger share of the table is in use than i.evictAbove
// (section 4.6). now is in ns. An evicted collector restarts with its next coupon: its alert is delayed by at most the coupons it
// had, and never early.
func (i *instance) evict(now int64) (err error) {
	started, err := i.started()
	if err != nil {
		return err
	}
	alive, err := i.alive(now)
	i.most, i.since = float64(alive), started
	if err != nil || i.evictAbove >= 1 || float64(alive) <= i.evictAbove*float64(i.entries) {
		return err
	}
	h := i.held
	if h.key, err = h.keys.Read(0, h.key); err != nil {
		return err
	}
	if h.coupons, err = h.vectors.Read(0, h.coupons); err != nil {
		return err
	}
	if i.dated() {
		h.undate()
	}
	for slot, end := range h.end {
		if end == 0 || !i.hopeless(slot, ticks32(now)) {
			continue
		}
		freed, err := h.free(slot, end)
		if err != nil {
			return fmt.Errorf("evict collector: %w", err)
		}
		if freed {
			i.evicted++
		}
	}
	return nil
}

// started are the collectors that began in the windows of both banks.
func (i *instance) started() (n uint64, err error) {
	for bank := range i.counts.Banks {
		words, err := i.counts.Read(bank, nil)
		if err != nil {
			return 0, err
		}
		n += words[bpf.BeaucoupBeaucoupCounterBEAUCOUP_STARTED]
	}
	return n, nil
}

// full reports whether evict may be needed: not if the collectors at the last search, and all started since, are below the share. A
// search reads the whole table, also on an idle link.
func (i *instance) full() (bool, error) {
	if i.evictAbove >= 1 {
		return false, nil
	}
	now, err := i.started()
	if err != nil || now < i.since {
		return true, err // a window ended: its counts were reset
	}
	return i.most < 0 || i.most+float64(now-i.since) > i.evictAbove*float64(i.entries), nil
}

// hopeless reports whether a slot's collector cannot raise an alert: its query was removed, or, even with all attributes that it
// may have missed and the same rate of new ones, it would not be complete before its window ends.
func (i *instance) hopeless(slot int, now uint32) bool {
	left := uint32(i.held.end[slot]) - now
	if left > i.program.Horizon() {
		return false // its window has ended, so the slot is free
	}
	c := i.program.ByID(int(i.held.key[slot] & (compile.MaxQueries - 1)))
	if c == nil {
		return true
	}
	window := compile.Ticks(c.Window)
	if left >= window {
		return false // it has just started, or the clocks of two cores differ
	}
	return i.effective(c).Hopeless(bits.OnesCount64(i.held.coupons[slot]), float64(left)/float64(window-left))
}

// forget ends all collectors: with new hashes they do not match keys and attributes any more.
func (i *instance) forget() error {
	i.counting = nil
	if err := i.held.ends.Reset(0); err != nil {
		return fmt.Errorf("start with new hashes: %w", err)
	}
	return nil
}

func ticks32(ns int64) uint32 { return uint32(ns >> compile.Tick) }
