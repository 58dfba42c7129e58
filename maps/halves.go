package maps

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrHalves is returned where instances that share their program arrays would need a third chain: each half of the slots holds one that is in use.
var ErrHalves = errors.New("two chains are in use, which is the limit of shared program arrays")

// Halves are the two halves of program arrays that several instances share. Each holds a chain, and can be filled again when no instance uses it:
// instances that change to the same chain find it in the other half.
type Halves struct {
	mu sync.Mutex
	of [2]struct {
		slots []Slot
		users int
	}
}

// united joins two chains that are equal except that one lacks the programs of a kind of hook. Both can use the union, since no packet of an
// instance arrives through a hook before the instance's chain has programs for it.
func united(a, b []Slot) ([]Slot, bool) {
	if len(a) != len(b) {
		return nil, false
	}
	both := make([]Slot, len(a))
	for i := range a {
		both[i] = slices.Clone(a[i])
		for j, p := range b[i] {
			switch {
			case both[i][j] == nil:
				both[i][j] = p
			case p != nil && p != both[i][j]:
				return nil, false
			}
		}
	}
	return both, true
}

// take finds the half with these programs, adds those of a kind of hook that it lacks, or fills an unused one.
func (h *Halves) take(slots []Slot, fill func(half int) error, empty func(half, slots int)) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.of {
		if h.of[n].users == 0 {
			continue
		}
		both, ok := united(h.of[n].slots, slots)
		if !ok {
			continue
		}
		if !slices.EqualFunc(h.of[n].slots, both, slices.Equal[Slot]) {
			if err := fill(n); err != nil {
				return 0, err
			}
		}
		h.of[n].slots = both
		h.of[n].users++
		return n, nil
	}
	for n := range h.of {
		if h.of[n].users > 0 {
			continue
		}
		if err := fill(n); err != nil {
			empty(n, len(slots))
			return 0, err
		}
		h.of[n].slots, h.of[n].users = slices.Clone(slots), 1
		return n, nil
	}
	return 0, ErrHalves
}

// leave a half; its last user empties it. No packet of the instance may use it any more.
func (h *Halves) leave(half int, empty func(half, slots int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[half].users--; h.of[half].users > 0 {
		return
	}
	empty(half, len(h.of[half].slots))
	h.of[half].slots = nil
}

// running reports whether the control word names a chain: every instance starts with the first half and no programs.
func (c *Control) running() bool { return c.word>>8&0xff > 0 }

// setShared is SetChain among instances that share program arrays. A chain without programs uses no half.
func (c *Control) setShared(slots []Slot, needs Need) (err error) {
	before, ran := int(c.word>>1&1), c.running()
	half := 0
	if len(slots) > 0 {
		if half, err = c.halves.take(slots, func(half int) error { return c.fill(half, slots) }, c.drop); err != nil {
			return fmt.Errorf("set chain: %w", err)
		}
	}
	publish := c.publish
	if !ran {
		publish = c.write // no program runs for the instance, and there is nothing to free: 200 instances start without waiting
	}
	if err := publish(c.wordOf(half, slots, needs)); err != nil {
		return fmt.Errorf("set chain: %w", err)
	}
	if ran {
		c.halves.leave(before, c.drop)
	}
	return nil
}

// endShared removes the instance's chain, since another instance may get its number.
func (c *Control) endShared() error {
	before, ran := int(c.word>>1&1), c.running()
	if err := c.publish(0); err != nil || !ran {
		return err
	}
	c.halves.leave(before, c.drop)
	return nil
}
