package prefix

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/maps/prefix"
	"github.com/xdpmon/xdpmon/tests/prefix/probe"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

const name = "probe_prefixes"

type loaded struct {
	*prefix.Table
	program *ebpf.Program
}

func load(t *testing.T, words int) loaded {
	t.Helper()
	testutil.NeedRoot(t)
	spec, err := probe.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	if err := prefix.Size(spec, name, words); err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(c.Close)
	table, err := prefix.Open(maps.NewSet(spec, c.Maps), name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded{table, c.Programs["probe"]}
}

// ask runs the program over a question, and returns the question with what it wrote.
func (l loaded) ask(t *testing.T, q probe.ProbeQuestion, repeat uint32) probe.ProbeQuestion {
	t.Helper()
	in := make([]byte, 64)
	if _, err := binary.Encode(in, binary.NativeEndian, &q); err != nil {
		t.Fatal(err)
	}
	opts := ebpf.RunOptions{Data: in, DataOut: make([]byte, 256), Repeat: repeat}
	if code, err := l.program.Run(&opts); err != nil || code != 2 {
		t.Fatal(code, err)
	}
	if _, err := binary.Decode(opts.DataOut, binary.NativeEndian, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

func randomKey(rng *rand.Rand) prefix.Key { return prefix.Key{High: rng.Uint64(), Low: rng.Uint64()} }

// The program finds the same as the trie in Go, which maps/prefix compares with the definition: both directions and all words of it.
func TestKernelFindsTheSame(t *testing.T) {
	l := load(t, 1<<16)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	lanes := 0
	for n := range 10 {
		const roots = 3
		var rules []prefix.Rule
		for root := range roots {
			for range 1 + rng.IntN(300) {
				r := prefix.Rule{Root: root, Key: randomKey(rng), Bits: rng.IntN(129), Value: rng.Uint32() >> 1}
				if rng.IntN(2) == 0 { // near the one before
					if n := len(rules); n > 0 && rules[n-1].Root == root {
						r.Key = rules[n-1].Key
						r.Key.Low ^= 1 << rng.IntN(64)
					}
				}
				rules = append(rules, r)
			}
			if n%2 == 1 { // most within eight bits
				for range 2000 {
					rules = append(rules, prefix.Rule{Root: root, Key: randomKey(rng), Bits: 10 + rng.IntN(9), Value: rng.Uint32() >> 1})
				}
			}
		}
		rules = distinct(rules)
		if err := l.Replace(roots, rules); err != nil {
			t.Fatal(err)
		}
		for _, word := range l.Current().Words[:roots] {
			if word>>29 == 6 {
				lanes++
			}
		}
		for range 300 {
			k, root := randomKey(rng), rng.IntN(roots)
			if r := rules[rng.IntN(len(rules))]; rng.IntN(4) > 0 {
				k, root = r.Key, r.Root
				k.Low ^= uint64(rng.IntN(2)) << rng.IntN(64)
				k.High ^= uint64(rng.IntN(2)) << (44 + rng.IntN(20))
			}
			q := l.ask(t, probe.ProbeQuestion{Root: uint32(root), Other: uint32(root), High: k.High, Low: k.Low}, 1)
			if want := l.Current().Find(root, k); q.Found != want {
				t.Fatalf("root %d, %x: %d in the kernel, %d here", root, k, q.Found, want)
			}
		}
	}
	if lanes < 10 {
		t.Errorf("%d of 15 large tries start with cells of lanes", lanes)
	}
}

// distinct leaves one rule for a prefix.
func distinct(rules []prefix.Rule) (list []prefix.Rule) {
	seen := map[prefix.Rule]bool{}
	for _, r := range rules {
		r.Key = r.Key.Masked(r.Bits)
		if place := (prefix.Rule{Root: r.Root, Key: r.Key, Bits: r.Bits}); !seen[place] {
			seen[place] = true
			list = append(list, r)
		}
	}
	return list
}

// An empty table matches nothing.
func TestEmpty(t *testing.T) {
	l := load(t, 16)
	if q := l.ask(t, probe.ProbeQuestion{Root: 3, High: 1 << 63}, 1); q.Found != 0 || q.Beside != 0 {
		t.Errorf("found %d and %d in an empty table", q.Found, q.Beside)
	}
}

// Packets are looked up while versions change: each uses one version in both of its lookups, and never none.
func TestReplacedUnderTraffic(t *testing.T) {
	l := load(t, 1<<12)
	version := func(n uint32) (rules []prefix.Rule) {
		rng := rand.New(rand.NewPCG(uint64(n), 7))
		for root := range 2 { // the shapes differ, every address is covered
			rules = append(rules, prefix.Rule{Root: root, Bits: 0, Value: n})
			for range rng.IntN(60) {
				rules = append(rules, prefix.Rule{Root: root, Key: randomKey(rng), Bits: 20 + rng.IntN(100), Value: n})
			}
			rules = append(rules, prefix.Of(root, netip.MustParsePrefix("10.9.0.0/16"), n), prefix.Of(root, netip.MustParsePrefix("10.9.8.7/32"), n))
		}
		return rules
	}
	if err := l.Replace(2, version(1)); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for n := uint32(2); !stop.Load(); n++ {
			if err := l.Replace(2, version(n)); err != nil {
				done <- err
				return
			}
		}
	}()
	k := prefix.KeyOf(netip.MustParseAddr("10.9.8.7"))
	var runs uint64
	for seen := map[uint32]bool{}; runs < 1_000_000 || len(seen) < 20; {
		q := l.ask(t, probe.ProbeQuestion{Root: 0, Other: 1, High: k.High, Low: k.Low}, 20_000)
		if q.Torn > 0 || q.Found == 0 {
			t.Fatalf("%d of %d lookups met two versions; the last found %d", q.Torn, q.Runs, q.Found)
		}
		runs += q.Runs
		seen[q.Found] = true
	}
	stop.Store(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What does not fit is rejected, and the old table stays.
func TestRefusedStays(t *testing.T) {
	l := load(t, 64)
	if err := l.Replace(1, []prefix.Rule{{Bits: 1, Value: 5}}); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var many []prefix.Rule
	for n := range uint32(100) {
		many = append(many, prefix.Rule{Key: randomKey(rng), Bits: 64, Value: n + 1})
	}
	if err := l.Replace(1, many); !errors.Is(err, prefix.ErrFull) {
		t.Errorf("100 rules in 64 words: %v", err)
	}
	if q := l.ask(t, probe.ProbeQuestion{}, 1); q.Found != 5 {
		t.Errorf("found %d after a refusal, want 5", q.Found)
	}
}

// BenchmarkReplace is what a change of 100,000 prefixes costs: they are sorted, built, written, and no packet is in the version before.
func BenchmarkReplace(b *testing.B) {
	testutil.NeedRoot(b)
	spec, err := probe.LoadProbe()
	if err != nil {
		b.Fatal(err)
	}
	if err := prefix.Size(spec, name, 1<<20); err != nil {
		b.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	table, err := prefix.Open(maps.NewSet(spec, c.Maps), name)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var rules []prefix.Rule
	for n := range uint32(100_000) {
		rules = append(rules, prefix.Rule{Key: prefix.Key{High: rng.Uint64()}, Bits: 16 + rng.IntN(9), Value: n + 1})
	}
	rules = distinct(rules)
	for b.Loop() {
		if err := table.Replace(1, rules); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(4*float64(len(table.Current().Words)), "bytes/version")
}

func TestSize(t *testing.T) {
	spec, err := probe.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []int{0, -1, prefix.MaxWords + 1} {
		if prefix.Size(spec, name, words) == nil {
			t.Errorf("%d words are taken", words)
		}
	}
	if err := prefix.Size(spec, "nothing", 16); !errors.Is(err, maps.ErrNoMap) {
		t.Error(err)
	}
}
