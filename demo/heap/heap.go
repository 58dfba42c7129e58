// Package heap is a binary heap of values of one type, the first on top. Unlike container/heap it stores values without interfaces: a packet model pushes
// and pops millions of them.
package heap

// Ordered is a value that is ordered before another or not. The order of equal values depends on the heap's history.
type Ordered[T any] interface {
	Before(other T) bool
}

// Heap has its first on top: h[0].
type Heap[T Ordered[T]] []T

// Push adds a value.
func (h *Heap[T]) Push(v T) {
	q := append(*h, v)
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q[i].Before(q[parent]) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
	*h = q
}

// Pop takes the first value; there has to be one.
func (h *Heap[T]) Pop() T {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	clear(q[last:]) // so that the garbage collector can free what it refers to
	q = q[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].Before(q[child]) {
			child++
		}
		if !q[child].Before(q[i]) {
			break
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
	*h = q
	return first
}
