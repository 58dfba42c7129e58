package p4

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/algo"
)

var update = flag.Bool("update", false, "write the generated parts of the twins instead of comparing them")

// TestGeneratedParts compares params.p4 and tables.p4 of every twin with what `xdpmon p4` writes for the
// parameters of valuesOf. After a change of the generator: go test ./p4 -update.
func TestGeneratedParts(t *testing.T) {
	for _, d := range algo.All() {
		if !algo.Implements[algo.Twin](d) {
			continue
		}
		for part, want := range generate(t, d) {
			path := filepath.Join(folder(d), part+".p4")
			if *update {
				if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			have, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(have) != want {
				t.Errorf("%s is not what `xdpmon p4 %s %s` writes: run go test ./p4 -update", path, part, d.Name)
			}
		}
	}
}

func generate(t *testing.T, d *algo.Descriptor) map[string]string {
	t.Helper()
	parts, err := d.P4(valuesOf(t, d))
	if err != nil {
		t.Fatalf("generate %s: %v (parameters are named in comments of p4/%s: --set %s.KEY=VALUE)", d.Name, err, folder(d), d.Name)
	}
	if len(parts) == 0 {
		t.Fatalf("generate %s: nothing was generated", d.Name)
	}
	return parts
}
