package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// flips are the ends of xdpmon's windows by the harness' own clock: at the end of each, xdpmon changes the bank in the control word of its chain (bpf/include/chain.h),
// which anybody may read who may read the map. Whether windows ended late is known by them and not by xdpmon's word alone.
type flips struct {
	mu    sync.Mutex
	seen  map[ebpf.MapID]*chain
	ended []flip
}

type chain struct {
	word *ebpf.Map
	bank uint64
	read time.Time // the latest
	last flip
}

// flip is the change of a bank: it was after one reading and before the next.
type flip struct {
	after, before time.Time
	length        time.Duration // of the window that it ends, at least; 0: its start was not seen
	began         time.Time     // ... at the latest
}

const (
	flipEvery = 20 * time.Millisecond
	chainsOf  = "chain_control" // name of the map
	bankBit   = 1
)

// watchFlips reads the control words of a process until the context ends.
func watchFlips(ctx context.Context, process int) *flips {
	f := &flips{seen: map[ebpf.MapID]*chain{}}
	go func() {
		defer f.close()
		for n := 0; ctx.Err() == nil; n++ {
			if n%50 == 0 {
				f.find(process)
			}
			f.read()
			time.Sleep(flipEvery)
		}
	}()
	return f
}

// find opens the control words of a process that are not open yet.
func (f *flips) find(process int) {
	infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", process))
	for _, path := range infos {
		id, ok := mapOf(path)
		if !ok || f.seen[id] != nil {
			continue
		}
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		if info, err := m.Info(); err != nil || info.Name != chainsOf {
			_ = m.Close()
			m = nil
		}
		f.seen[id] = &chain{word: m}
	}
}

// mapOf is the map of a file descriptor.
func mapOf(path string) (ebpf.MapID, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, "map_id:"); is {
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			return ebpf.MapID(id), err == nil
		}
	}
	return 0, false
}

func (f *flips) read() {
	for _, c := range f.seen {
		var word uint64
		if c.word == nil {
			continue
		}
		start := time.Now()
		if err := c.word.Lookup(uint32(0), &word); err != nil {
			continue
		}
		f.step(c, word&bankBit, start, time.Now())
	}
}

// step takes a reading between two times.
func (f *flips) step(c *chain, bank uint64, start, end time.Time) {
	if !c.read.IsZero() && bank != c.bank {
		now := flip{after: c.read, before: end}
		if !c.last.before.IsZero() {
			now.length, now.began = now.after.Sub(c.last.before), c.last.before
		}
		c.last = now
		f.mu.Lock()
		f.ended = append(f.ended, now)
		f.mu.Unlock()
	}
	c.bank, c.read = bank, start
}

func (f *flips) close() {
	for _, c := range f.seen {
		if c.word != nil {
			_ = c.word.Close()
		}
	}
}

// nearBy is by how much the start of a window by xdpmon's clock and by ours may differ: the control word changes, and then programs that still run are waited for.
const nearBy = 300 * time.Millisecond

// show reports whether a window that a finding calls late was late by these clocks: at least as long as the longest that it calls usual.
func (f *flips) show(n *found) bool {
	if n.Kind != windowsLate || n.High == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	since := time.Unix(0, n.Since)
	for _, e := range f.ended {
		if d := e.began.Sub(since).Abs(); e.length > time.Duration(*n.High) && d < nearBy {
			return true
		}
	}
	return false
}
