package maps

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

func newMap(t *testing.T, spec *ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// writer is a program that puts a record of one word into a ring.
func writer(t *testing.T, ring *ebpf.Map, word int64) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadImm(asm.R0, word, asm.DWord),
		asm.StoreMem(asm.R10, -8, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, ring.FD()),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -8),
		asm.Mov.Imm(asm.R3, 8),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// The data of a ring without records is unmapped, and later records are read.
func TestRingAtRest(t *testing.T) {
	testutil.NeedRoot(t)
	m := newMap(t, &ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 1 << 12})
	r, err := NewRing(m)
	if err != nil {
		t.Fatal(err)
	}
	program := writer(t, m, 4711)
	var got []uint64
	drain := func() {
		t.Helper()
		if err := r.Drain(func(b []byte) { got = append(got, Words(b, nil)...) }); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 3 {
		for range 300 { // the ring wraps more than once: 300 records take 4,800 of 4,096 bytes
			if _, _, err := program.Test(make([]byte, 64)); err != nil {
				t.Fatal(err)
			}
			if len(got) < 300*round+200 { // the last hundred wait
				drain()
			}
		}
		drain()
		if r.data.b == nil {
			t.Fatal("there were records, and the data is not in memory")
		}
		for range maxIdle {
			drain()
		}
		if r.data.b != nil {
			t.Fatalf("the data is in memory after %d calls without a record", maxIdle)
		}
	}
	if len(got) != 900 || slices.ContainsFunc(got, func(w uint64) bool { return w != 4711 }) {
		t.Errorf("%d records were read, 900 written", len(got))
	}
}

// Arrays of one element, with and without banks.
func arrays(t *testing.T) *Set {
	t.Helper()
	spec := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}}
	loaded := map[string]*ebpf.Map{}
	for name, tags := range map[string][]string{"banked": {TagRegister, TagBanked}, "unbanked": {TagRegister}, "table": {TagTable}} {
		kind := ebpf.Array
		ms := &ebpf.MapSpec{Name: name, Type: kind, KeySize: 4, ValueSize: 8, MaxEntries: 2, Tags: tags}
		spec.Maps[name], loaded[name] = ms, newMap(t, ms)
	}
	return NewSet(spec, loaded)
}

// Only words that are known to be zero are not read: the test writes the first word without the set's knowledge, to see whether it is read.
func TestQuiet(t *testing.T) {
	testutil.NeedRoot(t)
	for _, c := range []struct {
		name, what string
		before     func(*Set, *Array)
		asked      bool
	}{
		{"banked", "packets arrived", func(*Set, *Array) {}, true},
		{"banked", "no packet arrived", func(s *Set, _ *Array) { s.MarkIdle(0) }, false},
		{"banked", "no packet arrived in the other bank", func(s *Set, _ *Array) { s.MarkIdle(1) }, true},
		{"banked", "a packet arrived again", func(s *Set, _ *Array) { s.MarkIdle(0); s.EndIdle() }, true},
		{"unbanked", "packets arrived", func(*Set, *Array) {}, true},
		{"unbanked", "its content is not known", func(s *Set, _ *Array) { s.MarkDirty(); s.MarkIdle(0) }, true},
		{"unbanked", "it was empty, and no packet arrived", func(s *Set, a *Array) { read(t, a); s.MarkIdle(0) }, false},
		{"unbanked", "it was empty, and packets arrived", func(s *Set, a *Array) { read(t, a); s.MarkDirty(); s.MarkIdle(0) }, true},
		{"unbanked", "it was empty, and the caller may write", func(s *Set, a *Array) { read(t, a); a.Map(); s.MarkIdle(0) }, true},
		{"table", "it was empty", func(s *Set, a *Array) { read(t, a); s.MarkIdle(0) }, true},
	} {
		s := arrays(t)
		a, err := s.Array(c.name)
		if err != nil {
			t.Fatal(err)
		}
		c.before(s, a)
		if err := a.m.Update(uint32(0), uint64(7), ebpf.UpdateAny); err != nil {
			t.Fatal(err)
		}
		if got := read(t, a)[0] == 7; got != c.asked {
			t.Errorf("%s, %s: asked %t, should be %t", c.name, c.what, got, c.asked)
		}
	}
}

func read(t *testing.T, a *Array) []uint64 {
	t.Helper()
	words, err := a.Read(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// Concurrent calls of Wait share an update, and never wait for one that started before them.
func TestBarrierWaitsTogether(t *testing.T) {
	b, err := NewBarrier()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewBarrier()
	if err != nil {
		t.Fatal(err)
	}
	grace.running.Lock() // an update is under way
	const many = 20
	done := make(chan error, many)
	for range many {
		go func() { done <- b.Wait() }()
	}
	var r *round
	for r == nil {
		grace.state.Lock()
		r = grace.next
		grace.state.Unlock()
		runtime.Gosched()
	}
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	grace.running.Unlock()
	for range many {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	grace.state.Lock()
	if grace.next == r {
		t.Error("who asks from now on joins an update that has begun")
	}
	grace.state.Unlock()
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("closing one barrier ended another: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}
