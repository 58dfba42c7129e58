package pisa

import (
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/bpf/object"
)

// BenchmarkProve is the time that loading pays for the proof, an object at a time.
func BenchmarkProve(b *testing.B) {
	shipped, err := filepath.Glob("../../bpf/*/*_bpfel.o" + object.Suffix)
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range append(shipped, "testdata/algorithms.o", "testdata/clean.o") {
		b.Run(filepath.Base(path), func(b *testing.B) {
			spec := loadSpec(b, path)
			for b.Loop() {
				_, _ = Prove(spec)
			}
		})
	}
}
