package pisa

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/bpf/object"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/rule"
)

// want is a violation that a source file of testdata announces at the end of a line.
type want struct {
	file    string
	line    int
	program string // in whose proof it is found
	rule    int
	code    rule.Code
	array   string
	when    string // the constant that must be set
}

var (
	wantComment    = regexp.MustCompile(`/\* want: (\d) (\S+) (\S+)((?: \w+:\w+)*) \*/`)
	programComment = regexp.MustCompile(`^(?:PROGRAM(?:_TC)?\(|SEC\("[a-z.]+"\) int )(\w+)`)
)

// readWants finds what a source file announces, and all programs in it.
func readWants(t *testing.T, path string) (wants []want, programs []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	program := ""
	for i, line := range strings.Split(string(text), "\n") {
		if m := programComment.FindStringSubmatch(line); m != nil {
			program = m[1]
			programs = append(programs, program)
		}
		m := wantComment.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[1])
		w := want{file: filepath.Base(path), line: i + 1, program: program, rule: number, code: rule.Code(m[2]), array: strings.TrimPrefix(m[3], "-")}
		for option := range strings.FieldsSeq(m[4]) {
			if in, ok := strings.CutPrefix(option, "in:"); ok {
				w.program = in
			}
			if when, ok := strings.CutPrefix(option, "if:"); ok {
				w.when = when
			}
		}
		wants = append(wants, w)
	}
	return wants, programs
}

func loadSpec(t testing.TB, path string) *ebpf.CollectionSpec {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := object.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// only is the collection with a single program.
func only(t testing.TB, object, program string) *ebpf.CollectionSpec {
	t.Helper()
	spec := loadSpec(t, object)
	p, ok := spec.Programs[program]
	if !ok {
		t.Fatalf("%s has no program %s; run go generate", object, program)
	}
	spec.Programs = map[string]*ebpf.ProgramSpec{program: p}
	return spec
}

func setConstant(t testing.TB, spec *ebpf.CollectionSpec, name string, value any) {
	t.Helper()
	v, ok := spec.Variables[name]
	if !ok {
		t.Fatalf("no constant %s", name)
	}
	if err := v.Set(value); err != nil {
		t.Fatal(err)
	}
}

// checkOne asserts that a proof fails for exactly one reason, at one line.
func checkOne(t *testing.T, err error, w want) {
	t.Helper()
	var broken *rule.Violations
	if !errors.As(err, &broken) || !errors.Is(err, rule.ErrMemoryRules) {
		t.Fatalf("got %v, want a violation of rule %d", err, w.rule)
	}
	if len(broken.List) != 1 {
		t.Fatalf("%d violations, want one:\n%v", len(broken.List), err)
	}
	v := broken.List[0]
	if v.Rule != w.rule || v.Code != w.code || v.Map != w.array || v.Program != w.program {
		t.Errorf("got rule %d %s of %s in %s, want rule %d %s of %s in %s", v.Rule, v.Code, v.Map, v.Program,
			w.rule, w.code, w.array, w.program)
	}
	place := fmt.Sprintf("%s:%d: ", w.file, w.line)
	if !strings.HasPrefix(v.Source, place) {
		t.Errorf("found at %q, want %s\n%v", v.Source, place, err)
	}
	for _, part := range []string{fmt.Sprintf("rule %d (", w.rule), place, fmt.Sprintf("instruction %d", v.Insn), rule.Remedies[v.Code]} {
		if v.Insn < 0 || rule.Remedies[v.Code] == "" || !strings.Contains(err.Error(), part) {
			t.Errorf("message without %q:\n%v", part, err)
		}
	}
}

// TestPrograms proves every program of testdata alone: it is accepted, or rejected for the reason and at the
// line that its source announces.
func TestPrograms(t *testing.T) {
	whole := []string{"algorithms.c", "shared.c", "fit_alus.c"}
	sources, err := filepath.Glob("testdata/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatal("no test programs", err)
	}
	for _, source := range sources {
		if slices.Contains(whole, filepath.Base(source)) {
			continue
		}
		wants, programs := readWants(t, source)
		object := strings.TrimSuffix(source, ".c") + ".o"
		for _, program := range programs {
			t.Run(strings.TrimSuffix(filepath.Base(source), ".c")+"/"+program, func(t *testing.T) {
				i := slices.IndexFunc(wants, func(w want) bool { return w.program == program })
				checkProgram(t, object, program, wants, i)
			})
		}
	}
}

func checkProgram(t *testing.T, object, program string, wants []want, i int) {
	spec := only(t, object, program)
	if i >= 0 && wants[i].when == "" {
		_, err := Prove(spec)
		checkOne(t, err, wants[i])
		return
	}
	if _, err := Prove(spec); err != nil {
		t.Fatal(err)
	}
	if i >= 0 {
		setConstant(t, spec, wants[i].when, constantOf[wants[i].when])
		_, err := Prove(spec)
		checkOne(t, err, wants[i])
	}
}

// constantOf are values of constants under which a program breaks a rule.
var constantOf = map[string]any{"forbidden": true, "rounds": uint32(2)}

func TestRejectsSharedArray(t *testing.T) {
	wants, _ := readWants(t, "testdata/shared.c")
	_, err := Prove(loadSpec(t, "testdata/shared.o"))
	checkOne(t, err, wants[0])
}

func TestRejectsStageThatIsFull(t *testing.T) {
	report, err := Prove(loadSpec(t, "testdata/fit_alus.o"))
	var broken *rule.Violations
	if !errors.As(err, &broken) || len(broken.List) != 1 || broken.List[0].Rule != 6 || broken.List[0].Code != rule.Fit {
		t.Fatalf("got %v, want one violation of rule 6", err)
	}
	if report == nil || report.Targets[0].Fits || report.Targets[1].Fits {
		t.Error("no report of what does not fit")
	}
}

func TestRejectsArrayThatIsTooLarge(t *testing.T) {
	for entries, fits := range map[uint32]bool{143_360: true, 147_456: false} {
		spec := only(t, "testdata/stages.o", "decision_for_the_next_stage")
		spec.Maps["late"].MaxEntries = entries
		report, err := Prove(spec)
		if (err == nil) != fits || report.Targets[1].Fits != fits {
			t.Errorf("%d x 32: %v, want fit %t", entries, err, fits)
		}
	}
}

func TestAcceptsAlgorithms(t *testing.T) {
	report, err := Prove(loadSpec(t, "testdata/algorithms.o"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range report.Arrays {
		if a.Stage != nil && (a.Touches != 1 || len(a.Programs) != 2) {
			t.Errorf("%s: %d touches by %v, want one by two programs", a.Name, a.Touches, a.Programs)
		}
	}
}

// drivers are programs that carry packets to the monitor and are no part of it.
var drivers = []string{"replay"}

// hashPipe exists only to be compared with: it writes a key after reading a counter of a later stage, which is why it
// cannot run on the hardware (dissertation, section 3.3.2), and has to be refused for that very reason.
const hashPipe = "hashpipe"

func TestHashPipeIsRefused(t *testing.T) {
	_, err := Prove(loadSpec(t, "../../tests/precision/hashpipe/hashpipe_bpfel.o"))
	var broken *rule.Violations
	if !errors.As(err, &broken) {
		t.Fatalf("got %v, want violations", err)
	}
	late := func(v rule.Violation) bool { return v.Rule == 2 && v.Code == rule.LateAccess }
	if !slices.ContainsFunc(broken.List, late) {
		t.Errorf("not refused for a write after a later stage: %v", broken)
	}
}

// TestShippedPrograms proves what bpf2go has made of every algorithm.
func TestShippedPrograms(t *testing.T) {
	objects, err := filepath.Glob("../../bpf/*/*_bpfel.o" + object.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range objects {
		folder := filepath.Base(filepath.Dir(path))
		if slices.Contains(drivers, folder) || folder == hashPipe {
			continue
		}
		t.Run(folder, func(t *testing.T) {
			if _, err := Prove(loadSpec(t, path)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSpecIsUntouched: the caller loads what it has had proven.
func TestSpecIsUntouched(t *testing.T) {
	spec := loadSpec(t, "testdata/clean.o")
	before := fmt.Sprint(slices.Sorted(maps.Keys(spec.Maps)), spec.Maps[".rodata"].Contents)
	instructions := fmt.Sprint(spec.Programs["spill"].Instructions)
	setConstant(t, spec, "rounds", uint32(1))
	if _, err := Prove(only(t, "testdata/clean.o", "spill")); err != nil {
		t.Fatal(err)
	}
	_, _ = Prove(spec)
	if after := fmt.Sprint(slices.Sorted(maps.Keys(spec.Maps)), spec.Maps[".rodata"].Contents); after != before {
		t.Error("Prove has changed the specification's maps")
	}
	if fmt.Sprint(spec.Programs["spill"].Instructions) != instructions {
		t.Error("Prove has changed the instructions")
	}
}

// TestAcceptsDeferredPasses: in a replay that holds second passes back (recirc.h) no program is called.
func TestAcceptsDeferredPasses(t *testing.T) {
	spec := loadSpec(t, "testdata/algorithms.o")
	setConstant(t, spec, "recirc_deferred", true)
	report, err := Prove(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range report.Arrays {
		if a.Kind == declared.Recirc && len(a.Programs) > 0 {
			t.Errorf("%s is used by %v", a.Name, a.Programs)
		}
	}
}

// TestStepLimit: a proof that would take too long ends with an error that states the limit.
func TestStepLimit(t *testing.T) {
	if _, err := ProveWithin(only(t, "testdata/clean.o", "three_stages"), 10); !errors.Is(err, rule.ErrTooComplex) {
		t.Errorf("got %v, want %v", err, rule.ErrTooComplex)
	}
}
