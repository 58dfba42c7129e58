package machine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/code"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
)

// wild writes random programs that use every helper and every kind of map of the lists, mostly as intended.
//
// The context is in r6, numbers are in r7 to r9, pointers to elements and records in slots of the stack, the vector's in the
// last of them.
type wild struct {
	*rand.Rand
	out       asm.Instructions
	functions asm.Instructions
	labels    int
	depth     int
	left      int // statements
	tc        bool
	tp        bool
	kinds     [3]string // the map that a slot's pointer was got from last
	errant    int       // one in errant decisions is a deliberate misuse
}

const (
	wildVector  = -40
	wildNumbers = -56 // two
	wildLoop    = -64 // and below, by depth
	wildBuffer  = -128
	wildBytes   = 32
	wildRounds  = -136
)

func wildSlot(i int) int16 { return int16(-16 - 8*i) }

func (w *wild) emit(ins ...asm.Instruction)  { w.out = append(w.out, ins...) }
func (w *wild) label() string                { w.labels++; return fmt.Sprintf("w%d", w.labels) }
func (w *wild) place(label string)           { w.emit(asm.Mov.Imm(asm.R5, 0).WithSymbol(label)) }
func (w *wild) number() asm.Register         { return asm.R7 + asm.Register(w.IntN(3)) }
func (w *wild) errs() bool                   { return w.IntN(w.errant) == 0 }
func (w *wild) oneOf(names ...string) string { return names[w.IntN(len(names))] }

func (w *wild) table(r asm.Register, name string) { w.emit(asm.LoadMapPtr(r, 0).WithReference(name)) }

// frame puts the address of a byte of the stack into a register.
func (w *wild) frame(r asm.Register, off int) {
	w.emit(asm.Mov.Reg(r, asm.R10), asm.Add.Imm(r, int32(off)))
}

func (w *wild) back() { w.emit(asm.Return()) }

// verdict ends the program.
func (w *wild) verdict() {
	codes := []int32{0, 1, 2}
	if w.tc {
		codes = []int32{-1, 0, 2}
	} else if w.tp {
		codes = []int32{0}
	}
	if w.errs() {
		codes = append(codes, 1, 3, 4, 7)
	}
	w.emit(asm.Mov.Imm(asm.R0, codes[w.IntN(len(codes))]))
	if w.errs() {
		w.emit(asm.Mov.Reg(asm.R0, w.number()))
	}
	w.back()
}

// wildProgram is a whole program.
func wildProgram(r *rand.Rand) *ebpf.ProgramSpec {
	w := &wild{Rand: r, left: 3 + r.IntN(20), tc: r.IntN(3) == 0, errant: 4 + r.IntN(60)}
	w.tp = !w.tc && r.IntN(3) == 0
	w.emit(asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R0, 0))
	for i := range w.kinds {
		w.emit(asm.StoreMem(asm.R10, wildSlot(i), asm.R0, asm.DWord))
	}
	w.emit(asm.StoreMem(asm.R10, wildNumbers, asm.R0, asm.DWord), asm.StoreMem(asm.R10, wildNumbers+8, asm.R0, asm.DWord))
	if r.IntN(2) == 0 {
		for off := int16(0); off < wildBytes; off += 8 {
			w.emit(asm.StoreMem(asm.R10, wildBuffer+off, asm.R0, asm.DWord))
		}
	}
	w.emit(asm.StoreImm(asm.R10, -8, 0, asm.Word))
	w.frame(asm.R2, -8)
	w.table(asm.R1, declared.VectorName)
	w.emit(asm.FnMapLookupElem.Call(), asm.JNE.Imm(asm.R0, 0, "begin"), asm.Mov.Imm(asm.R0, 0))
	w.back()
	w.emit(asm.StoreMem(asm.R10, wildVector, asm.R0, asm.DWord).WithSymbol("begin"))
	for n := asm.R7; n <= asm.R9; n++ {
		w.field(n)
	}
	w.block()
	w.ending()
	w.verdict()
	spec := &ebpf.ProgramSpec{Name: "wild", Type: ebpf.XDP, Instructions: append(w.out, w.functions...)}
	if w.tc {
		spec.Type = ebpf.SchedCLS
	} else if w.tp {
		spec.Type, spec.AttachType, spec.AttachTo = ebpf.Tracing, ebpf.AttachTraceRawTp, "net_dev_start_xmit"
	}
	return spec
}

func (w *wild) block() {
	for n := 1 + w.IntN(6); n > 0 && w.left > 0; n-- {
		w.left--
		w.statement()
	}
}

// statements are what a program may consist of; set in init, since some consist of statements.
var statements []func(*wild)

func init() {
	statements = []func(*wild){
		(*wild).calculate, (*wild).spill, (*wild).readField, (*wild).lookup, (*wild).lookup, (*wild).lookup, (*wild).use, (*wild).use,
		(*wild).use, (*wild).useVector, (*wild).count, (*wild).generate, (*wild).packetBytes, (*wild).loadBytes, (*wild).loadBytes,
		(*wild).checksum, (*wild).storeBytes, (*wild).report, (*wild).record, (*wild).update, (*wild).peek, (*wild).simple,
		(*wild).constant, (*wild).inner, (*wild).branch, (*wild).branch, (*wild).branch, (*wild).rounds, (*wild).callback,
		(*wild).forEach, (*wild).scratch, (*wild).buffer, (*wild).function,
	}
}

func (w *wild) statement() { statements[w.IntN(len(statements))](w) }

func (w *wild) readField() { w.field(w.number()) }

// field reads a number of the context.
func (w *wild) field(r asm.Register) {
	fields := []int16{12, 16}
	if w.tp {
		w.buffered(r, w.oneOf("sk_buff.len", "sk_buff.len", "sk_buff.mark", "sk_buff.data"))
		return
	}
	if w.tc {
		fields = []int16{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 68, 160, 164, 176}
	}
	w.emit(asm.LoadMem(r, asm.R6, fields[w.IntN(len(fields))], asm.Word))
}

func (w *wild) calculate() {
	ops := []asm.ALUOp{asm.Add, asm.And, asm.Xor, asm.Sub, asm.Mul, asm.Or, asm.RSh}
	op := ops[w.IntN(len(ops))]
	switch w.IntN(4) {
	case 0:
		w.emit(op.Reg(w.number(), w.number()))
		if op == asm.RSh {
			w.out[len(w.out)-1] = asm.RSh.Imm(w.number(), 3)
		}
	case 1:
		w.emit(asm.Mov.Imm(w.number(), int32(w.IntN(6))))
	case 2:
		w.emit(op.Imm32(w.number(), int32(1+w.IntN(7))))
	default:
		w.emit(op.Imm(w.number(), int32(1+w.IntN(7))))
	}
}

func (w *wild) spill() {
	off := int16(wildNumbers + 8*w.IntN(2))
	if w.errs() {
		off = int16(-256 + 8*w.IntN(8)) // never written
	}
	if w.IntN(2) == 0 && off >= wildNumbers {
		w.emit(asm.StoreMem(asm.R10, off, w.number(), asm.DWord))
		return
	}
	w.emit(asm.LoadMem(w.number(), asm.R10, off, asm.DWord))
}

// key puts an index into the stack.
func (w *wild) key(below int32) {
	w.emit(asm.Mov.Reg(asm.R1, w.number()))
	if w.IntN(5) > 0 {
		w.emit(asm.And.Imm(asm.R1, below-1))
	}
	w.emit(asm.StoreMem(asm.R10, -8, asm.R1, asm.Word), asm.StoreImm(asm.R10, -4, 0, asm.Word))
	w.frame(asm.R2, -8)
}

var wildElements = []string{"reg0", "reg0", "reg1", "reg2", "reg2", "reg3", "pairs", "pairs", "row", "row", "tally", "table", "hashes", "prefixes", "trie", "cores", "queue"}

// lookup keeps a pointer to an element.
func (w *wild) lookup() {
	name := wildElements[w.IntN(len(wildElements)-1)]
	w.key(4)
	w.table(asm.R1, name)
	i := w.IntN(len(w.kinds))
	w.kinds[i] = name
	w.emit(asm.FnMapLookupElem.Call(), asm.StoreMem(asm.R10, wildSlot(i), asm.R0, asm.DWord))
}

// with runs some operations with the pointer of a slot in r1, if there is one.
func (w *wild) with(i int, then func()) {
	skip := w.label()
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildSlot(i), asm.DWord), asm.JEq.Imm(asm.R1, 0, skip))
	then()
	w.place(skip)
}

func (w *wild) use() {
	i := w.IntN(len(w.kinds))
	w.with(i, func() {
		for n := 1 + w.IntN(2); n > 0; n-- {
			w.operation(w.kinds[i])
		}
	})
}

func (w *wild) operation(kind string) {
	off, size := int16(4*w.IntN(2)), asm.Word
	if w.IntN(3) == 0 {
		off, size = 0, asm.DWord
	}
	if kind == "pairs" || kind == "row" {
		off += int16(8 * w.IntN(2))
	}
	read := kind == "table" || kind == "hashes" || kind == "prefixes" || kind == "trie" || kind == "cores" || kind == "inner" || kind == "record" && w.errs()
	if kind == "tally" && !w.errs() {
		w.emit(asm.Mov.Reg(asm.R2, w.number()), asm.FetchAdd.Mem(asm.R1, asm.R2, size, off))
		return
	}
	switch k := w.IntN(6); {
	case kind == "record" && !read:
		w.emit(asm.StoreMem(asm.R1, off, w.number(), size))
	case read || k < 2:
		w.emit(asm.LoadMem(w.number(), asm.R1, off, size))
	case k == 2:
		w.emit(asm.StoreMem(asm.R1, off, w.number(), size))
	case k == 3:
		w.emit(asm.Mov.Imm(asm.R0, 0), asm.CmpXchg.Mem(asm.R1, w.number(), size, off), asm.Mov.Reg(w.number(), asm.R0))
	default:
		w.emit(asm.Mov.Reg(asm.R2, w.number()), asm.FetchAdd.Mem(asm.R1, asm.R2, size, off), asm.Mov.Reg(w.number(), asm.R2))
	}
}

// useVector reads a header field or writes what an algorithm may write.
func (w *wild) useVector() {
	v := &wildEnv().Vector
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildVector, asm.DWord))
	header := int16(4 * (6 + w.IntN(8)))
	switch k := w.IntN(8); {
	case k < 4:
		w.emit(asm.LoadMem(w.number(), asm.R1, header, asm.Word))
	case w.errs():
		w.emit(asm.StoreMem(asm.R1, header, w.number(), asm.Word))
	case w.errs():
		w.emit(asm.LoadMem(w.number(), asm.R1, int16(v.Carry.Off), asm.DWord))
	case w.errs():
		w.emit(asm.StoreMem(asm.R1, int16(v.Pass), w.number(), asm.Byte))
	default:
		word := v.Writable[w.IntN(len(v.Writable))]
		switch {
		case word.Off == v.Pass || word.Off == v.Next:
			w.emit(asm.LoadMem(w.number(), asm.R1, int16(word.Off), asm.Byte))
		case word.Size == 1:
			w.emit(asm.StoreMem(asm.R1, int16(word.Off), w.number(), asm.Byte))
		default:
			w.emit(asm.StoreMem(asm.R1, int16(word.Off), w.number(), asm.DWord))
		}
	}
}

// count adds to a counter of this packet's bank.
func (w *wild) count() {
	skip := w.label()
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildVector, asm.DWord), asm.LoadMem(asm.R1, asm.R1, int16(wildEnv().Vector.Bank), asm.Byte),
		asm.StoreMem(asm.R10, -8, asm.R1, asm.Word))
	w.frame(asm.R2, -8)
	w.table(asm.R1, "counts")
	off := int16(8 * w.IntN(4))
	w.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, skip), asm.LoadMem(asm.R1, asm.R0, off, asm.DWord))
	switch {
	case w.errs():
		w.emit(asm.Mov.Reg(w.number(), asm.R1))
	case w.errs():
		w.emit(asm.Mov.Reg(asm.R1, w.number()))
	}
	w.emit(asm.Add.Reg(asm.R1, w.number()), asm.StoreMem(asm.R0, off, asm.R1, asm.DWord))
	w.place(skip)
}

// generate draws a bit from the program's own generator.
func (w *wild) generate() {
	skip, same, again, n := w.label(), w.label(), w.label(), w.number()
	w.emit(asm.StoreImm(asm.R10, -8, 0, asm.Word))
	w.frame(asm.R2, -8)
	w.table(asm.R1, "generator")
	w.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, skip), asm.StoreMem(asm.R10, -72, asm.R0, asm.DWord),
		asm.LoadMem(n, asm.R0, 0, asm.Word), asm.Mov.Reg(asm.R1, n), asm.And.Imm(asm.R1, 3))
	w.emit(asm.JNE.Imm(asm.R1, 0, same), asm.FnGetPrandomU32.Call(), asm.Mov.Reg(n, asm.R0))
	w.place(same)
	w.emit(asm.Mov.Reg(asm.R1, n), asm.LSh.Imm32(asm.R1, int32(1+w.IntN(20))), asm.Xor.Reg32(n, asm.R1),
		asm.Mov.Reg32(asm.R1, n), asm.RSh.Imm32(asm.R1, int32(1+w.IntN(20))), asm.Xor.Reg32(n, asm.R1))
	switch {
	case w.errs():
		w.emit(asm.Mov.Imm(n, 5), asm.JNE.Imm(w.number(), 1, again), asm.FnGetPrandomU32.Call(), asm.Mov.Reg(n, asm.R0))
		w.place(again)
		w.emit(asm.Mov.Reg(asm.R1, n), asm.LSh.Imm32(asm.R1, 13), asm.Xor.Reg32(n, asm.R1))
	case w.errs():
		w.emit(asm.Add.Imm32(n, 1))
	case w.errs():
		w.emit(asm.Xor.Reg32(n, w.number()))
	}
	w.emit(asm.LoadMem(asm.R0, asm.R10, -72, asm.DWord), asm.StoreMem(asm.R0, 0, n, asm.Word))
	w.place(skip)
}

// buffered reads a field of the socket buffer at a trace point.
func (w *wild) buffered(r asm.Register, name string) {
	size := asm.Word
	if name == "sk_buff.data" {
		size = asm.DWord
	}
	load := asm.LoadMem(r, r, 0, size)
	if !w.errs() {
		load = btf.WithCORERelocationMetadata(load, wildFields().relocations[name])
	}
	w.emit(asm.LoadMem(r, asm.R6, 0, asm.DWord), load)
}

// packetBytes reads or writes the packet directly.
func (w *wild) packetBytes() {
	if w.tp {
		w.loadBytes()
		return
	}
	skip, data, end := w.label(), int16(0), int16(4)
	if w.tc {
		data, end = 76, 80
	}
	off := int16(w.IntN(12))
	w.emit(asm.LoadMem(asm.R1, asm.R6, data, asm.Word), asm.LoadMem(asm.R2, asm.R6, end, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R1), asm.Add.Imm(asm.R3, int32(off)+4), asm.JGT.Reg(asm.R3, asm.R2, skip))
	if w.IntN(3) == 0 {
		w.emit(asm.StoreMem(asm.R1, off, w.number(), asm.Word))
	} else {
		w.emit(asm.LoadMem(w.number(), asm.R1, off, asm.Word))
	}
	w.place(skip)
}

// loadBytes fetches bytes of the packet into the buffer and reads some of it, perhaps without looking at the result.
func (w *wild) loadBytes() {
	fn, skip := asm.FnXdpLoadBytes, w.label()
	if w.tc {
		fn = asm.FnSkbLoadBytes
	}
	size := int32(4 * (1 + w.IntN(4)))
	w.emit(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Reg(asm.R2, w.number()), asm.And.Imm(asm.R2, 63))
	w.frame(asm.R3, wildBuffer)
	w.emit(asm.Mov.Imm(asm.R4, size))
	if w.IntN(4) == 0 {
		w.emit(asm.Mov.Reg(asm.R4, w.number()), asm.And.Imm(asm.R4, 15), asm.Add.Imm(asm.R4, 1))
	}
	if w.tp { // the same bytes, in another order of arguments
		fn = asm.FnProbeReadKernel
		w.buffered(asm.R5, "sk_buff.data")
		w.emit(asm.Mov.Reg(asm.R1, asm.R3), asm.Mov.Reg(asm.R3, asm.R5))
		if !w.errs() {
			w.emit(asm.Add.Reg(asm.R3, asm.R2))
		}
		w.emit(asm.Mov.Reg(asm.R2, asm.R4))
	}
	w.emit(fn.Call())
	if w.IntN(4) > 0 {
		w.emit(asm.JNE.Imm(asm.R0, 0, skip))
	}
	at := int16(4 * w.IntN(int(size)/4))
	if w.errs() {
		at = 16
	}
	w.emit(asm.LoadMem(w.number(), asm.R10, wildBuffer+at, asm.Word))
	w.place(skip)
	if w.errs() {
		w.emit(asm.Mov.Reg(w.number(), asm.R0))
	}
}

// memory is something to hand to a helper: the buffer, an element or a record. It runs then with its address in a register.
func (w *wild) memory(r asm.Register, then func()) {
	if w.IntN(3) > 0 {
		w.emit(asm.StoreMem(asm.R10, wildBuffer, w.number(), asm.DWord))
		w.frame(r, wildBuffer)
		then()
		return
	}
	w.with(w.IntN(len(w.kinds)), func() {
		if r != asm.R1 {
			w.emit(asm.Mov.Reg(r, asm.R1))
		}
		then()
	})
}

// size is the length of what is handed over: 8 bytes are written of the buffer, and elements have 8.
func (w *wild) size(r asm.Register) {
	size := int32(8)
	if w.errs() {
		size = 16
	}
	w.emit(asm.Mov.Imm(r, size))
}

func (w *wild) checksum() {
	w.memory(asm.R3, func() {
		w.size(asm.R4)
		w.emit(asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R5, w.number()), asm.FnCsumDiff.Call(),
			asm.Mov.Reg(w.number(), asm.R0))
	})
}

func (w *wild) storeBytes() {
	if w.tp {
		w.loadBytes()
		return
	}
	fn := asm.FnXdpStoreBytes
	if w.tc {
		fn = asm.FnSkbStoreBytes
	}
	w.memory(asm.R3, func() {
		w.size(asm.R4)
		w.emit(asm.Mov.Reg(asm.R2, w.number()), asm.And.Imm(asm.R2, 31), asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R5, 0), fn.Call())
		if w.IntN(3) == 0 {
			w.emit(asm.Mov.Reg(w.number(), asm.R0))
		}
	})
}

// answered counts the result of a ring.
func (w *wild) answered() {
	skip := w.label()
	w.emit(asm.JEq.Imm(asm.R0, 0, skip))
	if w.errs() {
		w.statement()
	} else {
		w.count()
	}
	w.place(skip)
	if w.errs() {
		w.emit(asm.Mov.Reg(w.number(), asm.R0))
	}
}

func (w *wild) report() {
	if w.IntN(2) == 0 {
		w.memory(asm.R2, func() {
			w.size(asm.R3)
			w.table(asm.R1, "ring")
			w.emit(asm.Mov.Imm(asm.R4, 0), asm.FnRingbufOutput.Call())
			w.answered()
		})
		return
	}
	w.memory(asm.R4, func() {
		w.size(asm.R5)
		w.table(asm.R2, "events")
		w.emit(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R3, -1), asm.FnPerfEventOutput.Call())
		w.answered()
	})
}

// record reserves one, writes it, and ends it.
func (w *wild) record() {
	skip, i, n := w.label(), w.IntN(len(w.kinds)), w.number()
	w.table(asm.R1, "ring")
	w.emit(asm.Mov.Imm(asm.R2, 16), asm.Mov.Imm(asm.R3, 0), asm.FnRingbufReserve.Call(), asm.JEq.Imm(asm.R0, 0, skip),
		asm.StoreMem(asm.R10, wildSlot(i), asm.R0, asm.DWord), asm.StoreMem(asm.R0, 0, n, asm.DWord))
	w.kinds[i] = "record"
	if w.errs() {
		w.statement()
	}
	fn := asm.FnRingbufSubmit
	if w.IntN(2) == 0 {
		fn = asm.FnRingbufDiscard
	}
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildSlot(i), asm.DWord), asm.Mov.Imm(asm.R2, 0), fn.Call(),
		asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.R10, wildSlot(i), asm.R0, asm.DWord))
	w.place(skip)
}

func (w *wild) update() {
	w.memory(asm.R3, func() {
		w.emit(asm.Mov.Reg(asm.R1, w.number()), asm.And.Imm(asm.R1, 3), asm.StoreMem(asm.R10, -8, asm.R1, asm.Word))
		w.frame(asm.R2, -8)
		w.table(asm.R1, w.oneOf("reg0", "reg1", "reg2", "reg3", "pairs", "row"))
		w.emit(asm.Mov.Imm(asm.R4, int32(w.IntN(3))), asm.FnMapUpdateElem.Call())
		if w.IntN(3) == 0 {
			w.emit(asm.Mov.Reg(w.number(), asm.R0))
		}
	})
}

func (w *wild) peek() {
	skip := w.label()
	w.table(asm.R1, "queue")
	w.frame(asm.R2, wildBuffer)
	w.emit(asm.FnMapPeekElem.Call())
	if !w.errs() {
		w.emit(asm.JNE.Imm(asm.R0, 0, skip))
	}
	w.emit(asm.LoadMem(w.number(), asm.R10, wildBuffer, asm.DWord))
	w.place(skip)
}

// simple helpers give a number, or change the packet.
func (w *wild) simple() {
	switch k := w.IntN(5); {
	case k == 0:
		w.emit(asm.FnKtimeGetNs.Call())
	case k == 1:
		w.emit(asm.FnGetPrandomU32.Call())
	case k == 2:
		w.emit(asm.FnGetSmpProcessorId.Call())
	case w.tp:
		w.emit(asm.FnKtimeGetNs.Call())
	case !w.tc:
		w.emit(asm.Mov.Reg(asm.R1, asm.R6), asm.FnXdpGetBuffLen.Call())
	case k == 3:
		fn := asm.FnL3CsumReplace
		if w.IntN(2) == 0 {
			fn = asm.FnL4CsumReplace
		}
		w.emit(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, int32(w.IntN(8))), asm.Mov.Reg(asm.R3, w.number()), asm.Mov.Reg(asm.R4, w.number()),
			asm.Mov.Imm(asm.R5, 2), fn.Call())
	default:
		w.emit(asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 8))
		w.emit([]asm.BuiltinFunc{asm.FnSkbPullData, asm.FnSkbEcnSetCe}[w.IntN(2)].Call())
	}
	w.emit(asm.Mov.Reg(w.number(), asm.R0))
}

func (w *wild) constant() {
	w.emit(asm.LoadMapValue(asm.R1, 0, uint32(4*w.IntN(2))).WithReference(".rodata"), asm.LoadMem(w.number(), asm.R1, 0, asm.Word))
}

// inner looks something up in a table inside of a table.
func (w *wild) inner() {
	skip, i := w.label(), w.IntN(len(w.kinds))
	w.key(2)
	w.table(asm.R1, "halves")
	w.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, skip), asm.Mov.Reg(asm.R1, asm.R0))
	w.frame(asm.R2, -8)
	w.emit(asm.FnMapLookupElem.Call(), asm.StoreMem(asm.R10, wildSlot(i), asm.R0, asm.DWord))
	w.kinds[i] = "inner"
	w.place(skip)
}

func (w *wild) branch() {
	if w.depth > 3 {
		return
	}
	other, end := w.label(), w.label()
	ops := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JLT, asm.JSet, asm.JSGT}
	w.emit(ops[w.IntN(len(ops))].Imm(w.number(), int32(w.IntN(4)), other))
	w.depth++
	w.block()
	if w.IntN(10) == 0 {
		w.verdict()
	} else {
		w.emit(asm.Ja.Label(end))
	}
	w.place(other)
	if w.IntN(2) == 0 {
		w.block()
	}
	w.depth--
	w.place(end)
}

// rounds is a loop over an iterator.
func (w *wild) rounds() {
	if w.depth > 1 {
		return
	}
	head, end := w.label(), w.label()
	at := wildRounds - 8*w.depth
	kernel := func(name string) {
		w.emit(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: -1}.WithReference(name))
	}
	w.frame(asm.R1, at)
	w.emit(asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 2))
	if w.IntN(2) == 0 {
		w.emit(asm.Mov.Reg(asm.R3, w.number()), asm.And.Imm(asm.R3, 3))
	}
	kernel("bpf_iter_num_new")
	w.place(head)
	w.frame(asm.R1, at)
	kernel("bpf_iter_num_next")
	w.emit(asm.JEq.Imm(asm.R0, 0, end), asm.LoadMem(w.number(), asm.R0, 0, asm.Word))
	w.depth++
	w.block()
	w.depth--
	w.emit(asm.Ja.Label(head))
	w.place(end)
	w.frame(asm.R1, at)
	kernel("bpf_iter_num_destroy")
}

// aside writes a separate function: body emits into its instructions.
func (w *wild) aside(name string, body func()) {
	out := w.out
	w.out = nil
	w.emit(asm.Mov.Imm(asm.R0, 0).WithSymbol(name))
	body()
	w.emit(asm.Mov.Imm(asm.R0, 0))
	w.back()
	w.functions = append(w.functions, w.out...)
	w.out = out
}

// callback is bpf_loop over a function that changes a number of the caller's, and sometimes touches an element.
func (w *wild) callback() {
	name := "f" + w.label()
	w.aside(name, func() {
		w.emit(asm.LoadMem(asm.R3, asm.R2, 0, asm.DWord), asm.Add.Reg(asm.R3, asm.R1), asm.StoreMem(asm.R2, 0, asm.R3, asm.DWord))
	})
	w.emit(asm.Mov.Reg(asm.R1, w.number()), asm.And.Imm(asm.R1, 3))
	w.loopOver(asm.FnLoop, name)
}

func (w *wild) loopOver(fn asm.BuiltinFunc, name string) {
	w.emit(asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference(name))
	w.frame(asm.R3, wildNumbers)
	w.emit(asm.Mov.Imm(asm.R4, 0), fn.Call())
	if w.IntN(3) == 0 {
		w.emit(asm.Mov.Reg(w.number(), asm.R0))
	}
}

func (w *wild) forEach() {
	name, over := "f"+w.label(), "table"
	if w.errs() {
		over = "reg0"
	}
	w.aside(name, func() {
		w.emit(asm.LoadMem(asm.R1, asm.R3, 0, asm.DWord), asm.LoadMem(asm.R2, asm.R2, 0, asm.Word), asm.Add.Reg(asm.R1, asm.R2),
			asm.StoreMem(asm.R4, 0, asm.R1, asm.DWord))
	})
	w.table(asm.R1, over)
	w.loopOver(asm.FnForEachMapElem, name)
}

// function adds to an element that it is given.
func (w *wild) function() {
	name, end := "f"+w.label(), w.label()
	w.aside(name, func() {
		w.emit(asm.JEq.Imm(asm.R1, 0, end), asm.FetchAdd.Mem(asm.R1, asm.R2, asm.Word, 0), asm.Mov.Reg(asm.R0, asm.R2), asm.Return())
		w.place(end)
	})
	i := w.IntN(len(w.kinds))
	if k := w.kinds[i]; k != "reg0" && k != "reg1" && k != "reg2" && k != "reg3" && k != "pairs" && k != "row" {
		return
	}
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildSlot(i), asm.DWord), asm.Mov.Reg(asm.R2, w.number()),
		asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoCall, Constant: -1}.WithReference(name),
		asm.Mov.Reg(w.number(), asm.R0))
}

// scratch writes memory of the packet's own and reads it back.
func (w *wild) scratch() {
	skip, off := w.label(), int16(8*w.IntN(4))
	w.emit(asm.StoreImm(asm.R10, -8, 0, asm.Word))
	w.frame(asm.R2, -8)
	w.table(asm.R1, "scratch")
	w.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, skip))
	if w.IntN(8) > 0 {
		w.emit(asm.StoreMem(asm.R0, off, w.number(), asm.DWord))
	}
	n := w.number()
	w.emit(asm.LoadMem(n, asm.R0, off, asm.DWord))
	w.place(skip)
	w.keep(n)
}

// keep writes a number into the packet, where later packets of the comparison can find a difference.
func (w *wild) keep(n asm.Register) {
	skip, data, end := w.label(), int16(0), int16(4)
	if w.tc {
		data, end = 76, 80
	}
	if w.tp || w.IntN(2) == 0 {
		return
	}
	w.emit(asm.LoadMem(asm.R1, asm.R6, data, asm.Word), asm.LoadMem(asm.R2, asm.R6, end, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R1), asm.Add.Imm(asm.R3, 8), asm.JGT.Reg(asm.R3, asm.R2, skip),
		asm.StoreMem(asm.R1, 0, n, asm.DWord))
	w.place(skip)
}

// buffer writes or reads the stack, where the index may be a number.
func (w *wild) buffer() {
	n := w.number()
	w.emit(asm.Mov.Reg(asm.R2, n), asm.And.Imm(asm.R2, 15), asm.Mov.Reg(asm.R1, asm.R10), asm.Add.Reg(asm.R1, asm.R2))
	if w.IntN(2) == 0 {
		w.emit(asm.StoreMem(asm.R1, wildBuffer, w.number(), asm.Byte))
		return
	}
	w.emit(asm.LoadMem(w.number(), asm.R1, wildBuffer, asm.Byte))
}

// ending requests a second pass, or continues the chain, or neither.
func (w *wild) ending() {
	switch w.IntN(4) {
	case 0:
		w.chain()
	case 1:
		if w.tp { // a trace point's program has no verdict to choose
			return
		}
		w.again()
		if w.IntN(2) == 0 {
			w.passOver()
			w.chain()
		}
	}
}

func (w *wild) arrays() (chain, recirc string) {
	if w.tc {
		return "chain_tc", "recirc_tc"
	}
	if w.tp {
		return "chain_tp", ""
	}
	return "chain_xdp", "recirc_xdp"
}

func (w *wild) chain() {
	v := &wildEnv().Vector
	name, _ := w.arrays()
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildVector, asm.DWord), asm.LoadMem(asm.R3, asm.R1, int16(v.Next), asm.Byte), asm.Mov.Reg(asm.R4, asm.R3),
		asm.Add.Imm(asm.R4, 1))
	if w.errs() {
		w.emit(asm.Mov.Reg(asm.R3, w.number()))
	}
	if !w.errs() {
		w.emit(asm.StoreMem(asm.R1, int16(v.Next), asm.R4, asm.Byte))
	}
	w.table(asm.R2, name)
	w.emit(asm.Mov.Reg(asm.R1, asm.R6), asm.FnTailCall.Call())
}

// passOver marks a packet that has had its second pass.
func (w *wild) passOver() {
	v, skip := &wildEnv().Vector, w.label()
	if w.errs() {
		return
	}
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildVector, asm.DWord), asm.LoadMem(asm.R2, asm.R1, int16(v.Pass), asm.Byte),
		asm.JEq.Imm(asm.R2, 0, skip), asm.StoreImm(asm.R1, int16(v.Pass), 2, asm.Byte))
	w.place(skip)
}

// again requests a second pass from the budget and takes it. The first pass writes a word to carry, the second one reads it.
func (w *wild) again() {
	v, skip, second := &wildEnv().Vector, w.label(), w.label()
	_, name := w.arrays()
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildVector, asm.DWord), asm.LoadMem(asm.R2, asm.R1, int16(v.Pass), asm.Byte),
		asm.JEq.Imm(asm.R2, 1, second))
	if !w.errs() {
		w.emit(asm.JNE.Imm(asm.R2, 0, skip))
	}
	if w.IntN(6) > 0 {
		w.emit(asm.StoreMem(asm.R1, int16(v.Carry.Off), w.number(), asm.DWord))
	}
	w.emit(asm.LoadMem(asm.R3, asm.R1, int16(v.Next), asm.Byte), asm.Sub.Imm(asm.R3, 1), asm.And.Imm(asm.R3, 15))
	w.emit(asm.StoreMem(asm.R10, -8, asm.R3, asm.Word))
	w.frame(asm.R2, -8)
	w.table(asm.R1, "recirc_budget")
	w.emit(asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, skip), asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord))
	if !w.errs() {
		w.emit(asm.And.Imm(asm.R1, 1), asm.JEq.Imm(asm.R1, 0, skip), asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord))
	}
	w.emit(asm.Sub.Imm(asm.R1, 1))
	if w.errs() {
		w.emit(asm.Sub.Reg(asm.R1, w.number()))
	}
	w.emit(asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord))
	if w.errs() {
		w.statement()
	}
	w.emit(asm.LoadMem(asm.R1, asm.R10, wildVector, asm.DWord))
	if !w.errs() {
		w.emit(asm.StoreImm(asm.R1, int16(v.Pass), 1, asm.Byte))
	}
	w.emit(asm.LoadMem(asm.R3, asm.R1, int16(v.Next), asm.Byte), asm.Sub.Imm(asm.R3, 1), asm.Mov.Reg(asm.R1, asm.R6))
	w.table(asm.R2, name)
	w.emit(asm.FnTailCall.Call(), asm.Ja.Label(skip))
	w.place(second)
	n := w.number()
	w.emit(asm.LoadMem(n, asm.R1, int16(v.Carry.Off), asm.DWord))
	w.keep(n)
	w.place(skip)
}

// wildMaps are one map of every kind and type that programs may use; layouts are those of the headers.
var wildMaps = sync.OnceValue(func() map[string]*ebpf.MapSpec {
	shipped, err := ebpf.LoadCollectionSpec("../testdata/legal.o")
	if err != nil {
		panic(err)
	}
	one := func(t ebpf.MapType, entries, bytes uint32, tags ...string) *ebpf.MapSpec {
		return &ebpf.MapSpec{Type: t, KeySize: 4, ValueSize: bytes, MaxEntries: entries, Tags: tags}
	}
	out := map[string]*ebpf.MapSpec{
		"reg0":      one(ebpf.Array, 4, 8, "pisa:register", "pisa:stage=0"),
		"reg1":      one(ebpf.Array, 4, 8, "pisa:register", "pisa:stage=0"),
		"reg2":      one(ebpf.Array, 4, 8, "pisa:register", "pisa:stage=1"),
		"reg3":      one(ebpf.PerCPUArray, 4, 8, "pisa:register", "pisa:stage=2"),
		"pairs":     one(ebpf.Array, 4, 16, "pisa:register", "pisa:stage=1", "pisa:arrays=pair0,pair1"),
		"row":       one(ebpf.PerCPUArray, 4, 16, "pisa:register", "pisa:arrays=row2@2,row0@0"),
		"tally":     one(ebpf.PerCPUArray, 4, 8, "pisa:tally", "pisa:stage=3"),
		"counts":    one(ebpf.PerCPUArray, 2, 32, "pisa:counters", "pisa:banked"),
		"generator": one(ebpf.PerCPUArray, 1, 4, "pisa:random"),
		"scratch":   one(ebpf.PerCPUArray, 1, 32, "pisa:scratch"),
		"table":     one(ebpf.Array, 4, 8, "pisa:table"),
		"hashes":    one(ebpf.Hash, 3, 8, "pisa:table"),
		"cores":     one(ebpf.PerCPUHash, 3, 8, "pisa:table"),
		"prefixes":  one(ebpf.LPMTrie, 3, 8, "pisa:table"),
		"trie":      one(ebpf.Array, 4, 8, "pisa:prefix"),
		"queue":     one(ebpf.Queue, 4, 8, "pisa:table"),
		"inner":     one(ebpf.Array, 4, 8),
		"halves":    one(ebpf.ArrayOfMaps, 2, 4, "pisa:table"),
		"ring":      one(ebpf.RingBuf, 4096, 0),
		"events":    one(ebpf.PerfEventArray, 2, 4),
		".rodata":   one(ebpf.Array, 1, 8),
	}
	out["hashes"].KeySize, out["prefixes"].KeySize, out["queue"].KeySize = 8, 8, 0
	out["inner"].Flags, out[".rodata"].Flags = declared.ReadOnlyProgram, declared.ReadOnlyProgram
	out["halves"].InnerMap = out["inner"]
	for _, name := range []string{declared.VectorName, "recirc_budget", "chain_xdp", "chain_tc", "chain_tp", "recirc_xdp", "recirc_tc"} {
		out[name] = shipped.Maps[name]
	}
	for name, m := range out {
		m.Name = name
	}
	return out
})

// wildEnv is the environment of all random programs.
var wildEnv = sync.OnceValue(func() *declared.Collection {
	e, broken, err := declared.Read(&ebpf.CollectionSpec{Maps: wildMaps(), Types: wildFields().types})
	if err != nil || len(broken) > 0 {
		panic(fmt.Sprint(broken, err))
	}
	return e
})

// fieldsOf are the relocations of a program that reads fields of the kernel's memory, by their names.
type fieldsOf struct {
	types       *btf.Spec
	relocations map[string]*btf.CORERelocation
	names       map[*btf.CORERelocation]string
}

var wildFields = sync.OnceValue(func() fieldsOf {
	spec, err := ebpf.LoadCollectionSpec("../testdata/sent.o")
	if err != nil {
		panic(err)
	}
	out := fieldsOf{spec.Types, make(map[string]*btf.CORERelocation), make(map[*btf.CORERelocation]string)}
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			if relo := btf.CORERelocationMetadata(&p.Instructions[i]); relo != nil {
				name := code.FieldName(relo, spec.Types)
				out.relocations[name], out.names[relo] = relo, name
			}
		}
	}
	return out
})

func TestWildMapsAreAll(t *testing.T) {
	seen := make(map[declared.Kind]bool)
	for _, a := range wildEnv().Arrays {
		seen[a.Kind] = true
	}
	for kind := range declared.MapRoles {
		if !seen[kind] {
			t.Errorf("no random program uses a %s", kind)
		}
	}
}
