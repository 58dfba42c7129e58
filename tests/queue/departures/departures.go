// Package departures is an algorithm for tests: it reports of every packet when it was handed to its queue, and when it left.
package departures

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
)

//go:generate ../../../.ci/bpf2go -type departures_count -type departure Departures departures.bpf.c

// Departure is a packet that left its queue, or, where Now is 0, one that an enforcer before this algorithm in the chain dropped.
type Departure = DeparturesDeparture

// Object makes one for a chain. records: every packet is a record in the ring.
func Object(records bool) (loader.Object, error) {
	spec, err := LoadDepartures()
	if err != nil {
		return loader.Object{}, fmt.Errorf("read departures: %w", err)
	}
	if err := maps.SetConstant(spec, "departures_told", records); err != nil {
		return loader.Object{}, err
	}
	return loader.Object{Name: "departures", Spec: spec, Needs: maps.NeedQueue}, nil
}

// Ring holds the records.
func Ring(inst *loader.Instance) *ebpf.Map { return inst.Maps()["departures/departures_ring"] }

// Read decodes a record.
func Read(b []byte) (d Departure) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&d)), unsafe.Sizeof(d)), b)
	return d
}
