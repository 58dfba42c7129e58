// Package snapshot holds the raw data of a window: plain data, from which a pure function computes a report, and which can be
// stored, merged and sent. It names no algorithm.
package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"unsafe"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Head is the part that is the same in all windows of an instance.
type Head struct {
	Algorithm string            `cbor:"algorithm"`
	Layout    uint32            `cbor:"layout"` // version of what the algorithm writes into Words and Texts
	Params    map[string]string `cbor:"params"` // all of them, as text: geometry and estimator follow from them
	// Hashes identifies hash seeds without revealing them: equal for equal hash functions. HashMark computes it.
	Hashes   uint64 `cbor:"hashes"`
	CRC      bool   `cbor:"crc,omitempty"`
	Replay   bool   `cbor:"replay,omitempty"`
	WindowNS int64  `cbor:"window_ns"`
}

// Snapshot is the data of one algorithm's window, or of several merged ones.
type Snapshot struct {
	Head
	Window report.Window `cbor:"window"`
	// Offset added to the packets' clock gives ns since 1970; 0 if that is the packets' clock.
	Offset int64 `cbor:"offset,omitempty"`
	// Epoch counts the changes of the hashes since the start, where they change.
	Epoch   uint64         `cbor:"epoch,omitempty"`
	Packets report.Packets `cbor:"packets"` // of the chain, whatever the algorithm used of them
	Parts   int            `cbor:"parts"`   // windows of hosts that it is made of
	// Words are registers, counters and the estimator's state, by name; fractions are stored as the bits of a float64.
	Words map[string]Words `cbor:"words"`
	// Texts are values other than numbers: the text of a query.
	Texts map[string][]string `cbor:"texts,omitempty"`
}

// Words are registers.
type Words []uint64

// HashMark identifies a seed; a randomly drawn seed cannot be computed from it.
func HashMark(seed uint64) uint64 {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("xdpmon hash seed"), seed))
	return binary.LittleEndian.Uint64(sum[:])
}

// New is an empty snapshot of a window.
func New(h Head, w report.Window) *Snapshot {
	return &Snapshot{Head: h, Window: w, Parts: 1, Words: map[string]Words{}}
}

// Digest is of everything but the times of the window and the chain's packets. Equal snapshots have the same within a process.
func (s *Snapshot) Digest() uint64 {
	var h maphash.Hash
	h.SetSeed(digests)
	n := func(x uint64) { maphash.WriteComparable(&h, x) }
	n(s.Hashes)
	n(s.Epoch)
	for _, name := range slices.Sorted(maps.Keys(s.Words)) {
		h.WriteString(name)
		words := s.Words[name]
		n(uint64(len(words)))
		if len(words) > 0 {
			h.Write(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Texts)) {
		h.WriteString(name)
		n(uint64(len(s.Texts[name])))
		for _, text := range s.Texts[name] {
			n(uint64(len(text)))
			h.WriteString(text)
		}
	}
	return h.Sum64()
}

var digests = maphash.MakeSeed()

// Floats are numbers as their bits.
func Floats(list []float64) Words {
	words := make(Words, len(list))
	for i, x := range list {
		words[i] = math.Float64bits(x)
	}
	return words
}

// Floats are the numbers whose bits these are.
func (w Words) Floats() []float64 {
	list := make([]float64, len(w))
	for i, bits := range w {
		list[i] = math.Float64frombits(bits)
	}
	return list
}

// ErrDamaged is wrapped for contents that xdpmon never writes.
var ErrDamaged = errors.New("snapshot is damaged")

// Reader reads the words of a snapshot and records the first invalid ones.
type Reader struct {
	s   *Snapshot
	err error
}

// Read returns a Reader of the snapshot.
func (s *Snapshot) Read() *Reader { return &Reader{s: s} }

// Words are n words; another length is refused, and read as n zeros.
func (r *Reader) Words(name string, n int) []uint64 {
	w, ok := r.s.Words[name]
	if !ok || len(w) != n {
		r.Refuse("%s has %d words, %d are expected", name, len(w), n)
		return make([]uint64, n)
	}
	return w
}

// Rows are words in records of the same length, as many as there are.
func (r *Reader) Rows(name string, width int) [][]uint64 {
	w := r.s.Words[name]
	if len(w)%width != 0 {
		r.Refuse("%s has %d words, multiples of %d are expected", name, len(w), width)
		return nil
	}
	rows := make([][]uint64, 0, len(w)/width)
	for ; len(w) > 0; w = w[width:] {
		rows = append(rows, w[:width])
	}
	return rows
}

// Floats are n finite numbers.
func (r *Reader) Floats(name string, n int) []float64 {
	list := Words(r.Words(name, n)).Floats()
	for _, x := range list {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			r.Refuse("%s contains a value that is not a finite number", name)
			return make([]float64, n)
		}
	}
	return list
}

// Refuse records why a snapshot is invalid.
func (r *Reader) Refuse(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("read snapshot of %s: %w: %s", r.s.Algorithm, ErrDamaged, fmt.Sprintf(format, args...))
	}
}

// Err is the first refusal.
func (r *Reader) Err() error { return r.err }

// Wall is the snapshot with its times in Unix time; s itself is not changed.
func (s *Snapshot) Wall() *Snapshot {
	w := *s
	w.Window.Start, w.Window.End, w.Offset = s.Window.Start+s.Offset, s.Window.End+s.Offset, 0
	return &w
}

// Together starts a merged snapshot, in ns since 1970: everything but Words and Texts, which an algorithm merges.
func Together(a, b *Snapshot) *Snapshot {
	a, b = a.Wall(), b.Wall()
	s := *a
	s.Window = report.Window{Start: min(a.Window.Start, b.Window.Start), End: max(a.Window.End, b.Window.End),
		Number: min(a.Window.Number, b.Window.Number), Last: a.Window.Last && b.Window.Last,
		Stretched: a.Window.Stretched || b.Window.Stretched, Cut: a.Window.Cut || b.Window.Cut}
	s.Parts = a.Parts + b.Parts
	s.Packets = together(a.Packets, b.Packets)
	s.Words, s.Texts = map[string]Words{}, maps.Clone(a.Texts)
	return &s
}

func together(a, b report.Packets) report.Packets {
	p := report.Packets{Seen: a.Seen + b.Seen, Segments: a.Segments + b.Segments, Parsed: a.Parsed + b.Parsed, Used: a.Used + b.Used,
		UsedSegments: a.UsedSegments, Bytes: a.Bytes + b.Bytes, Reasons: map[string]uint64{}, Verdicts: a.Verdicts.Plus(b.Verdicts)}
	for _, reasons := range []map[string]uint64{a.Reasons, b.Reasons} {
		for reason, n := range reasons {
			p.Reasons[reason] += n
		}
	}
	return p
}

// Sum adds two arrays of equal length cell by cell.
func Sum(a, b []uint64) Words {
	sum := make(Words, len(a))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}
