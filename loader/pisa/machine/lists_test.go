package machine

import (
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
	"github.com/xdpmon/xdpmon/loader/pisa/state"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// exercised is the part of the lists that proven programs have used.
type exercised struct {
	helpers  map[asm.BuiltinFunc]bool
	kernel   map[string]bool
	fields   map[string]bool
	written  map[string]bool
	shown    map[string]bool // of the kernel's memory
	verdicts map[string]bool
	types    map[declared.Kind]map[ebpf.MapType]bool
	proven   int
}

// exercise proves each program of an object alone and notes the list entries that proven ones use.
func (x *exercised) exercise(t *testing.T, object string) {
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range spec.Programs {
		e, broken, err := declared.Read(spec)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Prove(e, p, name, StepLimit); err != nil || len(broken)+len(m.Found) > 0 {
			continue
		}
		x.proven++
		m, err := newMachine(e, p, name, StepLimit)
		if err != nil {
			t.Fatal(err)
		}
		m.watch = func(s *state.State) { x.note(m, s) }
		if err := m.prove(); err != nil {
			t.Fatal(err)
		}
	}
}

// note looks at a state before its instruction.
func (x *exercised) note(m *Machine, s *state.State) {
	in := &m.Prog.Insns[s.PC]
	switch {
	case in.IsBuiltinCall():
		x.helpers[asm.BuiltinFunc(in.Constant)] = true
	case in.IsKfuncCall():
		x.kernel[in.Reference()] = true
	case in.Array >= 0:
		a := m.env.Arrays[in.Array]
		if x.types[a.Kind] == nil {
			x.types[a.Kind] = make(map[ebpf.MapType]bool)
		}
		x.types[a.Kind][a.Spec.Type] = true
	case in.Field != "":
		x.shown[in.Field] = true
	case in.OpCode.Class() == asm.StXClass && s.Regs[in.Dst].Base == value.InContext:
		off, _ := m.contextOffset(m.displace(s.Regs[in.Dst], in))
		f, _ := m.hook.WrittenAt(off, in.OpCode.Size().Sizeof())
		x.written[m.Prog.Hook.String()+" "+f.Name] = true
	case in.OpCode.Class() == asm.LdXClass && s.Regs[in.Src].Base == value.InContext:
		off, _ := m.contextOffset(m.displace(s.Regs[in.Src], in))
		f, _ := m.hook.FieldAt(off, in.OpCode.Size().Sizeof())
		x.fields[m.Prog.Hook.String()+" "+f.Name] = true
	case in.OpCode.JumpOp() == asm.Exit && s.Depth() == 0:
		for _, v := range m.hook.Verdicts {
			if code := s.Facts.SpanOf(m.nodes.Truncate(m.asNumber(s.Regs[0]), 32)); code.Lo <= uint64(v.Code) && uint64(v.Code) <= code.Hi {
				x.verdicts[m.Prog.Hook.String()+" "+v.Name] = true
			}
		}
	}
}

// TestListsAreTested: every entry has a reason, and a proven program uses it. Otherwise a wrong entry would go unnoticed.
func TestListsAreTested(t *testing.T) {
	x := exercised{make(map[asm.BuiltinFunc]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool),
		make(map[declared.Kind]map[ebpf.MapType]bool), 0}
	objects, err := filepath.Glob("../testdata/*.o")
	if err != nil || len(objects) == 0 {
		t.Fatal("no objects", err)
	}
	for _, object := range objects {
		x.exercise(t, object)
	}
	t.Logf("%d programs of testdata are proven", x.proven)
	for fn, h := range allow.Helpers {
		if h.Why == "" || !x.helpers[fn] {
			t.Errorf("%s: reason %q, used by a proven program: %t", allow.HelperName(fn), h.Why, x.helpers[fn])
		}
	}
	for name, why := range allow.KernelFunctions {
		if why == "" || !x.kernel[name] {
			t.Errorf("%s: reason %q, used by a proven program: %t", name, why, x.kernel[name])
		}
	}
	x.checkHooks(t)
	for name, f := range allow.KernelFields {
		if f.Why == "" || !x.shown[name] {
			t.Errorf("%s: reason %q, read by a proven program: %t", name, f.Why, x.shown[name])
		}
	}
	for name, p := range allow.KernelPlaces {
		if p.Why == "" || !x.shown[name] {
			t.Errorf("%s: reason %q, copied by a proven program: %t", name, p.Why, x.shown[name])
		}
	}
	x.checkRoles(t)
	for fn, r := range allow.RefusedHelpers {
		if _, listed := allow.Helpers[fn]; listed || r.Why == "" || rule.Remedies[r.Code] == "" {
			t.Errorf("%s is on two lists, or refused without a reason", allow.HelperName(fn))
		}
	}
}

func (x *exercised) checkHooks(t *testing.T) {
	for kind, h := range allow.Hooks {
		for _, f := range h.Fields {
			if f.Why == "" || !x.fields[kind.String()+" "+f.Name] {
				t.Errorf("%s: field %s: reason %q, read by a proven program: %t", kind, f.Name, f.Why, x.fields[kind.String()+" "+f.Name])
			}
		}
		for _, f := range h.Written {
			if f.Why == "" || !x.written[kind.String()+" "+f.Name] {
				t.Errorf("%s: field %s: reason %q, written by a proven program: %t", kind, f.Name, f.Why, x.written[kind.String()+" "+f.Name])
			}
		}
		for _, v := range h.Verdicts {
			if v.Why == "" || !x.verdicts[kind.String()+" "+v.Name] {
				t.Errorf("%s: %s: reason %q, returned by a proven program: %t", kind, v.Name, v.Why, x.verdicts[kind.String()+" "+v.Name])
			}
		}
		if h.Why == "" {
			t.Errorf("%s has no reason", kind)
		}
	}
	for point, arguments := range allow.TracePoints {
		for _, f := range arguments {
			if f.Why == "" || !x.fields[ebpf.Tracing.String()+" "+f.Name] {
				t.Errorf("%s: argument %s: reason %q, read by a proven program: %t", point, f.Name, f.Why, x.fields[ebpf.Tracing.String()+" "+f.Name])
			}
		}
	}
}

// checkRoles: each map type of a kind is used by a proven program, in this kind or in one with more rights.
func (x *exercised) checkRoles(t *testing.T) {
	for kind, role := range declared.MapRoles {
		if role.Why == "" {
			t.Errorf("%s has no reason", kind)
		}
		for _, mapType := range role.Types {
			if !x.types[kind][mapType] && !(kind == declared.Untagged && (x.types[declared.Table][mapType] || mapType == ebpf.ProgramArray)) {
				t.Errorf("no proven program uses a %s that is a %s", kind, mapType)
			}
		}
	}
	for name, kind := range declared.SharedMaps {
		if _, ok := declared.MapRoles[kind]; !ok {
			t.Errorf("%s is a %s, which has no role", name, kind)
		}
	}
}
