package heavy

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
)

// The initial value follows the load unless it is configured. Each bank has its own, which changes while the bank is closed.

const mostInitial = 1_000_000

// configureStarts sets the first initial value of both banks.
func (w *Ways) configureStarts(spec *ebpf.CollectionSpec) error {
	starts := spec.Maps["ways_starts"]
	if starts == nil {
		return fmt.Errorf("set initial value: no table ways_starts in the object")
	}
	starts.Contents = []ebpf.MapKV{{Key: uint32(0), Value: w.Initial}, {Key: uint32(1), Value: w.Initial}}
	return nil
}

func (w *Ways) bindStarts(set *maps.Set) error {
	w.initials = [2]uint64{w.Initial, w.Initial}
	if !w.Adapts {
		return nil
	}
	array, err := set.Array("ways_starts")
	if err != nil {
		return err
	}
	w.starts = array
	for bank := range w.initials { // adopted ones may have changed
		if err := w.starts.Element(uint32(bank), &w.initials[bank]); err != nil {
			return fmt.Errorf("read initial value: %w", err)
		}
	}
	return nil
}

func (w *Ways) start(bank int, initial uint64) error {
	if err := w.starts.SetElement(uint32(bank), initial); err != nil {
		return fmt.Errorf("write initial value: %w", err)
	}
	w.initials[bank] = initial
	return nil
}

func (w *Ways) initialOf(bank int) uint64 {
	if !w.Adapts {
		return w.Initial
	}
	return w.initials[bank]
}

// Adapt chooses the initial value of a closed bank for its next window: the smallest with which as many packets as in this window
// would cause at most wanted second passes. unit is the initial value of one packet.
func (w *Ways) Adapt(bank int, t *Table, passes, wanted, unit float64) error {
	if !w.Adapts || t.Entries == 0 {
		return nil
	}
	next := nextInitial(passes/float64(t.Entries), wanted/float64(t.Entries), float64(t.Initial)/unit, float64(w.Initial)/unit)
	return w.start(bank, uint64(next*unit))
}

// nextInitial: packets without an entry change one from v to v + 1 by one in v + 1, so u of them per entry change it from initial
// to sqrt(initial^2 + 2 u), with as many second passes as the difference. passes returns u, and wanted the initial value.
func nextInitial(passes, wanted, initial, least float64) float64 {
	twice := (passes+initial)*(passes+initial) - initial*initial
	if wanted <= 0 {
		return mostInitial
	}
	return min(max(math.Ceil((twice-wanted*wanted)/(2*wanted)), least), mostInitial)
}
