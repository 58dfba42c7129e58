package machine

import (
	"encoding/binary"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

const failed = ^uint64(21) // -EINVAL

// call runs a helper, a function or a kernel function, and reports whether the program continues.
func (s *simulator) call(f *simFrame, ins asm.Instruction) bool {
	r := &f.regs
	switch {
	case ins.IsFunctionCall():
		return s.calls(f, ins.Reference(), r[1], r[2], r[3], r[4])
	case ins.IsKfuncCall():
		r[0] = s.kernel(r, ins.Reference())
	default:
		fn := asm.BuiltinFunc(ins.Constant)
		switch fn {
		case asm.FnTailCall:
			return s.tailCall(r)
		case asm.FnLoop:
			return s.loop(f)
		case asm.FnForEachMapElem:
			return s.forEach(f)
		}
		r[0] = s.helper(r, fn)
	}
	for i := 1; i <= 5; i++ {
		r[i] = simValue{}
	}
	return true
}

func (s *simulator) calls(f *simFrame, name string, args ...simValue) bool {
	g := s.newFrame()
	copy(g.regs[1:], args)
	at, ok := s.labels[name]
	if !ok {
		panic(invalid("no function " + name))
	}
	if !s.function(&g, at) {
		return false
	}
	f.regs[0] = g.regs[0]
	return true
}

func (s *simulator) loop(f *simFrame) bool {
	rounds, code, arg := f.regs[1].n, f.regs[2].code, f.regs[3]
	var i uint64
	for ; i < min(rounds, 8); i++ {
		if !s.calls(f, code, simValue{n: i}, arg) {
			return false
		}
		if f.regs[0].n != 0 {
			break
		}
	}
	f.regs[0] = simValue{n: i}
	return true
}

func (s *simulator) forEach(f *simFrame) bool {
	m, code, arg := f.regs[1].table, f.regs[2].code, f.regs[3]
	for i, e := range m.elements {
		s.lookups++
		key := newMemory("key", 4, nil)
		key.data[0] = byte(i)
		if !s.calls(f, code, simValue{table: m}, simValue{mem: key}, simValue{mem: e, lookup: s.lookups}, arg) {
			return false
		}
	}
	f.regs[0] = simValue{n: uint64(len(m.elements))}
	return true
}

// kernel is the iterator over numbers: the next one and the end of the range lie in its 8 bytes.
func (s *simulator) kernel(r *[11]simValue, name string) simValue {
	it, at := r[1].mem, int(int64(r[1].n))
	switch name {
	case "bpf_iter_num_new":
		from, to := uint32(r[2].n), uint32(r[3].n)
		if int32(from) > int32(to) || to-from > 8 {
			from, to = 0, 0
		}
		it.store(at, 4, simValue{n: uint64(from)})
		it.store(at+4, 4, simValue{n: uint64(to)})
	case "bpf_iter_num_next":
		now, end := it.load(at, 4).n, it.load(at+4, 4).n
		if now >= end {
			return simValue{}
		}
		it.store(at, 4, simValue{n: now + 1})
		round := newMemory("round", 4, nil)
		round.store(0, 4, simValue{n: now})
		return simValue{mem: round}
	}
	return simValue{}
}

// tailCall ends a pass where the slot has a program: all slots of the chain have one, and the program's own slot of second passes.
func (s *simulator) tailCall(r *[11]simValue) bool {
	slots, index := r[2].table, uint32(r[3].n)
	if slots.kind == declared.Recirc {
		s.asked++
	}
	if index >= 32 || s.emptySlots {
		r[0] = simValue{n: failed}
		return true
	}
	now := s.vector()
	s.ended.how = "chain"
	if slots.kind == declared.Recirc {
		s.ended.how = "pass"
		if s.passes++; s.passes > 1 || s.found.pass != 0 {
			s.breaks("a packet is recirculated twice")
		}
		if now.pass != 1 || index != uint32(s.found.next)-1 || now.next != s.found.next {
			s.breaks("the second pass does not start with the first one's vector")
		}
		return false
	}
	if index != uint32(s.found.next) || now.next != s.found.next+1 {
		s.breaks("the chain does not continue with the next slot")
	}
	if now.pass == 1 || s.found.pass != 0 && now.pass == 0 {
		s.breaks("the chain continues with pass %d, which was %d at the start", now.pass, s.found.pass)
	}
	return false
}

// memoryOf is the memory that a helper reads; reading an element counts as an access.
func (s *simulator) memoryOf(v simValue, size int) []byte {
	if size == 0 {
		return nil
	}
	at := int(int64(v.n))
	if v.mem == nil || v.mem == s.context {
		panic(invalid("no memory"))
	}
	if v.mem.owner != nil && v.mem.owner.staged() {
		s.touch(v, at, size, false)
	}
	return append([]byte(nil), v.mem.bytes(at, size)...)
}

func (s *simulator) helper(r *[11]simValue, fn asm.BuiltinFunc) simValue {
	switch fn {
	case asm.FnMapLookupElem:
		return s.lookup(r)
	case asm.FnMapUpdateElem:
		return s.update(r)
	case asm.FnMapPeekElem:
		return s.peek(r)
	case asm.FnRingbufOutput:
		s.memoryOf(r[2], int(r[3].n))
		return s.answer()
	case asm.FnPerfEventOutput:
		s.memoryOf(r[4], int(r[5].n))
		return s.answer()
	case asm.FnRingbufReserve:
		if s.answer().n != 0 {
			return simValue{}
		}
		return simValue{mem: newMemory("record", int(r[2].n), s.garbage)}
	case asm.FnRingbufSubmit, asm.FnRingbufDiscard:
		if r[1].mem == nil || r[1].mem.what != "record" {
			panic(invalid("no record"))
		}
		return simValue{}
	case asm.FnKtimeGetNs:
		return simValue{n: s.now}
	case asm.FnGetPrandomU32:
		s.throws++
		return simValue{n: uint64(s.chance.Uint32())}
	case asm.FnGetSmpProcessorId:
		return simValue{n: 1}
	}
	return s.packetHelper(r, fn)
}

// kernelField is a field of the socket buffer.
func (s *simulator) kernelField(ptr simValue, name string) simValue {
	switch {
	case ptr.mem != s.buffer || ptr.n != 0:
		panic(invalid("no socket buffer"))
	case name == "sk_buff.data":
		return simValue{mem: s.packet, n: uint64(s.packet.from)}
	case name == "sk_buff.len":
		return simValue{n: uint64(s.packet.to - s.packet.from)}
	}
	return s.buffer.load(0, 4)
}

// copyKernel copies bytes of the packet. The kernel memory around it is not simulated: the proof does not check that copies stay inside the packet.
func (s *simulator) copyKernel(r *[11]simValue) simValue {
	size, from := int(int64(r[2].n)), r[3]
	to := int(int64(r[1].n))
	r[1].mem.check(to, size)
	at := int(int64(from.n))
	if from.mem != s.packet || at < s.packet.from || at+size > s.packet.to {
		r[1].mem.fill(to, make([]byte, size))
		return simValue{n: failed}
	}
	r[1].mem.fill(to, s.packet.data[at:at+size])
	return simValue{}
}

func (s *simulator) packetHelper(r *[11]simValue, fn asm.BuiltinFunc) simValue {
	if fn == asm.FnProbeReadKernel {
		return s.copyKernel(r)
	}
	at, size := int(int64(r[2].n)), int(int64(r[4].n))
	inside := at >= 0 && size >= 0 && s.packet.from+at+size <= s.packet.to
	switch fn {
	case asm.FnXdpGetBuffLen:
		return simValue{n: uint64(s.packet.to - s.packet.from)}
	case asm.FnSkbPullData:
		return simValue{}
	case asm.FnCsumDiff:
		return s.checksum(r)
	case asm.FnSkbEcnSetCe:
		s.packet.data[s.packet.from] |= 3
		return simValue{n: 1}
	case asm.FnXdpLoadBytes, asm.FnSkbLoadBytes:
		r[3].mem.check(int(int64(r[3].n)), size)
		switch {
		case inside:
			r[3].mem.fill(int(int64(r[3].n)), s.packet.data[s.packet.from+at:s.packet.from+at+size])
			return simValue{}
		case fn == asm.FnSkbLoadBytes:
			r[3].mem.fill(int(int64(r[3].n)), make([]byte, size))
		}
		return simValue{n: failed}
	case asm.FnXdpStoreBytes, asm.FnSkbStoreBytes:
		with := s.memoryOf(r[3], size)
		if !inside {
			return simValue{n: failed}
		}
		s.packet.fill(s.packet.from+at, with)
		return simValue{}
	case asm.FnL3CsumReplace, asm.FnL4CsumReplace:
		if at < 0 || s.packet.from+at+2 > s.packet.to {
			return simValue{n: failed}
		}
		old := s.packet.load(s.packet.from+at, 2)
		s.packet.store(s.packet.from+at, 2, simValue{n: old.n + r[4].n - r[3].n})
		return simValue{}
	}
	panic(invalid("helper"))
}

func (s *simulator) checksum(r *[11]simValue) simValue {
	sum := r[5].n
	for i, sign := range []uint64{^uint64(0), 1} {
		v, size := r[1+2*i], int(r[2+2*i].n)
		if !v.isPointer() && size == 0 {
			continue
		}
		for k, b := range s.memoryOf(v, size) {
			sum += sign * uint64(b) << (8 * (k & 3))
		}
	}
	return simValue{n: sum & (1<<32 - 1)}
}

// answer is the result of a ring: whether it is full.
func (s *simulator) answer() simValue {
	if s.full.Uint32N(2) == 0 {
		return simValue{n: ^uint64(10)} // -EAGAIN
	}
	return simValue{}
}

func (s *simulator) lookup(r *[11]simValue) simValue {
	m := r[1].table
	if r[1].mem != nil { // a map inside a map
		m = s.maps[r[1].mem.what]
	}
	if m == nil || m.spec.Type == ebpf.Queue || m.elements == nil {
		panic(invalid("lookup"))
	}
	key := s.memoryOf(r[2], int(m.spec.KeySize))
	e := m.at(key)
	s.lookups++
	if declared.IsMapOfMaps(m.spec.Type) {
		if e == nil {
			return simValue{}
		}
		return simValue{mem: &simMemory{what: "inner"}}
	}
	if e == nil {
		return simValue{}
	}
	return simValue{mem: e, lookup: s.lookups}
}

func (s *simulator) update(r *[11]simValue) simValue {
	m := r[1].table
	if m == nil || m.kind != declared.Register && m.kind != declared.Tally {
		panic(invalid("update"))
	}
	key := s.memoryOf(r[2], 4)
	with := s.memoryOf(r[3], int(m.spec.ValueSize))
	e := m.at(key)
	if e == nil || r[4].n > 2 || r[4].n == 1 {
		return simValue{n: failed}
	}
	s.lookups++
	s.touch(simValue{mem: e, lookup: s.lookups}, 0, len(with), true)
	copy(e.data, with)
	return simValue{}
}

func (s *simulator) peek(r *[11]simValue) simValue {
	m := r[1].table
	if m == nil || m.spec.Type != ebpf.Queue {
		panic(invalid("peek"))
	}
	at := int(int64(r[2].n))
	r[2].mem.check(at, int(m.spec.ValueSize))
	if s.emptyQueue {
		return simValue{n: failed}
	}
	r[2].mem.fill(at, m.elements[0].data)
	return simValue{}
}

// field is a word of the context: numbers of the packet where the lists have a field, otherwise data of earlier packets.
func (s *simulator) field(off, size int) simValue {
	pointers := map[int]int{0: s.packet.from, 4: s.packet.to, 8: s.packet.from}
	if s.hook == ebpf.Tracing {
		if off != 0 || size != 8 {
			panic(invalid("argument"))
		}
		return simValue{mem: s.buffer}
	}
	if s.hook == ebpf.SchedCLS {
		pointers = map[int]int{76: s.packet.from, 80: s.packet.to, 140: s.packet.from}
	}
	if at, ok := pointers[off]; ok && size == 4 {
		return simValue{mem: s.packet, n: uint64(at)}
	}
	var raw [8]byte
	copy(raw[:], s.context.data[off:off+size])
	return simValue{n: binary.LittleEndian.Uint64(raw[:])}
}
