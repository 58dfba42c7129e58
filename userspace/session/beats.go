package session

import (
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/hostclock"
)

// beatEvery is the interval of controllers that share one timer: those of algorithms that may be idle while no packet arrives
// (algo.Rester).
const beatEvery = 100 * time.Millisecond

// restEvery is the interval while no instance has traffic. Each wake-up of a process costs more than what it does then. Rings have room for the reports of
// the first packets: at 48 bytes a report, 50,000 a second.
const restEvery = 4 * beatEvery

// restAfter is the number of beats without a packet after which an instance is idle. Two, because a packet is counted before the algorithms process
// it: a beat in between sees the count, but not yet their reports.
const restAfter = 2

// beats are the ticks of one controller, from the process-wide metronome.
type beats struct {
	due  chan time.Time
	inst *loader.Instance
	seen uint64
	same int // beats since the packet counter last changed
}

// metronome ticks the controllers of all instances with traffic: 200 idle instances cost only one read of their counters.
var metronome struct {
	sync.Mutex
	of   map[*beats]struct{}
	stop chan struct{}
}

// beats registers a member's controller, if it rests and the interval is that of the metronome.
func (r *runner) beats(m *member) *beats {
	c, ok := m.instance.(algo.Rester)
	if !ok || r.inst == nil || c.IntervalNS() != int64(beatEvery) || !c.Rests() {
		return nil
	}
	b := &beats{due: make(chan time.Time, 1), inst: r.inst, same: restAfter} // idle until the first packet
	metronome.Lock()
	defer metronome.Unlock()
	if metronome.of == nil {
		metronome.of = map[*beats]struct{}{}
	}
	metronome.of[b] = struct{}{}
	if len(metronome.of) == 1 {
		metronome.stop = make(chan struct{})
		go swing(metronome.stop)
	}
	return b
}

// end unregisters a controller. Its instance's counters are not read after that.
func (b *beats) end() {
	if b == nil {
		return
	}
	metronome.Lock()
	defer metronome.Unlock()
	delete(metronome.of, b)
	if len(metronome.of) == 0 {
		close(metronome.stop)
	}
}

func swing(stop chan struct{}) {
	timer := time.NewTimer(untilTick(int64(beatEvery), hostclock.Now()))
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
			every := beatEvery
			if !beat() {
				every = restEvery
			}
			timer.Reset(untilTick(int64(every), hostclock.Now()))
		}
	}
}

// beat ticks the controllers of instances with traffic, or all if the counters cannot be read. It reports whether there were any.
func beat() (any bool) {
	metronome.Lock()
	defer metronome.Unlock()
	of := map[*loader.Instance]int{}
	var all []*loader.Instance
	for b := range metronome.of {
		if _, known := of[b.inst]; !known {
			of[b.inst] = len(all)
			all = append(all, b.inst)
		}
	}
	seen, err := loader.SeenSoFar(all)
	for b := range metronome.of {
		if err == nil && b.rests(seen[of[b.inst]]) {
			continue
		}
		any = true
		select {
		case b.due <- time.Time{}:
		default: // the controller has not handled the last beat yet
		}
	}
	return any
}

// rests records the instance's packet count, and reports whether it is idle.
func (b *beats) rests(seen uint64) bool {
	if seen != b.seen {
		b.seen, b.same = seen, 0
		return false
	}
	b.same++
	return b.same > restAfter
}
