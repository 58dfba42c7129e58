package heap

import (
	"math/rand/v2"
	"testing"
)

type pair struct{ due, order int64 }

func (p pair) Before(q pair) bool { return p.due < q.due || p.due == q.due && p.order < q.order }

// TestPopsTheLeast pushes and pops in turn: Pop returns the least value of the heap.
func TestPopsTheLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var h Heap[pair]
	there := map[pair]bool{}
	for i := range int64(5000) {
		if len(h) == 0 || i < 4000 && r.IntN(3) > 0 {
			p := pair{r.Int64N(50), i}
			h.Push(p)
			there[p] = true
			continue
		}
		got := h.Pop()
		if !there[got] {
			t.Fatalf("%+v was not there", got)
		}
		delete(there, got)
		for p := range there {
			if p.Before(got) {
				t.Fatalf("%+v before %+v", got, p)
			}
		}
	}
	if len(h) != len(there) {
		t.Errorf("%d left, %d pushed and not popped", len(h), len(there))
	}
}

// TestPopForgets: the memory after the end refers to no popped value.
func TestPopForgets(t *testing.T) {
	var h Heap[pair]
	for i := range int64(10) {
		h.Push(pair{i + 1, i})
	}
	for len(h) > 0 {
		h.Pop()
	}
	for i, p := range h[:10] {
		if p != (pair{}) {
			t.Errorf("%d: %+v", i, p)
		}
	}
}
