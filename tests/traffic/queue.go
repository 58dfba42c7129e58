package traffic

// event is something that is due at a time.
type event struct {
	time int64 // ns
	id   uint32
	aux  uint32
	seen int64 // when the request was sent
}

// queue is a binary heap of events, the earliest first; equal times leave in the order of their ids, so that a
// stream does not depend on the heap's history.
type queue []event

func (q queue) before(i, j int) bool {
	return q[i].time < q[j].time || q[i].time == q[j].time && q[i].id < q[j].id
}

func (q *queue) push(e event) {
	h := append(*q, e)
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.before(i, parent) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
	*q = h
}

func (q *queue) pop() event {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	h.sink()
	*q = h
	return first
}

func (q queue) sink() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}
