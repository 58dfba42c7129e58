package beaucoup

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	bpf "github.com/xdpmon/xdpmon/bpf/beaucoup"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/beaucoup/compile"
)

// evictEvery is how often a live run searches for hopeless collectors, in ns.
const evictEvery = 1_000_000_000

// units are the tables of collectors, and the second place.
const (
	mostTables  = 3
	secondPlace = mostTables
	slotBits    = 24 // of an event's slot; above them is the number of the unit
)

// unit is a table of collectors, or the second place, with copies of its registers.
type unit struct {
	number                     int
	ends, keys, vectors, tails *maps.Array
	end, key, coupons          []uint64
}

// unitNames are the names of a unit's registers.
func unitNames(number int) (ends, keys, vectors, tails string) {
	suffix := ""
	if number > 0 {
		suffix = strconv.Itoa(number)
	}
	return "beaucoup_ends" + suffix, "beaucoup_keys" + suffix, "beaucoup_vectors" + suffix, "beaucoup_tails" + suffix
}

// unitNumbers are the units of a configuration.
func (c *config) unitNumbers() (list []int) {
	for n := range c.options.Tables {
		list = append(list, n)
	}
	if c.second {
		list = append(list, secondPlace)
	}
	return list
}

// unitEntries are the collectors of a unit, a power of two: all units together have no more than c.entries.
func (c *config) unitEntries() uint32 {
	return 1 << (bits.Len32(c.entries/uint32(len(c.unitNumbers()))) - 1)
}

// places are the collectors that all units have room for.
func (c *config) places() float64 { return float64(len(c.unitNumbers())) * float64(c.unitEntries()) }

// newUnits finds the registers of a loaded program.
func (c *config) newUnits(set *maps.Set) (units []*unit, err error) {
	for _, number := range c.unitNumbers() {
		u := &unit{number: number}
		ends, keys, vectors, tails := unitNames(number)
		for name, a := range map[string]**maps.Array{ends: &u.ends, keys: &u.keys, vectors: &u.vectors, tails: &u.tails} {
			if *a, err = set.Array(name); err != nil {
				return nil, err
			}
		}
		units = append(units, u)
	}
	return units, nil
}

// read copies the registers, but for the tails.
func (u *unit) read(dated bool) (err error) {
	if u.end, err = u.ends.Read(0, u.end); err != nil {
		return err
	}
	if u.key, err = u.keys.Read(0, u.key); err != nil {
		return err
	}
	if u.coupons, err = u.vectors.Read(0, u.coupons); err != nil {
		return err
	}
	if dated {
		u.undate()
	}
	return nil
}

// undate removes the end of the window from the coupons' words; coupons of another window than the collector's are cleared.
func (u *unit) undate() {
	for slot, v := range u.coupons {
		u.coupons[slot] = v & math.MaxUint32
		if v>>32 != u.end[slot] {
			u.coupons[slot] = 0
		}
	}
}

// alive counts the collectors whose window has not ended.
func (u *unit) alive(now uint32, horizon uint32) (count int, err error) {
	if u.end, err = u.ends.Read(0, u.end); err != nil {
		return 0, err
	}
	if u.ends.AtRest(0) {
		u.end, u.key, u.coupons = nil, nil, nil
		return 0, nil
	}
	for _, end := range u.end {
		if end != 0 && uint32(end)-now <= horizon {
			count++
		}
	}
	return count, nil
}

// free ends the collector of a slot, unless another one occupies the slot meanwhile.
func (u *unit) free(slot int, end uint64) (bool, error) {
	var now uint32
	if err := u.ends.Element(uint32(slot), &now); err != nil || uint64(now) != end {
		return false, err
	}
	return true, u.ends.SetElement(uint32(slot), uint32(0))
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
	if err != nil || i.evictAbove >= 1 || float64(alive) <= i.evictAbove*i.places() {
		return err
	}
	for _, u := range i.units {
		if err := i.evictFrom(u, ticks32(now)); err != nil {
			return fmt.Errorf("evict collector: %w", err)
		}
	}
	return nil
}

func (i *instance) evictFrom(u *unit, now uint32) error {
	if err := u.read(i.dated()); err != nil {
		return err
	}
	for slot, end := range u.end {
		if end == 0 || !i.hopeless(u, slot, now) {
			continue
		}
		freed, err := u.free(slot, end)
		if err != nil {
			return err
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
	return i.most < 0 || i.most+float64(now-i.since) > i.evictAbove*i.places(), nil
}

// hopeless reports whether a slot's collector cannot raise an alert: its query was removed, or, even with all attributes that it
// may have missed and the same rate of new ones, it would not be complete before its window ends.
func (i *instance) hopeless(u *unit, slot int, now uint32) bool {
	left := uint32(u.end[slot]) - now
	if left > i.program.Horizon() {
		return false // its window has ended, so the slot is free
	}
	c := i.program.ByID(int(u.key[slot] & (compile.MaxQueries - 1)))
	if c == nil {
		return true
	}
	window := compile.Ticks(c.Window)
	if left >= window {
		return false // it has just started, or the clocks of two cores differ
	}
	return i.effective(c).Hopeless(bits.OnesCount64(u.coupons[slot]), float64(left)/float64(window-left))
}

// forget ends all collectors: with new hashes they do not match keys and attributes any more.
func (i *instance) forget() error {
	i.counting = nil
	for _, u := range i.units {
		if err := u.ends.Reset(0); err != nil {
			return fmt.Errorf("start with new hashes: %w", err)
		}
	}
	return nil
}

func ticks32(ns int64) uint32 { return uint32(ns >> compile.Tick) }
