package machine

import (
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// concrete is a number or a pointer of a running program.
type concrete struct {
	what   byte // 'n' number, 'c' context, 's' stack, 'm' map, 'e' element
	n      uint64
	array  int
	index  int
	lookup int  // which lookup of the packet gave it
	from   uint // arrays that it was calculated from
}

// monitor runs random programs and checks their accesses to registers. It shares no code with the proof.
type monitor struct {
	layout
	insns   asm.Instructions
	labels  map[string]int
	memory  [][4][8]byte
	context [contextWords]uint32
	proof   *watched // must cover every situation of the run; nil: not checked

	lookups int
	top     int
	touched map[int]int // array to lookup
	written map[int]uint8
}

func newMonitor(insns asm.Instructions, l layout) *monitor {
	m := &monitor{layout: l, insns: insns, labels: make(map[string]int), memory: make([][4][8]byte, len(l.stages))}
	for i, ins := range insns {
		if name := ins.Symbol(); name != "" {
			m.labels[name] = i
		}
	}
	return m
}

type activation struct {
	regs  [11]concrete
	stack map[int16]concrete
	back  int
}

// run is one packet; it returns the rule that was broken.
func (m *monitor) run(context [contextWords]uint32) string {
	m.context, m.lookups, m.top = context, 0, -1
	m.touched, m.written = make(map[int]int), make(map[int]uint8)
	var callers []activation
	now := activation{stack: make(map[int16]concrete)}
	now.regs[1] = concrete{what: 'c'}
	now.regs[10] = concrete{what: 's'}
	for pc := 0; ; {
		if m.proof != nil && !m.foreseen(&now, pc, len(callers)) {
			return fmt.Sprintf("the proof does not cover instruction %d with r7 to r9 = %v", pc, now.regs[7:10])
		}
		ins := m.insns[pc]
		pc++
		switch class := ins.OpCode.Class(); {
		case class.IsALU():
			m.alu(&now, ins)
		case class == asm.LdClass:
			var array int
			fmt.Sscanf(ins.Reference(), "array%d", &array)
			now.regs[ins.Dst] = concrete{what: 'm', array: array}
		case class == asm.LdXClass, class == asm.StClass, class == asm.StXClass:
			if broken := m.access(&now, ins); broken != "" {
				return broken
			}
		case ins.OpCode.JumpOp() == asm.Exit:
			if len(callers) == 0 {
				return ""
			}
			result := now.regs[0]
			pc = now.back
			now, callers = callers[len(callers)-1], callers[:len(callers)-1]
			now.regs[0] = result
		case ins.IsFunctionCall():
			callers = append(callers, now)
			next := activation{stack: make(map[int16]concrete), back: pc}
			copy(next.regs[1:6], now.regs[1:6])
			next.regs[10] = concrete{what: 's'}
			now, pc = next, m.labels[ins.Reference()]
		case ins.OpCode.JumpOp() == asm.Call:
			m.lookup(&now)
		default:
			if m.holds(&now, ins) {
				pc = m.labels[ins.Reference()]
			}
		}
	}
}

// foreseen reports whether the proof has covered the current situation.
func (m *monitor) foreseen(a *activation, pc, depth int) bool {
	at := situation{pc: pc, depth: depth, top: m.top}
	for array := range m.touched {
		if m.stages[array] == m.top && m.proof.mentioned(pc, array) {
			at.touched |= 1 << array
			at.written[array] = m.written[array]
		}
	}
	return m.proof.covers(at, [3]uint64{a.regs[7].n, a.regs[8].n, a.regs[9].n})
}

func (m *monitor) alu(a *activation, ins asm.Instruction) {
	src := concrete{what: 'n', n: uint64(ins.Constant)}
	if ins.OpCode.Source() == asm.RegSource {
		src = a.regs[ins.Src]
	}
	dst := &a.regs[ins.Dst]
	if ins.OpCode.ALUOp() == asm.Mov {
		*dst = src
		return
	}
	dst.from |= src.from
	if ins.OpCode.Class() == asm.ALUClass {
		dst.n = uint64(arithmetic32(ins.OpCode.ALUOp(), uint32(dst.n), uint32(src.n)))
		return
	}
	dst.n = arithmetic64(ins.OpCode.ALUOp(), dst.n, src.n)
}

func arithmetic64(op asm.ALUOp, a, b uint64) uint64 {
	switch op {
	case asm.Add:
		return a + b
	case asm.Sub:
		return a - b
	case asm.Mul:
		return a * b
	case asm.And:
		return a & b
	case asm.Or:
		return a | b
	case asm.Xor:
		return a ^ b
	case asm.LSh:
		return a << b
	case asm.RSh:
		return a >> b
	case asm.ArSh:
		return uint64(int64(a) >> b)
	case asm.Div:
		return a / b
	}
	return a % b
}

func arithmetic32(op asm.ALUOp, a, b uint32) uint32 {
	if op == asm.ArSh {
		return uint32(int32(a) >> b)
	}
	return uint32(arithmetic64(op, uint64(a), uint64(b)))
}

func (m *monitor) holds(a *activation, ins asm.Instruction) bool {
	x, k := a.regs[ins.Dst], uint64(ins.Constant)
	if x.what == 'e' {
		x.n = 1 << 32 // not NULL
	}
	switch ins.OpCode.JumpOp() {
	case asm.JEq:
		return x.n == k
	case asm.JNE:
		return x.n != k
	case asm.JGT:
		return x.n > k
	case asm.JLT:
		return x.n < k
	case asm.JSet:
		return x.n&k != 0
	case asm.JSGT:
		return int64(x.n) > int64(k)
	}
	return true
}

func (m *monitor) lookup(a *activation) {
	key := a.stack[int16(a.regs[2].n)]
	index := uint32(key.n)
	m.lookups++
	out := concrete{what: 'e', array: a.regs[1].array, index: int(index), lookup: m.lookups, from: key.from}
	if index > 3 {
		out = concrete{what: 'n', from: key.from}
	}
	a.regs[0] = out
}

// access is a load, a store or an atomic operation.
func (m *monitor) access(a *activation, ins asm.Instruction) string {
	size := ins.OpCode.Size().Sizeof()
	if ins.OpCode.Class() == asm.LdXClass {
		base := a.regs[ins.Src]
		switch base.what {
		case 'c':
			a.regs[ins.Dst] = concrete{what: 'n', n: uint64(m.context[ins.Offset/4])}
		case 's':
			a.regs[ins.Dst] = a.stack[ins.Offset]
			if size == 4 {
				a.regs[ins.Dst].n &= 1<<32 - 1
			}
		case 'e':
			base, off := m.word(base, ins.Offset)
			broken := m.touch(base, off, size, true, false, 0)
			a.regs[ins.Dst] = m.element(base, off, size)
			return broken
		}
		return ""
	}
	base, v := a.regs[ins.Dst], a.regs[ins.Src]
	if ins.OpCode.Class() == asm.StClass {
		v = concrete{what: 'n', n: uint64(ins.Constant)}
	}
	if base.what == 's' {
		if old := a.stack[ins.Offset]; size == 4 && ins.Offset != keySlot {
			v.n = old.n>>32<<32 | v.n&(1<<32-1)
			v.from |= old.from
		}
		a.stack[ins.Offset] = v
		return ""
	}
	base, off := m.word(base, ins.Offset)
	if ins.OpCode.Mode() != asm.AtomicMode {
		m.set(base, off, size, v.n)
		return m.touch(base, off, size, false, true, v.from)
	}
	old := m.element(base, off, size)
	switch {
	case ins.OpCode.AtomicOp() == asm.FetchAdd:
		m.set(base, off, size, old.n+v.n)
		a.regs[ins.Src] = old
	default:
		if a.regs[0].n == old.n {
			m.set(base, off, size, v.n)
		}
		a.regs[0] = old
	}
	return m.touch(base, off, size, true, true, v.from)
}

// word is the array of a map that an access is to, and where in its element.
func (m *monitor) word(base concrete, off int16) (concrete, int16) {
	if m.beside == 1 {
		return base, off
	}
	base.array += int(off / 8)
	return base, off % 8
}

func (m *monitor) element(e concrete, off int16, size int) concrete {
	out := concrete{what: 'n', from: e.from | 1<<e.array}
	for i := range size {
		out.n |= uint64(m.memory[e.array][e.index][int(off)+i]) << (8 * i)
	}
	return out
}

func (m *monitor) set(e concrete, off int16, size int, n uint64) {
	for i := range size {
		m.memory[e.array][e.index][int(off)+i] = byte(n >> (8 * i))
	}
}

// touch checks one access of a run by the memory rules in docs/memory-rules.md.
func (m *monitor) touch(e concrete, off int16, size int, read, write bool, value uint) string {
	stage := m.stages[e.array]
	first, before := m.touched[e.array]
	bytes := uint8(1<<size-1) << off
	switch {
	case stage < m.top:
		return fmt.Sprintf("array %d of stage %d after stage %d", e.array, stage, m.top)
	case before && first != e.lookup:
		return fmt.Sprintf("a second element of array %d", e.array)
	case m.written[e.array]&bytes != 0:
		return fmt.Sprintf("a word of array %d after its write", e.array)
	}
	for other, s := range m.stages {
		if other != e.array && s == stage && (e.from|value)&(1<<other) != 0 {
			return fmt.Sprintf("array %d feeds array %d", other, e.array)
		}
	}
	m.touched[e.array], m.top = e.lookup, stage
	if write {
		m.written[e.array] |= bytes
	}
	return ""
}
