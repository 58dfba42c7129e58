package loader

import (
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/bpf/precision"
	xmaps "github.com/xdpmon/xdpmon/maps"
)

// An element that was shortened for a configuration stays short when the object is read again, also in its type.
func TestWholeKeepsWhatWasCut(t *testing.T) {
	spec, err := precision.LoadPrecision()
	if err != nil {
		t.Fatal(err)
	}
	if err := xmaps.SetWords(spec, "precision_w0", 3); err != nil {
		t.Fatal(err)
	}
	spec, err = Object{Name: "precision", Spec: Outline(spec), Read: precision.LoadPrecision}.Whole()
	if err != nil {
		t.Fatal(err)
	}
	m := spec.Maps["precision_w0"]
	if size, err := btf.Sizeof(m.Value); err != nil || size != 24 || m.ValueSize != 24 {
		t.Errorf("an element has %d bytes, its type %d (%v); want 24", m.ValueSize, size, err)
	}
}
