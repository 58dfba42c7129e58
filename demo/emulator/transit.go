package emulator

// transit is a packet on its way.
type transit struct {
	due   int64 // ns
	order uint64
	frame []byte
	event *Event // nil unless somebody wants to know
}

// transits is a binary heap, the packet that leaves first on top; packets due at the same time keep their order.
type transits []transit

func (h transits) before(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].order < h[j].order
}

func (h *transits) push(t transit) {
	q := append(*h, t)
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.before(i, parent) {
			break
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
	*h = q
}

func (h *transits) pop() transit {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	q[last] = transit{}
	q = q[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			break
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
	*h = q
	return first
}

// pool keeps frames' memory, in a few sizes so that small packets take little.
type pool struct {
	free [len(poolSizes)][][]byte
}

var poolSizes = [...]int{256, 2048, frameMax}

// copy returns a copy of b in the smallest memory that holds it.
func (p *pool) copy(b []byte) []byte {
	for class, size := range poolSizes {
		if len(b) > size {
			continue
		}
		list := p.free[class]
		if len(list) == 0 {
			list = append(list, make([]byte, size))
		}
		c := list[len(list)-1][:len(b)]
		p.free[class] = list[:len(list)-1]
		copy(c, b)
		return c
	}
	return append([]byte(nil), b...)
}

func (p *pool) put(b []byte) {
	for class, size := range poolSizes {
		if cap(b) == size {
			p.free[class] = append(p.free[class], b[:size])
			return
		}
	}
}
