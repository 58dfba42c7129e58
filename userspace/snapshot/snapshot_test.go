package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/xdpmon/xdpmon/userspace/report"
)

func example() *Snapshot {
	s := New(Head{Algorithm: "test", Layout: 3, Params: map[string]string{"entries": "16"}, Hashes: HashMark(7), WindowNS: 10},
		report.Window{Start: 5, End: 15, Number: 2, Last: true})
	s.Packets = report.Packets{Seen: 9, Parsed: 8, Used: 7, Bytes: 600, Reasons: map[string]uint64{"not_ip": 1}}
	s.Words["cells"], s.Words["none"] = Words{0, 1, math.MaxUint64}, Words{}
	s.Words["weights"] = Floats([]float64{0.5, -1, math.Pi})
	s.Texts = map[string][]string{"queries": {"a", ""}}
	return s
}

func encoded(t testing.TB, s *Snapshot) []byte {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	for _, s := range []*Snapshot{example(), New(Head{Algorithm: "empty"}, report.Window{})} {
		b := encoded(t, s)
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if again := encoded(t, back); !bytes.Equal(again, b) {
			t.Errorf("%s: encoded again it is another", s.Algorithm)
		}
		if s.Algorithm == "test" && !reflect.DeepEqual(s, back) {
			t.Errorf("\n%+v became\n%+v", s, back)
		}
	}
}

// Registers are mostly zero: an empty megabyte must not take one.
func TestCompact(t *testing.T) {
	s := example()
	s.Words["cells"] = make(Words, 1<<17)
	if n := len(encoded(t, s)); n > 1024 {
		t.Errorf("1 MiB of zeros takes %d bytes", n)
	}
}

func TestRefused(t *testing.T) {
	good := encoded(t, example())
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	framed := func(plain []byte) []byte { return frame(t, plain, len(plain)) }
	for what, c := range map[string]struct {
		data []byte
		want error
	}{
		"nothing":       {nil, ErrFormat},
		"other magic":   {change(func(b []byte) []byte { b[0]++; return b }), ErrFormat},
		"other version": {change(func(b []byte) []byte { b[len(magic)]++; return b }), ErrVersion},
		"cut off":       {good[:len(good)-1], ErrDamaged},
		"head only":     {good[:headLength], ErrDamaged},
		"after its end": {append(bytes.Clone(good), 0), ErrDamaged},
		"a bit":         {change(func(b []byte) []byte { b[len(b)-3] ^= 4; return b }), ErrDamaged},
		"absurd size": {change(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[len(magic)+4:], math.MaxUint32)
			return b
		}), ErrSize},
		"other size":         {change(func(b []byte) []byte { b[len(magic)+4]++; return b }), ErrDamaged},
		"swells":             {frame(t, make([]byte, 1<<20), 100), ErrDamaged},
		"no CBOR":            {framed([]byte{0xff, 0xff}), ErrDamaged},
		"after the CBOR":     {framed(append(plainOf(t, example()), 0)), ErrDamaged},
		"an unknown field":   {framed(mustCBOR(t, map[string]any{"else": 1})), ErrDamaged},
		"half a word":        {framed(mustCBOR(t, map[string]any{"parts": 1, "words": map[string]any{"a": Words{1}[:0:0], "b": []byte{1}}})), ErrDamaged},
		"no parts":           {framed(mustCBOR(t, map[string]any{"algorithm": "test"})), ErrDamaged},
		"ends before it":     {framed(mustCBOR(t, map[string]any{"parts": 1, "window": map[string]any{"Start": 2, "End": 1}})), ErrDamaged},
		"a billion elements": {framed([]byte{0xa1, 0x65, 't', 'e', 'x', 't', 's', 0x9a, 0x3b, 0x9a, 0xca, 0}), ErrDamaged},
	} {
		if s, err := Decode(c.data); !errors.Is(err, c.want) || s != nil {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	large := example()
	large.Words["cells"] = make(Words, MaxBytes/8+1)
	if _, err := large.Encode(); !errors.Is(err, ErrSize) {
		t.Errorf("too large: %v", err)
	}
}

func plainOf(t *testing.T, s *Snapshot) []byte {
	t.Helper()
	plain, err := unpack(encoded(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func mustCBOR(t *testing.T, v any) []byte {
	t.Helper()
	b, err := encoding.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frame packs bytes as Encode does, claiming another length.
func frame(t *testing.T, plain []byte, claimed int) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := w.EncodeAll(plain, append([]byte(magic), make([]byte, headLength-len(magic))...))
	binary.LittleEndian.PutUint32(out[len(magic):], version)
	binary.LittleEndian.PutUint32(out[len(magic)+4:], uint32(claimed))
	binary.LittleEndian.PutUint32(out[len(magic)+8:], uint32(len(out)-headLength))
	return out
}

func TestReader(t *testing.T) {
	s := example()
	r := s.Read()
	if w := r.Words("cells", 3); w[1] != 1 || r.Err() != nil {
		t.Errorf("%v, %v", w, r.Err())
	}
	if f := r.Floats("weights", 3); f[2] != math.Pi || r.Err() != nil {
		t.Errorf("%v, %v", f, r.Err())
	}
	if rows := r.Rows("weights", 1); len(rows) != 3 || r.Err() != nil {
		t.Errorf("%v, %v", rows, r.Err())
	}
	s.Words["nan"] = Floats([]float64{math.NaN()})
	for what, read := range map[string]func(r *Reader) int{
		"short":    func(r *Reader) int { return len(r.Words("cells", 4)) - 4 },
		"missing":  func(r *Reader) int { return len(r.Words("others", 1)) - 1 },
		"cut":      func(r *Reader) int { return len(r.Rows("cells", 2)) },
		"infinite": func(r *Reader) int { return int(r.Floats("nan", 1)[0]) },
	} {
		r := s.Read()
		if n := read(r); n != 0 || !errors.Is(r.Err(), ErrDamaged) {
			t.Errorf("%s: %d, %v", what, n, r.Err())
		}
	}
}

func TestTogether(t *testing.T) {
	a, b := example(), example()
	a.Offset, b.Window.Start = 100, 105
	b.Window.End, b.Window.Last, b.Window.Cut = 200, false, true
	s := Together(a, b)
	want := report.Window{Start: 105, End: 200, Number: 2, Cut: true}
	if s.Window != want || s.Offset != 0 || s.Parts != 2 || s.Packets.Seen != 18 || s.Packets.Reasons["not_ip"] != 2 || len(s.Words) != 0 {
		t.Errorf("%+v", s)
	}
	if a.Window.Start != 5 || a.Offset != 100 {
		t.Error("a part of it was changed")
	}
	if sum := Sum([]uint64{1, 2}, []uint64{3, 4}); !reflect.DeepEqual(sum, Words{4, 6}) {
		t.Errorf("%v", sum)
	}
	if HashMark(1) == HashMark(2) {
		t.Error("marks do not distinguish seeds")
	}
}

// Whatever is read, Decode refuses it or it can be written again.
func FuzzDecode(f *testing.F) {
	good := encoded(f, example())
	f.Add(good)
	f.Add(good[:headLength])
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		if _, err := Decode(encoded(t, s)); err != nil {
			t.Errorf("written again: %v", err)
		}
	})
}

// Behind the frame: what is compressed is fuzzed by itself, since no fuzzer finds its way through a checksum.
func FuzzCBOR(f *testing.F) {
	plain, err := unpack(encoded(f, example()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Snapshot{}
		if decoding.Unmarshal(data, s) == nil {
			encoded(t, s)
		}
	})
}
