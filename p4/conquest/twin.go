// Package conquest registers the twin of ConQuest.
package conquest

import (
	"encoding/binary"

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
			{Name: "small", Generated: true, Set: map[string]string{"columns": "16", "interval": "1ms", "tau": "100us", "alpha": "1/4"}}},
		Prepare: collect,
		Queue:   bursts,
		Counts: []twin.Count{
			count(bpf.ConquestConquestCounterCONQUEST_CULPRIT, "accuse"),
			count(bpf.ConquestConquestCounterCONQUEST_CONGESTED, "accuse", "waited"),
			count(bpf.ConquestConquestCounterCONQUEST_FATE, "accuse", "waited", "passed"),
		},
		Unreachable: []string{"action conquest.ignore"}, // what a control plane chooses
		Reports:     &twin.Reports{Ring: "conquest_events", Host: told, Twin: copied},
		Differences: []twin.Difference{twin.Echoes},
	})
}

func count(counter bpf.ConquestConquestCounter, actions ...string) twin.Count {
	return twin.Count{Table: "conquest.accuse.accused", Actions: actions, Host: "conquest_counts", Index: int(counter)}
}

// collector is the port that reports go to.
const collector = 64

// collect makes the mirror sessions of reports, one a pipe.
func collect(sw *run.Switch, _ algo.Values) error {
	for number := range uint64(4) {
		sw.Sessions[number+1] = run.Session{Port: collector, Bytes: 128}
	}
	return nil
}

// bursts are waits that rise and fall over some hundred packets: up to eight milliseconds.
func bursts() func(f *packet.Frame) run.Queue {
	const most = 8_000_000 // ns
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
		wait = min(wait, f.Time-1)
		f.Enqueued = f.Time - wait
		return run.Queue{Wait: uint64(wait)}
	}
}

// told is the arrival of the packet that a report of a culprit is about.
func told(record []byte) []uint64 {
	var e bpf.ConquestConquestEvent
	if _, err := binary.Decode(record, binary.NativeEndian, &e); err != nil || e.Kind != uint32(bpf.ConquestConquestEventKindEVENT_CULPRIT) {
		return nil
	}
	return []uint64{e.Time - e.Delay}
}

// copied: a copy went to the collector.
func copied(r *run.Result, time uint64) (all [][]uint64) {
	for range r.Cloned {
		all = append(all, []uint64{time})
	}
	return all
}
