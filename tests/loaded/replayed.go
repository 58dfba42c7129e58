package loaded

import (
	"testing"

	"github.com/xdpmon/xdpmon/loader/replay"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Replayed is an algorithm that processes packets one by one, at their times. A test may read its registers between
// two of them, and write there what another core would have written.
type Replayed struct {
	Algorithm
	name   string
	feed   *replay.Replayer
	packer builder.Packer
}

// Replay loads a registered algorithm like Load.
func Replay(t *testing.T, name string, set map[string]string) *Replayed {
	t.Helper()
	r := &Replayed{Algorithm: load(t, name, set, true), name: name}
	feed, err := replay.New(r.Loaded, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { feed.Close() })
	r.feed = feed
	return r
}

// Packets replays these.
func (r *Replayed) Packets(t *testing.T, list ...packet.Packet) {
	t.Helper()
	for n := range list {
		var f packet.Frame
		if err := r.packer.Frame(&list[n], &f); err != nil {
			t.Fatal(err)
		}
		if err := r.feed.Feed(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.feed.Flush(); err != nil {
		t.Fatal(err)
	}
}

// Only finds a register's one element that is not zero.
func (r *Replayed) Only(t *testing.T, register string) (index uint32, word uint64) {
	t.Helper()
	words, err := r.array(t, register).Read(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, w := range words {
		if w != 0 {
			index, word, found = uint32(i), w, found+1
		}
	}
	if found != 1 {
		t.Fatalf("%s: %d elements are not zero, want 1", register, found)
	}
	return index, word
}

// Sum adds up a register's elements, those of all cores.
func (r *Replayed) Sum(t *testing.T, register string) (sum uint64) {
	t.Helper()
	words, err := r.array(t, register).Read(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		sum += w
	}
	return sum
}

// Put writes an element of 32 or 64 bits.
func (r *Replayed) Put(t *testing.T, register string, index uint32, word uint64) {
	t.Helper()
	a := r.array(t, register)
	var err error
	if a.ElemSize == 4 {
		err = a.Map().Put(index, uint32(word))
	} else {
		err = a.Map().Put(index, word)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *Replayed) array(t *testing.T, register string) *maps.Array {
	t.Helper()
	set, err := r.Loaded.Set(r.name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := set.Array(register)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
