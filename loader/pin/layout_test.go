package pin

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/loader"
)

// An element of the same size with other fields differs, and one with the same fields does not, whether the object is complete or an
// outline.
func TestLayoutIsCompared(t *testing.T) {
	word := &btf.Int{Name: "unsigned int", Size: 4}
	record := func(names ...string) *ebpf.CollectionSpec {
		s := &btf.Struct{Name: "record", Size: uint32(4 * len(names))}
		for i, name := range names {
			s.Members = append(s.Members, btf.Member{Name: name, Type: word, Offset: btf.Bits(32 * i)})
		}
		return &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
			"records": {Name: "records", Type: ebpf.Array, KeySize: 4, ValueSize: s.Size, MaxEntries: 8, Key: word, Value: &btf.Typedef{Name: "record_t", Type: s}},
			".rodata": {Name: ".rodata", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1},
		}}
	}
	was := shapesOf(record("limit", "until"))
	for _, c := range []struct {
		what   string
		is     *ebpf.CollectionSpec
		differ bool
	}{
		{"the same", record("limit", "until"), false},
		{"its outline", loader.Outline(record("limit", "until")), false},
		{"another order", record("until", "limit"), true},
		{"another name", record("limit", "since"), true},
		{"another length", record("limit", "until", "since"), true},
	} {
		if diffs := compareText("", was, shapesOf(c.is)); (len(diffs) > 0) != c.differ {
			t.Errorf("%s: differences %q", c.what, diffs)
		}
	}
	if _, there := was[".rodata"]; there || len(was) != 1 {
		t.Errorf("shapes %q, want those of records alone", was)
	}
}
