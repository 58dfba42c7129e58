package machine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa"
	"github.com/xdpmon/xdpmon/loader/pisa/machine"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// TestDamagedPrograms: any sequence of instructions gives a report or an error, never a panic.
func TestDamagedPrograms(t *testing.T) {
	t.Logf("seed %d", *machine.RandomSeed)
	objects, err := filepath.Glob("../testdata/*.o")
	if err != nil || len(objects) == 0 {
		t.Fatal("no objects", err)
	}
	r := rand.New(rand.NewPCG(*machine.RandomSeed, 7))
	for _, object := range objects {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
			alone := *spec // proving the object's other programs again would find nothing
			program := spec.Programs[name].Copy()
			alone.Programs = map[string]*ebpf.ProgramSpec{name: program}
			whole := program.Instructions
			for range 40 {
				program.Instructions = damage(r, whole)
				checkAnswer(t, &alone, program.Instructions)
			}
		}
	}
}

func checkAnswer(t *testing.T, spec *ebpf.CollectionSpec, insns asm.Instructions) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v\n%v", p, insns)
		}
	}()
	report, err := pisa.ProveWithin(spec, 5000)
	known := err == nil || errors.Is(err, rule.ErrMemoryRules) || errors.Is(err, rule.ErrMalformed) || errors.Is(err, rule.ErrTooComplex)
	if !known || err == nil && report == nil {
		t.Fatalf("report %v, error %v", report, err)
	}
}

// damage changes one to four things about a program.
func damage(r *rand.Rand, whole asm.Instructions) asm.Instructions {
	out := slices.Clone(whole)
	for n := 1 + r.IntN(4); n > 0 && len(out) > 0; n-- {
		i := r.IntN(len(out))
		switch r.IntN(9) {
		case 0:
			out[i].OpCode = asm.OpCode(r.Uint32N(1 << 18))
		case 1:
			out[i].OpCode = whole[r.IntN(len(whole))].OpCode
		case 2:
			out[i].Dst = asm.Register(r.IntN(16))
		case 3:
			out[i].Src = asm.Register(r.IntN(16))
		case 4:
			out[i].Offset = int16(r.Uint32())
		case 5:
			out[i].Constant = int64(r.Uint64() >> r.IntN(64))
		case 6:
			out = slices.Delete(out, i, i+1)
		case 7:
			out = slices.Insert(out, i, whole[r.IntN(len(whole))])
		case 8:
			out = out[:i]
		}
	}
	return out
}

// FuzzInstructions proves the program that random bytes decode to.
func FuzzInstructions(f *testing.F) {
	for i := range uint64(20) {
		var raw bytes.Buffer
		insns := slices.DeleteFunc(machine.RandomProgram(rand.New(rand.NewPCG(3, i)), machine.RandomArrays), func(ins asm.Instruction) bool {
			return ins.Reference() == "add"
		})
		if err := insns.Marshal(&raw, binary.LittleEndian); err == nil {
			f.Add(raw.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		insns, err := asm.AppendInstructions(nil, bytes.NewReader(raw), binary.LittleEndian, "linux")
		if err != nil {
			return
		}
		for i := range insns {
			if insns[i].IsLoadFromMap() {
				insns[i] = insns[i].WithReference(machine.ArrayName(int(uint64(insns[i].Constant) % 4)))
			}
		}
		checkAnswer(t, machine.RandomSpec(insns, machine.RandomArrays), insns)
	})
}
