package object

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Every shipped object reads the same compressed and plain, and none that is cut is taken.
func TestLoad(t *testing.T) {
	paths, err := filepath.Glob("../*/*_bpfel.o" + Suffix)
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d objects: %v", len(paths), err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, path := range paths {
		packed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := d.DecodeAll(packed, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, errA := Load(packed)
		b, errB := Load(plain)
		if errA != nil || errB != nil || len(a.Programs) == 0 || len(a.Programs) != len(b.Programs) || len(a.Maps) != len(b.Maps) {
			t.Errorf("%s: %v, %v", path, errA, errB)
			continue
		}
		for name, p := range a.Programs {
			if q := b.Programs[name]; q == nil || len(p.Instructions) != len(q.Instructions) {
				t.Errorf("%s: program %s differs", path, name)
			}
		}
		if _, err := Load(packed[:len(packed)/2]); err == nil || !strings.Contains(err.Error(), "decompress object") {
			t.Errorf("%s: half of it is taken: %v", path, err)
		}
	}
}
