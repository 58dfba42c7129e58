package precision

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/xdpmon/xdpmon/tests/hashes"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/heavy"
)

// plainPipe is HashPipe in a few lines of Go, with the hashes of a replay.
type plainPipe struct {
	seed  uint64
	asked int
	ways  [][]plainEntry
}

func newPlainPipe(ways, entries, asked int, seed uint64) *plainPipe {
	p := &plainPipe{seed: seed, asked: asked}
	for range ways {
		p.ways = append(p.ways, make([]plainEntry, entries/ways))
	}
	return p
}

func (p *plainPipe) at(way int, key heavy.Key) *plainEntry {
	word := func(h, w uint64) uint64 { return hashes.Mix(h^w) + w }
	h := word(word(p.seed+uint64(way)*0x9e3779b97f4a7c15, key[0]), key[1])
	list := p.ways[way]
	return &list[uint64(uint32(h))*uint64(len(list))>>32]
}

// Add implements Reference.
func (p *plainPipe) Add(key heavy.Key) (estimate float64) {
	carried := plainEntry{key, 1}
	for way := range p.ways {
		e := p.at(way, carried.key)
		if e.key == carried.key {
			e.count += carried.count
			break
		}
		if way == 0 || e.count < carried.count {
			*e, carried = carried, *e
		}
		if carried.count == 0 {
			break
		}
	}
	for way := range min(p.asked, len(p.ways)) {
		if e := p.at(way, key); e.key == key {
			estimate += float64(e.count)
		}
	}
	return estimate
}

// Counts implements Reference.
func (p *plainPipe) Counts() map[heavy.Key]float64 { return sums(p.ways, 1) }

func sums(ways [][]plainEntry, scale float64) map[heavy.Key]float64 {
	counts := map[heavy.Key]float64{}
	for _, way := range ways {
		for _, e := range way {
			if e.count > 0 {
				counts[e.key] += float64(e.count) / scale
			}
		}
	}
	return counts
}

// plainCoco is CocoSketch in a few lines of Go, with the hashes and coins of a replay.
type plainCoco struct {
	Plain
	ways [][]plainEntry
}

func newPlainCoco(ways, entries int, seed uint64) *plainCoco {
	p := &plainCoco{Plain: *NewPlain(2, 0, seed, nil)}
	for range ways {
		p.ways = append(p.ways, make([]plainEntry, entries/ways))
	}
	return p
}

// Add implements Reference.
func (p *plainCoco) Add(key heavy.Key) (estimate float64) {
	h := p.hash.Key(key[:2]...)
	g := hashes.Mix(h + hashStep)
	coin := p.coin()
	for way, slot := range []uint64{h & math.MaxUint32, h >> 32, g & math.MaxUint32, g >> 32}[:len(p.ways)] {
		e := &p.ways[way][slot*uint64(len(p.ways[way]))>>32]
		e.count++
		if PlainExact(coin, e.count) {
			e.key = key
		}
		if e.key == key {
			estimate += float64(e.count)
		}
	}
	return estimate / float64(len(p.ways))
}

// Counts implements Reference.
func (p *plainCoco) Counts() map[heavy.Key]float64 { return sums(p.ways, float64(len(p.ways))) }

// TestPlainBaselines: the baselines do what their authors describe, entry for entry and at every packet.
func TestPlainBaselines(t *testing.T) {
	testutil.NeedRoot(t)
	const seed, entries = 3, 240
	stream := Sizes{Flows: 1500, Packets: 12_000, Offset: 5, Skew: 0.9, Drawn: true, Seed: 8}.New()
	check := func(name string, c *Contender, err error, reference Reference) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out, err := Run(c, stream, seed, true)
		if err != nil {
			t.Fatal(err)
		}
		want := Refer(reference, stream)
		if !maps.Equal(out.Counts, want.Counts) {
			t.Errorf("%s: the entries differ: %d of %d are the same, and %d are there", name, same(out.Counts, want.Counts), len(want.Counts), len(out.Counts))
		}
		if math.Abs(out.MSE-want.MSE) > 1e-9*want.MSE {
			t.Errorf("%s: error on arrival %.3f, want %.3f", name, out.MSE, want.MSE)
		}
	}
	for _, ways := range []int{2, 6} {
		for _, asked := range []int{1, ways} {
			c, err := HashPipe(ways, entries, asked)
			check(fmt.Sprintf("HashPipe of %d ways, %d asked", ways, asked), c, err, newPlainPipe(ways, entries, asked, seed))
		}
	}
	for _, ways := range []int{1, 2, 4} {
		c, err := CocoSketch(ways, entries)
		check(fmt.Sprintf("CocoSketch of %d ways", ways), c, err, newPlainCoco(ways, entries, seed))
	}
}
