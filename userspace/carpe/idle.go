package carpe

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/heavy"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// looks is how often a window entries are looked at. What an ended flow leaves takes memory until it is freed, and other flows' places: with one look a window
// twice as much is held as one window needs.
const looks = 4

// sweep counts entries, and frees those that were the same for as many looks as a span has windows, a quarter of a span: their flows have ended, or are slower
// than a packet in that time; elephants fill bundles in a twentieth of a span. What they had counted is less than a bundle. Between the last look and the write
// another packet may come, and is lost with it: some microseconds of a span.
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

// count what is held, and free nothing: a window that was cut short says nothing of idle flows.
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

// whole windows end with a look.
func (i *instance) whole(w report.Window) bool { return w.End-w.Start >= i.windowNS/looks*(looks-1) }

// look sweeps within a window, at time now of whatever clock.
func (i *instance) look(now int64) error {
	step := i.windowNS / looks
	if i.begun == 0 {
		i.begun, i.looked = now, 0
	}
	due := i.begun + int64(i.looked+1)*step
	if step == 0 || i.looked == looks-1 || now < due { // the last look is at the window's end
		return nil
	}
	i.looked++
	if now > due+step/2 {
		return nil // too close to the next one: whoever sent nothing since would look idle
	}
	_, err := i.sweep()
	return err
}

// NextTick implements algo.ReplayController: a replay looks when a live run does.
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

// handed are flows that found no place and are counted here: an event stands for 1/s units, or for what the packet has, if that is more.
type handed struct {
	config  *config
	coin    *rand.Rand
	flows   map[heavy.Key]uint32 // units of the bundle so far
	full    uint64               // events that found no room
	reports uint64
}

// mostHanded bounds them.
const mostHanded = 65536

func newHanded(c *config, env algo.Env) handed {
	seed := env.Seed
	if !env.Replay {
		seed = rand.Uint64()
	}
	return handed{config: c, coin: rand.New(rand.NewPCG(seed, 15)), flows: map[heavy.Key]uint32{}}
}

// add counts an event, and returns what is to be reported.
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
