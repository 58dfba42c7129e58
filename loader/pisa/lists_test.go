package pisa

import (
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// exercised is what proven programs have used of the lists.
type exercised struct {
	helpers  map[asm.BuiltinFunc]bool
	kernel   map[string]bool
	fields   map[string]bool
	verdicts map[string]bool
	types    map[Kind]map[ebpf.MapType]bool
	proven   int
}

// exercise proves each program of an object alone and notes what those that keep the rules have used.
func (x *exercised) exercise(t *testing.T, object string) {
	spec := loadSpec(t, object)
	for name, p := range spec.Programs {
		spec := only(t, object, name)
		if _, err := Prove(spec); err != nil {
			continue
		}
		x.proven++
		e, _, err := newEnv(spec)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newMachine(e, p, name, stepLimit)
		if err != nil {
			t.Fatal(err)
		}
		m.watch = func(s *state) { x.note(m, s) }
		if err := m.prove(); err != nil {
			t.Fatal(err)
		}
	}
}

// note looks at a state before its instruction.
func (x *exercised) note(m *machine, s *state) {
	in := &m.prog.insns[s.pc]
	switch {
	case in.IsBuiltinCall():
		x.helpers[asm.BuiltinFunc(in.Constant)] = true
	case in.IsKfuncCall():
		x.kernel[in.Reference()] = true
	case in.array >= 0:
		a := m.env.arrays[in.array]
		if x.types[a.kind] == nil {
			x.types[a.kind] = make(map[ebpf.MapType]bool)
		}
		x.types[a.kind][a.spec.Type] = true
	case in.OpCode.Class() == asm.LdXClass && s.regs[in.Src].base == inContext:
		off, _ := m.contextOffset(m.displace(s.regs[in.Src], in))
		f, _ := m.hook.fieldAt(off, in.OpCode.Size().Sizeof())
		x.fields[m.prog.hook.String()+" "+f.name] = true
	case in.OpCode.JumpOp() == asm.Exit && s.depth() == 0:
		for _, v := range m.hook.verdicts {
			if code := s.facts.spanOf(m.nodes.truncate(m.asNumber(s.regs[0]), 32)); code.lo <= uint64(v.code) && uint64(v.code) <= code.hi {
				x.verdicts[m.prog.hook.String()+" "+v.name] = true
			}
		}
	}
}

// TestListsAreTested: every entry has its reason, and a program that is proven uses it. An entry without either is easily wrong.
func TestListsAreTested(t *testing.T) {
	x := exercised{make(map[asm.BuiltinFunc]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool),
		make(map[Kind]map[ebpf.MapType]bool), 0}
	objects, err := filepath.Glob("testdata/*.o")
	if err != nil || len(objects) == 0 {
		t.Fatal("no objects", err)
	}
	for _, object := range objects {
		x.exercise(t, object)
	}
	t.Logf("%d programs of testdata are proven", x.proven)
	for fn, h := range helpers {
		if h.why == "" || !x.helpers[fn] {
			t.Errorf("%s: reason %q, used by a proven program: %t", helperName(fn), h.why, x.helpers[fn])
		}
	}
	for name, why := range kernelFunctions {
		if why == "" || !x.kernel[name] {
			t.Errorf("%s: reason %q, used by a proven program: %t", name, why, x.kernel[name])
		}
	}
	x.checkHooks(t)
	x.checkRoles(t)
	for fn, r := range refusedHelpers {
		if _, listed := helpers[fn]; listed || r.why == "" || remedies[r.code] == "" {
			t.Errorf("%s is on two lists, or refused without a reason", helperName(fn))
		}
	}
}

func (x *exercised) checkHooks(t *testing.T) {
	for kind, h := range hooks {
		for _, f := range h.fields {
			if f.why == "" || !x.fields[kind.String()+" "+f.name] {
				t.Errorf("%s: field %s: reason %q, read by a proven program: %t", kind, f.name, f.why, x.fields[kind.String()+" "+f.name])
			}
		}
		for _, v := range h.verdicts {
			if v.why == "" || !x.verdicts[kind.String()+" "+v.name] {
				t.Errorf("%s: %s: reason %q, returned by a proven program: %t", kind, v.name, v.why, x.verdicts[kind.String()+" "+v.name])
			}
		}
		if h.why == "" {
			t.Errorf("%s has no reason", kind)
		}
	}
}

// checkRoles: a type of map that a kind may have is used by a proven program, in this kind or in one that may do more.
func (x *exercised) checkRoles(t *testing.T) {
	for kind, role := range mapRoles {
		if role.why == "" {
			t.Errorf("%s has no reason", kind)
		}
		for _, mapType := range role.types {
			if !x.types[kind][mapType] && !(kind == Untagged && (x.types[Table][mapType] || mapType == ebpf.ProgramArray)) {
				t.Errorf("no proven program uses a %s that is a %s", kind, mapType)
			}
		}
	}
	for name, kind := range sharedMaps {
		if _, ok := mapRoles[kind]; !ok {
			t.Errorf("%s is a %s, which has no role", name, kind)
		}
	}
}
