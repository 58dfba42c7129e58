// Package conquest registers the twin of ConQuest.
package conquest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/p4/tna/run"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func init() {
	twin.Register(&twin.Twin{
		Name: "conquest", Algorithm: "conquest",
		Forms: []twin.Form{{}, {Name: "eight", Generated: true, Set: map[string]string{"snapshots": "8", "columns": "256", "interval": "262144ns", "tau": "500us", "alpha": "1/64"}},
			{Name: "two", Generated: true, Brief: true, Set: map[string]string{"snapshots": "2", "columns": "64", "interval": "262144ns", "tau": "200us", "alpha": "1/16"}},
			{Name: "small", Generated: true, Set: map[string]string{"columns": "16", "interval": "1ms", "tau": "100us", "alpha": "1/4"}}},
		Prepare: collect,
		Fill: append(sessions(), twin.Fill{Kind: twin.FillTable, Optional: true, Object: "Egress.conquest.ports",
			What: "whose queue is measured: without an entry that of all ports together; else ignore as the default action, and watch for the port"}),
		Queue: bursts,
		Drive: nearLimit,
		Counts: []twin.Count{
			count(bpf.ConquestConquestCounterCONQUEST_CULPRIT, "accuse"),
			count(bpf.ConquestConquestCounterCONQUEST_CONGESTED, "accuse", "waited"),
			count(bpf.ConquestConquestCounterCONQUEST_FATE, "accuse", "waited", "passed"),
		},
		Unreachable: []string{"action conquest.ignore"}, // what a control plane chooses
		Emits:       headers,
		Reports:     &twin.Reports{Ring: "conquest_events", Host: arrivalOf, Twin: copied},
		Unread: "a capture does not contain how long packets waited in the switch's queue; and of a culprit the switch keeps neither its share of the queue nor the burst, but " +
			"sends a copy of its packet with delay and limit in front to a collector. For the queue that a capture would fill: xdpmon replay --algo conquest",
		HostOf: turned,
		Differences: []twin.Difference{twin.Echoes,
			{Name: "windows are not read across a turn of the time stamps", Max: 200, Wraps: true, Turn: &twin.Turn{Registers: snapshots, Every: 1 << 48}},
		},
	})
}

// snapshots are the registers of windows.
var snapshots = func() (names []string) {
	for j := range 8 {
		names = append(names, fmt.Sprintf("conquest_t%d", j), fmt.Sprintf("conquest_s%d_0", j), fmt.Sprintf("conquest_s%d_1", j))
	}
	return names
}()

// turned takes out of a window's number what a switch's time stamps of 48 bits have no bits for.
func turned(v algo.Values) (func(register string, word uint64) uint64, error) {
	shift, err := windowShift(v)
	if err != nil {
		return nil, err
	}
	windows := uint64(1)<<(48-shift) - 1
	return func(register string, word uint64) uint64 {
		if register == "conquest_told" {
			return word & (0xffffffff<<32 | windows)
		}
		return word & (windows<<32 | 0xffffffff)
	}, nil
}

// windowShift is log2 of a window's ns, as the twin's generated parameters have it.
func windowShift(v algo.Values) (shift int, err error) {
	d, err := algo.Lookup("conquest")
	if err != nil {
		return 0, err
	}
	parts, err := d.P4(v)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(parts["params"]) {
		if _, err := fmt.Sscanf(line, "#define CONQUEST_SHIFT %d", &shift); err == nil {
			return shift, nil
		}
	}
	return 0, errors.New("params.p4 has no CONQUEST_SHIFT")
}

func count(counter bpf.ConquestConquestCounter, actions ...string) twin.Count {
	return twin.Count{Table: "conquest.accuse.accused", Actions: actions, Host: "conquest_counts", Index: int(counter)}
}

// collector is the port that reports go to.
const collector = 64

// sessions are the mirror sessions of reports, one a pipe.
func sessions() (fill []twin.Fill) {
	for pipe := range twin.Pipes {
		fill = append(fill, twin.Fill{Kind: twin.FillSession, Object: fmt.Sprintf("mirror session %d", pipe+1), Session: &twin.Session{Number: uint64(pipe + 1), Bytes: twin.CloneBytes},
			What: fmt.Sprintf("reports of what arrived by pipe %d, to the collector's port", pipe)})
	}
	return fill
}

// collect makes these sessions, to one port.
func collect(sw *run.Switch, _ algo.Values) error {
	for _, f := range sessions() {
		sw.Sessions[f.Session.Number] = run.Session{Port: collector, Bytes: f.Session.Bytes}
	}
	return nil
}

// longest wait, ns: the sign of its difference from the shortest tau of the forms is whether a packet waited long.
const longest = 1<<31 + 100_000 - 1

// bursts are waits that rise and fall over some hundred packets, up to eight milliseconds. One in four is short; some are tau of a form to the
// nanosecond, or begin in the middle of a window.
func bursts() func(f *packet.Frame) run.Queue {
	const (
		most, short = 8_000_000, 600_000 // ns
		half        = 1 << 17            // of the shortest window of the forms
	)
	taus := []int64{1_000_000, 500_000, 100_000}
	var n, last int64
	return func(f *packet.Frame) run.Queue {
		n++
		slope := n % 256
		if n/256%2 == 1 {
			slope = 255 - slope
		}
		wait := most * slope * slope / (255 * 255)
		f.Time = max(f.Time, last) // a queue is left in order
		last = f.Time
		switch {
		case n%4 == 1:
			wait = n * 7919 % short
		case n%32 == 2:
			wait = taus[n/32%3] - n/96%2
		case n%32 == 18:
			wait = f.Time - ((f.Time-wait)/half*half - n/32%2)
		case n%64 == 39: // of every size to the longest that is distinguished from a short one
			wait = min(n*2654435761%(1<<(23+n/64%9)), longest-n/64%2)
		}
		wait = min(wait, f.Time-1)
		f.Enqueued = f.Time - wait
		return run.Queue{Wait: uint64(wait)}
	}
}

// arrivalOf is the arrival of the packet that a report of a culprit is about.
func arrivalOf(record []byte) []uint64 {
	var e bpf.ConquestConquestEvent
	if _, err := binary.Decode(record, binary.NativeEndian, &e); err != nil || e.Kind != uint32(bpf.ConquestConquestEventKindEVENT_CULPRIT) {
		return nil
	}
	return []uint64{e.Time - e.Delay}
}

// copied: a copy was sent to the collector.
func copied(r *run.Result, time uint64) (all [][]uint64) {
	for range r.Cloned {
		all = append(all, []uint64{time})
	}
	return all
}

// nearLimit drives the snapshots of the small form: before each packet every cell holds a number about as large as the limit, of one of the windows that
// its snapshot is read for or of an older one, so that each of them decides about somebody. Rows and totals are drawn one by one.
func nearLimit(d twin.Driver, _ twin.Form) error {
	const window, packets = 1 << 20, 2000 // ns, of the small form
	if len(d.Read("conquest_s0_0")) > 16 {
		return nil
	}
	r := rand.New(rand.NewPCG(5, 16))
	now := (d.Now()/window + 2) * window
	for n := range packets {
		now += r.Int64N(window / 2)
		if n%2 == 0 { // in the last part of its window
			now = max(now, now/window*window+window-1-r.Int64N(window/4))
		}
		if err := fill(d, r, uint32(now/window)); err != nil {
			return err
		}
		p := packet.Packet{Time: now, Valid: packet.IP | packet.Ports | packet.UDP, Proto: 17, Segs: 1, SrcPort: uint16(n), DstPort: 53,
			Src: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), Dst: netip.AddrFrom4([4]byte{10, 0, 1, byte(n >> 3)})}
		if err := errors.Join(d.Send(p), d.Compare()); err != nil {
			return err
		}
	}
	return nil
}

// fill all cells, at the time of one window.
func fill(d twin.Driver, r *rand.Rand, epoch uint32) error {
	const snapshots, alpha = 4, 4 // a flow is a culprit with more than one packet of so many
	for j := range uint32(snapshots) {
		of := epoch - (epoch-j)%snapshots // the last window that was this snapshot's
		cell := func(count uint32) uint64 {
			return uint64(of-snapshots*(r.Uint32N(5)/4))<<32 | uint64(count)
		}
		if err := d.Write(fmt.Sprintf("conquest_t%d", j), 0, cell(r.Uint32N(8*alpha))); err != nil {
			return err
		}
		for row := range 2 {
			name, word := fmt.Sprintf("conquest_s%d_%d", j, row), cell(r.Uint32N(14))
			for i := range len(d.Read(name)) {
				if err := d.Write(name, i, word); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
