package pisa

import (
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
)

// BenchmarkProve is the time that loading pays for the proof, an object at a time.
func BenchmarkProve(b *testing.B) {
	shipped, err := filepath.Glob("../../bpf/*/*_bpfel.o")
	if err != nil {
		b.Fatal(err)
	}
	for _, object := range append(shipped, "testdata/algorithms.o", "testdata/clean.o") {
		b.Run(filepath.Base(object), func(b *testing.B) {
			spec, err := ebpf.LoadCollectionSpec(object)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				_, _ = Prove(spec)
			}
		})
	}
}
