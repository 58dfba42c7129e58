package emulator

// transit is a packet on its way.
type transit struct {
	due   int64 // ns
	order uint64
	frame []byte
	event *Event // nil unless OnPacket is set
}

// Before: packets due at the same time keep their order.
func (t transit) Before(u transit) bool {
	return t.due < u.due || t.due == u.due && t.order < u.order
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
