package pisa

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// declared are programs that keep the rules, with a declaration changed so that they no longer do. A program that refers to
// the map is where the message points.
var declarations = []struct {
	name, object, program, array string
	change                       func(*ebpf.CollectionSpec, *ebpf.MapSpec)
	code                         rule.Code
}{
	{"a generator of many numbers", "clean", "generator_of_its_own", "generator", sized(1024, 4), rule.FlowState},
	{"a generator of 128 bits", "clean", "generator_of_its_own", "generator", sized(1, 16), rule.FlowState},
	{"a generator that cores share", "clean", "generator_of_its_own", "generator", typed(ebpf.Array), rule.FlowState},
	{"a generator that is a hash", "clean", "generator_of_its_own", "generator", typed(ebpf.PerCPUHash), rule.FlowState},
	{"a budget of many slots", "passes", "bounded", "recirc_budget", sized(1024, 40), rule.FlowState},
	{"a budget that cores share", "passes", "bounded", "recirc_budget", typed(ebpf.Array), rule.FlowState},
	{"a budget of another name", "passes", "bounded", "recirc_budget", renamed("my_budget"), rule.Unlisted},
	{"counters as a sketch", "clean", "sums", "counts", sized(2, 8*4096), rule.FlowState},
	{"counters for every flow", "clean", "sums", "counts", sized(65536, 64), rule.FlowState},
	{"counters in a hash", "clean", "sums", "counts", typed(ebpf.PerCPUHash), rule.FlowState},
	{"scratch for every flow", "clean", "own_scratch", "notes", sized(1024, 16), rule.FlowState},
	{"scratch that cores share", "clean", "own_scratch", "notes", typed(ebpf.Array), rule.FlowState},
	{"a register that is a hash", "clean", "one_exchange", "single", typed(ebpf.Hash), rule.FlowState},
	{"a register that is a queue", "clean", "one_exchange", "single", typed(ebpf.Queue), rule.FlowState},
	{"a register in a file of its own", "clean", "one_exchange", "single", pinned, rule.Unlisted},
	{"a register with a shared name", "clean", "one_exchange", "single", renamed("hash_crc_tables"), rule.Unlisted},
	{"a register that is tagged as shared", "clean", "one_exchange", "single", tagged("xdpmon:shared"), rule.Unlisted},
	{"arrays side by side in a hash", "beside", "each_by_itself", "quads", typed(ebpf.Hash), rule.FlowState},
	{"arrays side by side in no stage", "rows", "words_in_their_order", "rows", beside("row_count,row_first,row_then"), rule.StageMissing},
	{"arrays side by side, one in no stage", "rows", "words_in_their_order", "rows", beside("row_count@3,row_first,row_then@2"), rule.StageMissing},
	{"arrays side by side, one in a stage without a number", "rows", "words_in_their_order", "rows", beside("row_count@3,row_first@one,row_then@2"), rule.StageMissing},
	{"arrays side by side, two of one name", "beside", "each_by_itself", "quads", beside("quad_a,quad_b,quad_b,quad_d"), rule.Unlisted},
	{"arrays side by side, one with the name of a map", "beside", "each_by_itself", "quads", beside("quad_a,quads,quad_c,quad_d"), rule.Unlisted},
	{"arrays side by side, one without a name", "beside", "each_by_itself", "quads", beside("quad_a,,quad_c,quad_d"), rule.Unlisted},
	{"a table of several arrays", "clean", "own_scratch", "targets", tagged("pisa:arrays=one,other"), rule.Unlisted},
	{"a table that forgets the eldest", "clean", "own_scratch", "targets", typed(ebpf.LRUHash), rule.FlowState},
	{"a table of sockets", "clean", "own_scratch", "targets", typed(ebpf.SockHash), rule.FlowState},
	{"a table that is local storage", "clean", "own_scratch", "targets", typed(ebpf.SkStorage), rule.FlowState},
	{"a table of devices", "clean", "own_scratch", "targets", typed(ebpf.DevMapHash), rule.FlowState},
	{"a table that is a filter", "clean", "own_scratch", "targets", typed(ebpf.BloomFilter), rule.FlowState},
	{"a table in an arena", "clean", "own_scratch", "targets", typed(ebpf.Arena), rule.FlowState},
	{"a table with flags of its own", "clean", "own_scratch", "targets", flagged(1 << 4), rule.Unlisted},
	{"a table of tables that is written", "state", "write_to_an_inner_map", "outer", openInner, rule.Unlisted},
	{"a table of registers", "state", "write_to_an_inner_map", "outer", innerRegister, rule.Unlisted},
	{"constants that may change", "clean", "rounds_under_their_constant", ".rodata", unfrozen, rule.Unlisted},
	{"a chain of one's own", "passes", "constant_slot_that_was_named", "chain_xdp", renamed("my_chain"), rule.Unlisted},
	{"a second pass of one's own", "passes", "bounded", "recirc_xdp", renamed("my_passes"), rule.Unlisted},
	{"a chain that is a table", "passes", "constant_slot_that_was_named", "chain_xdp", typed(ebpf.Array), rule.FlowState},
	{"a ring that is an array", "clean", "report", "reports", tagged("pisa:counters"), rule.FlowState},
}

func sized(entries, bytes uint32) func(*ebpf.CollectionSpec, *ebpf.MapSpec) {
	return func(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) { m.MaxEntries, m.ValueSize = entries, bytes }
}

func typed(t ebpf.MapType) func(*ebpf.CollectionSpec, *ebpf.MapSpec) {
	return func(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) { m.Type = t }
}

func tagged(tag string) func(*ebpf.CollectionSpec, *ebpf.MapSpec) {
	return func(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) { m.Tags = append(m.Tags, tag) }
}

func beside(names string) func(*ebpf.CollectionSpec, *ebpf.MapSpec) {
	return func(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) {
		m.Tags = append(slices.DeleteFunc(slices.Clone(m.Tags), func(tag string) bool { return strings.HasPrefix(tag, "pisa:arrays=") }), "pisa:arrays="+names)
	}
}

func flagged(flags uint32) func(*ebpf.CollectionSpec, *ebpf.MapSpec) {
	return func(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) { m.Flags |= flags }
}

// renamed gives the map another name, and a plain one of the old name to who else refers to it.
func renamed(name string) func(*ebpf.CollectionSpec, *ebpf.MapSpec) {
	return func(spec *ebpf.CollectionSpec, m *ebpf.MapSpec) {
		for _, p := range spec.Programs {
			for i := range p.Instructions {
				if p.Instructions[i].Reference() == m.Name {
					p.Instructions[i] = p.Instructions[i].WithReference(name)
				}
			}
		}
		delete(spec.Maps, m.Name)
		spec.Maps[name] = m
	}
}

func pinned(_ *ebpf.CollectionSpec, m *ebpf.MapSpec)   { m.Pinning = ebpf.PinByName }
func unfrozen(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) { m.Flags = 0 }

func openInner(_ *ebpf.CollectionSpec, m *ebpf.MapSpec) { m.InnerMap.Flags = 0 }

func innerRegister(spec *ebpf.CollectionSpec, m *ebpf.MapSpec) {
	m.InnerMap = spec.Maps["flows"].Copy()
	m.Contents[0].Value = "flows"
}

func TestRefusesDeclarations(t *testing.T) {
	for _, d := range declarations {
		t.Run(d.name, func(t *testing.T) {
			spec := only(t, "testdata/"+d.object+".o", d.program)
			d.change(spec, spec.Maps[d.array])
			_, err := Prove(spec)
			var broken *rule.Violations
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want a violation of rule 1", err)
			}
			v := broken.List[0]
			if v.Rule != 1 || v.Code != d.code || v.Program != d.program {
				t.Errorf("got rule %d %s in %s, want rule 1 %s in %s", v.Rule, v.Code, v.Program, d.code, d.program)
			}
			if v.Insn < 0 || v.Source == "" || v.Map == "" {
				t.Errorf("the violation has no position: %+v", v)
			}
		})
	}
}

// TestRefusesProgramTypes: what a context of another type shows is not known to be the packet's.
func TestRefusesProgramTypes(t *testing.T) {
	for _, kind := range []ebpf.ProgramType{ebpf.Tracing, ebpf.Kprobe, ebpf.SocketFilter, ebpf.CGroupSKB, ebpf.SkMsg, ebpf.LWTXmit,
		ebpf.StructOps, ebpf.FlowDissector, ebpf.UnspecifiedProgram} {
		spec := only(t, "testdata/clean.o", "one_exchange")
		spec.Programs["one_exchange"].Type = kind
		_, err := Prove(spec)
		var broken *rule.Violations
		if !errors.As(err, &broken) || broken.List[0].Code != rule.Unlisted || !strings.Contains(err.Error(), kind.String()) {
			t.Errorf("%s: got %v, want a refusal of the type", kind, err)
		}
	}
}

// TestRefusesSharedArrayOfSections: two TC programs run in one chain, whatever their sections are called.
func TestRefusesSharedArrayOfSections(t *testing.T) {
	for _, kind := range []ebpf.ProgramType{ebpf.XDP, ebpf.SchedCLS} {
		spec := loadSpec(t, "testdata/shared.o")
		for i, name := range []string{"first", "second"} {
			spec.Programs[name].Type, spec.Programs[name].SectionName = kind, []string{"tc", "tcx/egress"}[i]
		}
		var broken *rule.Violations
		if _, err := Prove(spec); !errors.As(err, &broken) || broken.List[0].Code != rule.SecondAccess {
			t.Errorf("%s: got %v, want a second access", kind, err)
		}
	}
}

// TestRefusesOtherLayouts: the words of the vector and of the budget are those of the headers.
func TestRefusesOtherLayouts(t *testing.T) {
	spec := only(t, "testdata/clean.o", "one_exchange")
	vector := btf.Copy(spec.Maps[declared.VectorName].Value).(*btf.Struct)
	vector.Members[0].Type = &btf.Array{Index: &btf.Int{Size: 4}, Type: &btf.Int{Size: 8}, Nelems: 1000}
	spec.Maps[declared.VectorName].Value = vector
	if _, err := Prove(spec); !errors.Is(err, rule.ErrMemoryRules) {
		t.Errorf("got %v, want a refusal of a vector whose clock has a thousand words", err)
	}
	spec.Maps[declared.VectorName].Value = nil
	if _, err := Prove(spec); !errors.Is(err, rule.ErrMemoryRules) {
		t.Errorf("got %v, want a refusal of a vector without types", err)
	}
	spec = only(t, "testdata/passes.o", "bounded")
	spec.Maps["recirc_budget"].Value = nil
	if _, err := Prove(spec); !errors.Is(err, rule.ErrMemoryRules) {
		t.Errorf("got %v, want a refusal of a budget without types", err)
	}
}
