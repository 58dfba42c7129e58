package carpe

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// looks is how many times a window idle entries are swept. An ended flow occupies its entry until it is freed: with one sweep a window, the table
// holds entries of two windows.
const looks = 4

// sweep counts entries, and frees those that did not change for as many sweeps as a span has windows, a quarter of a span: their flows have ended, or
// send less than a packet in that time; elephants fill bundles in a twentieth of a span. The count that is lost is less than a bundle. A packet that
// arrives between the read and the write is lost as well: some microseconds of a span.
func (i *instance) sweep() (held uint64, err error) {
	before := i.expired
	defer func() { i.peak = max(i.peak, held+i.expired-before) }()
	for way, a := range i.arrays {
		now, err := a.Read(0, nil)
		if err != nil {
			return 0, err
		}
		if i.entered[way] == nil {
			i.entered[way], i.idle[way] = make([]uint64, len(now)), make([]uint8, len(now))
		}
		for slot, word := range now {
			if word&math.MaxUint32 <= floor {
				continue
			}
			if word != i.entered[way][slot] {
				i.idle[way][slot] = 0
			} else if i.idle[way][slot]++; int(i.idle[way][slot]) >= i.span {
				freed, err := i.free(way, slot, word)
				if err != nil {
					return 0, err
				}
				if freed {
					i.expired++
					continue
				}
			}
			held++
		}
		i.entered[way] = now
	}
	return held, nil
}

// count returns the number of entries and frees none: in a window that was cut short, an unchanged entry need not be idle.
func (i *instance) count() (held uint64, err error) {
	for _, a := range i.arrays {
		now, err := a.Read(0, nil)
		if err != nil {
			return 0, err
		}
		for _, word := range now {
			if word&math.MaxUint32 > floor {
				held++
			}
		}
	}
	i.peak = max(i.peak, held)
	return held, nil
}

// whole reports whether a window is long enough to end with a sweep.
func (i *instance) whole(w report.Window) bool { return w.End-w.Start >= i.windowNS/looks*(looks-1) }

// look sweeps within a window when a sweep is due; now is any monotonic clock, in ns.
func (i *instance) look(now int64) error {
	step := i.windowNS / looks
	if i.begun == 0 {
		i.begun, i.looked = now, 0
	}
	due := i.begun + int64(i.looked+1)*step
	if step == 0 || i.looked == looks-1 || now < due { // the last sweep is at the window's end
		return nil
	}
	i.looked++
	if now > due+step/2 {
		return nil // too close to the next sweep: a flow that sent nothing in between would look idle
	}
	_, err := i.sweep()
	return err
}

// NextTick implements algo.ReplayController: a replay sweeps when a live run does.
func (i *instance) NextTick(start, now int64) int64 {
	step := i.windowNS / looks
	if step == 0 {
		return math.MaxInt64
	}
	i.begun = start
	k := (now-start)/step + 1
	if k >= looks {
		return math.MaxInt64
	}
	i.looked = int(k) - 1
	return start + k*step
}

func (i *instance) free(way, slot int, word uint64) (bool, error) {
	var now uint64
	m := i.arrays[way]
	if err := m.Element(uint32(slot), &now); err != nil || now != word {
		return false, err
	}
	if err := m.SetElement(uint32(slot), uint64(0)); err != nil {
		return false, fmt.Errorf("free an entry: %w", err)
	}
	i.idle[way][slot] = 0
	return true, nil
}

// handed are flows that found no free entry and are counted here: an event represents 1/s units, or for the packet's units, if those are
// more.
type handed struct {
	config  *config
	coin    *rand.Rand
	flows   map[heavy.Key]uint32 // units of the bundle so far
	full    uint64               // events beyond mostHanded flows
	reports uint64
}

// mostHanded bounds the number of handed flows.
const mostHanded = 65536

func newHanded(c *config, env algo.Env) handed {
	seed := env.Seed
	if !env.Replay {
		seed = rand.Uint64()
	}
	return handed{config: c, coin: rand.New(rand.NewPCG(seed, 15)), flows: map[heavy.Key]uint32{}}
}

// add counts an event, and returns the units of a full bundle to be reported; 0: none.
func (h *handed) add(k heavy.Key, units, observers uint32) uint32 {
	n, there := h.flows[k]
	if !there && len(h.flows) >= mostHanded {
		h.full++
		return 0
	}
	n += max(h.config.start, units)
	if n < h.config.tau(observers) {
		h.flows[k] = n
		return 0
	}
	delete(h.flows, k)
	if h.coin.Uint32() > chance(observers) {
		return 0
	}
	h.reports++
	return n
}
