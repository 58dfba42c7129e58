package p4

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	_ "github.com/xdpmon/xdpmon/userspace/fridge"
	_ "github.com/xdpmon/xdpmon/userspace/rttarray"
)

// folder of an algorithm's twin: its name as bpf/ and userspace/ write it.
func folder(d *algo.Descriptor) string { return strings.ReplaceAll(d.Name, "-", "") }

// twins lists the folders that have a program.
func twins(t *testing.T) []string {
	t.Helper()
	programs, err := filepath.Glob("*/top.p4")
	if err != nil || len(programs) == 0 {
		t.Fatalf("find twins: none here: %v", err)
	}
	folders := make([]string, len(programs))
	for i, p := range programs {
		folders[i] = filepath.Dir(p)
	}
	return folders
}

// valuesOf are the parameters with which the eBPF form is what its twin is: those that a comment of the twin names
// (--set NAME.KEY=VALUE), and the defaults of all others.
func valuesOf(t *testing.T, d *algo.Descriptor) algo.Values {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder(d), "*.p4"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("p4/%s: no P4 files: %v", folder(d), err)
	}
	set := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range setting.FindAllStringSubmatch(string(text), -1) {
			if m[1] == d.Name {
				set[m[2]] = strings.TrimRight(m[3], ".,;:)")
			}
		}
	}
	v, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// object is the eBPF object of a twin, configured but not loaded.
func object(t *testing.T, twin string) *ebpf.CollectionSpec {
	t.Helper()
	for _, d := range algo.All() {
		if folder(d) != twin {
			continue
		}
		spec, err := d.Spec()
		if err != nil {
			t.Fatal(err)
		}
		instance, err := d.New(valuesOf(t, d), algo.Env{Setup: algo.Setup{Hash: algo.HashCRC}})
		if err != nil {
			t.Fatal(err)
		}
		if err := instance.Configure(spec); err != nil {
			t.Fatal(err)
		}
		return spec
	}
	t.Fatalf("p4/%s: no algorithm has this folder", twin)
	return nil
}

// registersOf lists the arrays of an object that must have a twin. What a configuration does not use keeps one entry.
func registersOf(spec *ebpf.CollectionSpec) map[string]register {
	found := map[string]register{}
	for name, m := range spec.Maps {
		isRegister := slices.Contains(m.Tags, maps.TagRegister) || slices.Contains(m.Tags, maps.TagTally)
		banks := uint32(1)
		if slices.Contains(m.Tags, maps.TagBanked) {
			banks = 2
		}
		if !isRegister || m.MaxEntries == banks {
			continue
		}
		for _, p := range maps.Places(name, m) {
			found[p.Name] = register{name: p.Name, width: 8 * p.Width, entries: uint64(m.MaxEntries), stage: p.Stage}
		}
	}
	return found
}

func TestRegistersAreTheSame(t *testing.T) {
	for _, twin := range twins(t) {
		t.Run(twin, func(t *testing.T) {
			src, err := readTwin(twin)
			if err != nil {
				t.Fatal(err)
			}
			host := registersOf(object(t, twin))
			for _, name := range src.absent {
				if _, ok := host[name]; !ok {
					t.Errorf("%s: the comment lists it as missing here, and eBPF has none", name)
				}
				delete(host, name)
			}
			for _, complaint := range differences(host, src.registers) {
				t.Error(complaint)
			}
		})
	}
}

// differences between the arrays of an eBPF object and the registers of its twin.
func differences(host, twin map[string]register) []string {
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for name, h := range host {
		p, ok := twin[name]
		if !ok {
			complain("%s: missing in the twin", name)
			continue
		}
		if p.width != p.listed || p.host != h.width {
			complain("%s: %d bits in eBPF, %d in the twin; its comment says %d and %d", name, h.width, p.width, p.host, p.listed)
		}
		if p.entries != h.entries {
			complain("%s: %d entries in eBPF, %d in the twin", name, h.entries, p.entries)
		}
		if p.stage != h.stage {
			complain("%s: stage %d in eBPF, %d in the twin's comment", name, h.stage, p.stage)
		}
		if p.entries > 1<<p.index {
			complain("%s: an index of %d bits does not reach %d entries", name, p.index, p.entries)
		}
	}
	for name := range twin {
		if _, ok := host[name]; !ok {
			complain("%s: missing in eBPF, or not used there", name)
		}
	}
	return found
}

// TestDifferencesAreSeen keeps the comparison honest: every kind of drift is reported.
func TestDifferencesAreSeen(t *testing.T) {
	good := register{name: "r", width: 32, listed: 32, host: 32, index: 4, entries: 16, stage: 2}
	drifts := map[string]func(*register){
		"width":   func(r *register) { r.width = 64 },
		"comment": func(r *register) { r.listed = 16 },
		"host":    func(r *register) { r.host = 64 },
		"entries": func(r *register) { r.entries = 8 },
		"stage":   func(r *register) { r.stage = 3 },
		"index":   func(r *register) { r.index = 3 },
	}
	for name, drift := range drifts {
		bad := good
		drift(&bad)
		if len(differences(map[string]register{"r": good}, map[string]register{"r": bad})) == 0 {
			t.Errorf("a different %s is not detected", name)
		}
	}
	if n := len(differences(map[string]register{"r": good}, map[string]register{"s": good})); n != 2 {
		t.Errorf("a renamed register causes %d errors, want 2", n)
	}
}

// TestStagesAscend: the control applies the registers in the order of their stages.
func TestStagesAscend(t *testing.T) {
	for _, twin := range twins(t) {
		src, err := readTwin(twin)
		if err != nil {
			t.Fatal(err)
		}
		stage := 0
		for _, r := range src.inFlow(t, twin) {
			if r.stage < stage {
				t.Errorf("%s: %s of stage %d is applied after stage %d", twin, r.name, r.stage, stage)
			}
			stage = r.stage
		}
	}
}

// TestHashRows: the twin's polynomials are the loader's.
func TestHashRows(t *testing.T) {
	text, err := os.ReadFile("include/hashing.p4")
	if err != nil {
		t.Fatal(err)
	}
	src, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range loader.HashPolynomials {
		have, err := src.value(fmt.Sprintf("HASH_ROW_%d", row))
		if err != nil || uint32(have) != want {
			t.Errorf("row %d: polynomial %#x in the twin, %#x in the loader (%v)", row, have, want, err)
		}
	}
}

// TestConstants: numbers in the twin's text are those that userspace writes into the eBPF object.
func TestConstants(t *testing.T) {
	src, err := readTwin("fridge")
	if err != nil {
		t.Fatal(err)
	}
	spec := object(t, "fridge")
	var tick uint32
	if err := spec.Variables["fridge_tick"].Get(&tick); err != nil {
		t.Fatal(err)
	}
	if have, err := src.value("FRIDGE_TICK"); err != nil || have != uint64(tick) {
		t.Errorf("tick: 2^%d ns in the twin, 2^%d in eBPF (%v)", have, tick, err)
	}
}
