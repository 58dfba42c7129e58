package ahab

import (
	"fmt"
	"math"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/ahab/spacing"
)

// distances are how far apart the losses of TCP flows are, slice by slice: they follow how much of its capacity a slice uses.
type distances struct {
	table, offered, dropped *maps.Shared
	of                      []distance // by slice
	last                    int64
}

// distance of a slice. What came and what passed are averaged over some round trips.
type distance struct {
	bytes              uint32 // 0: none was found yet
	offered, dropped   uint64
	came, passed, lost float64 // bytes a second; seconds since the last loss
}

// Averages are over so many seconds, as long as a loss counts for.
const averaged = 0.2

func (d *distances) bind(arrays map[string]*maps.Array, slices int) (err error) {
	for name, words := range map[string]**maps.Shared{"ahab_slices": &d.table, "ahab_offered": &d.offered, "ahab_dropped": &d.dropped} {
		if *words, err = arrays[name].Shared(); err != nil {
			return fmt.Errorf("bind distances: %w", err)
		}
	}
	d.of = make([]distance, slices)
	for n := range d.of {
		d.of[n] = distance{offered: d.offered.Load(n), dropped: d.dropped.Load(n), lost: math.Inf(1)}
	}
	return nil
}

// distance of a slice with a capacity, to begin with if nothing is known.
func (i *instance) distance(n int, capacity uint64) uint32 {
	switch {
	case n < len(i.apart.of) && i.apart.of[n].bytes > 0:
		return i.apart.of[n].bytes
	case i.spacing > 0:
		return uint32(i.spacing)
	}
	return spacingFor(float64(capacity) / 2)
}

// spread is a tick of the loop.
func (i *instance) spread(now int64) {
	d := &i.apart
	seconds := float64(now-d.last) / 1e9
	d.last = now
	for n := 1; n < len(d.of); n++ {
		s := &d.of[n]
		offered, dropped := d.offered.Load(n), d.dropped.Load(n)
		came, gone := offered-s.offered, dropped-s.dropped
		s.offered, s.dropped = offered, dropped
		if !(seconds > 0 && seconds < averaged) {
			continue // the first one, or it was away
		}
		capacity := d.table.Load(n * sliceWords)
		if came == 0 || capacity == 0 {
			s.lost = math.Inf(1)
			continue
		}
		if s.lost += seconds; gone > 0 {
			s.lost = 0
		}
		part := seconds / averaged
		s.came += part * (float64(came)/seconds - s.came)
		s.passed += part * (float64(came-min(came, gone))/seconds - s.passed)
		word := d.table.Load(n*sliceWords + 1)
		s.bytes = spacing.Next(uint32(word), s.came, s.passed, float64(capacity), s.lost < averaged)
		d.table.Store(n*sliceWords+1, word>>32<<32|uint64(s.bytes))
	}
}
