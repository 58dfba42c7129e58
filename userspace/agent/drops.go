package agent

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/xdpmon/xdpmon/loader/drops"
	"github.com/xdpmon/xdpmon/userspace/prom"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// mostDrops is how many interfaces' drops are counted at the same time: 4 KiB of registers each.
const mostDrops = 256

// dropped counts what the kernel drops on measured interfaces.
type dropped struct {
	log *slog.Logger

	mu      sync.Mutex
	counter *drops.Counter
	watched map[int]Link
	failed  bool // it could not be opened; tried again when the configuration is read
	full    bool
}

// follow counts drops on the interfaces of the wanted instances, if on.
func (d *dropped) follow(on bool, wanted map[string]desired) {
	links := map[int]Link{}
	for _, w := range wanted {
		for _, l := range w.ifaces {
			links[l.Index] = l
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !on {
		d.failed = false
		d.end()
		return
	}
	if d.counter == nil && !d.failed {
		d.begin()
	}
	if d.counter == nil {
		return
	}
	for index := range d.watched {
		if _, there := links[index]; !there {
			d.warn(d.counter.Unwatch(index), "")
			delete(d.watched, index)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(links)) {
		d.watch(links[index])
	}
}

func (d *dropped) begin() {
	c, err := drops.Open(mostDrops)
	if err != nil {
		d.failed = true
		d.log.Error("packets dropped by the kernel are not counted", "error", err)
		return
	}
	d.counter, d.watched = c, map[int]Link{}
	d.log.Info("packets dropped by the kernel are counted", "by_sockets", c.Sockets())
}

func (d *dropped) watch(l Link) {
	if _, there := d.watched[l.Index]; there {
		d.watched[l.Index] = l // it may have another name or guest
		return
	}
	err := d.counter.Watch(l.Index)
	if errors.Is(err, drops.ErrFull) {
		if !d.full {
			d.full = true
			d.warn(err, l.Name)
		}
		return
	}
	d.warn(err, l.Name)
	if err == nil {
		d.watched[l.Index] = l
	}
}

func (d *dropped) warn(err error, iface string) {
	if err != nil {
		d.log.Warn("packets dropped by the kernel are not counted on an interface", "interface", iface, "error", err)
	}
}

// read returns the counts, for metrics.
func (d *dropped) read() (list []prom.Drops) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counter == nil {
		return nil
	}
	counts, err := d.counter.Read()
	if err != nil {
		d.log.Warn("read packets dropped by the kernel", "error", err)
		return nil
	}
	for _, index := range slices.Sorted(maps.Keys(counts)) {
		var one prom.Drops
		if l, there := d.watched[index]; there {
			one.Identity = report.Identity{Interfaces: []string{l.Name}, Guest: l.Guest}
		}
		for _, n := range counts[index] {
			one.Reasons = append(one.Reasons, prom.DropReason{Reason: n.Reason, Packets: n.Packets, Bytes: n.Bytes})
		}
		list = append(list, one)
	}
	return list
}

func (d *dropped) end() {
	if d.counter != nil {
		d.warn(d.counter.Close(), "")
	}
	d.counter, d.watched, d.full = nil, nil, false
}

// close ends the counting.
func (d *dropped) close() { d.follow(false, nil) }
