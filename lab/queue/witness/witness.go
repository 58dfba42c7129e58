// Package witness sees packets at the trace points of queueing disciplines, to compare with what xdpmon reports of them.
package witness

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf/link"

	"github.com/xdpmon/xdpmon/loader/namespace"
	"github.com/xdpmon/xdpmon/maps"
)

//go:generate ../../../.ci/bpf2go -type witness_kind -type sighting Witness witness.bpf.c

// Sighting of a datagram.
type Sighting = WitnessSighting

// Kinds of sightings.
const (
	Enqueue = uint8(WitnessWitnessKindWITNESS_ENQUEUE)
	Dequeue = uint8(WitnessWitnessKindWITNESS_DEQUEUE) // heads of bulks
	Start   = uint8(WitnessWitnessKindWITNESS_START)
	kinds   = uint32(WitnessWitnessKindWITNESS_KINDS)
)

// Idle is set in Sighting.Cpu where the idle task was interrupted.
const Idle = 0x80

// Witness of an interface's queue. Close it.
type Witness struct {
	objects WitnessObjects
	links   []link.Link
	ring    *maps.Ring
}

// New begins to look at an interface of the calling thread's network namespace.
func New(ifindex int) (*Witness, error) {
	cookie, err := namespace.Cookie()
	if err != nil {
		return nil, err
	}
	spec, err := LoadWitness()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(maps.SetConstant(spec, "witness_netns", cookie), maps.SetConstant(spec, "witness_ifindex", uint32(ifindex))); err != nil {
		return nil, err
	}
	w := &Witness{}
	if err := spec.LoadAndAssign(&w.objects, nil); err != nil {
		return nil, fmt.Errorf("load the witness: %w", err)
	}
	if err := w.start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Witness) start() (err error) {
	o := w.objects
	for _, p := range []link.TracingOptions{{Program: o.WitnessEnqueue}, {Program: o.WitnessDequeue}, {Program: o.WitnessStart}} {
		l, err := link.AttachTracing(p)
		if err != nil {
			return fmt.Errorf("attach the witness: %w", err)
		}
		w.links = append(w.links, l)
	}
	w.ring, err = maps.NewRing(o.WitnessRing)
	return err
}

// Take empties the ring. It is an error when something was lost, or when a program could not run because it ran already.
func (w *Witness) Take() (all []Sighting, err error) {
	err = w.ring.Drain(func(b []byte) {
		var s Sighting
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&s)), unsafe.Sizeof(s)), b)
		all = append(all, s)
	})
	if err != nil {
		return nil, err
	}
	for kind := range kinds {
		var lost uint64
		if err := w.objects.WitnessLost.Lookup(kind, &lost); err != nil {
			return nil, err
		}
		if lost > 0 {
			return nil, fmt.Errorf("the witness lost %d sightings", lost)
		}
	}
	return all, nil
}

// Close ends it.
func (w *Witness) Close() error {
	var errs []error
	for _, l := range w.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, w.objects.Close())...)
}
