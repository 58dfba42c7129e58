package traffic

import "github.com/xdpmon/xdpmon/demo/heap"

// event is something that is due at a time.
type event struct {
	time int64 // ns
	id   uint32
	aux  uint32
	seen int64 // when the request was sent
}

// Before: equal times leave in the order of their ids, so that a stream does not depend on the heap's history.
func (e event) Before(f event) bool {
	return e.time < f.time || e.time == f.time && e.id < f.id
}

// queue has the earliest event first.
type queue = heap.Heap[event]
