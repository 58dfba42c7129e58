package finding

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// The form in which a store keeps a past, little endian: version (1), the number of latest values (1), the number of hours (1), end (8) and length (8) of the
// window that was learned last, the latest values (4 each), of each hour its number (1), the number of its values (1), First (8), Last (8) and the values, and a
// checksum of all of it (4). A past is at most 19.5 kB.
const (
	pastVersion = 1
	pastHead    = 3 + 8 + 8
	hourHead    = 2 + 8 + 8
	checksum    = 4
	// MaxPast bounds the form of one past, bytes.
	MaxPast = pastHead + 4*latestWindows + hours*(hourHead+4*2*hourly) + checksum
)

// How long a past is believed. Older latest windows show nothing of now: the traffic of another day is the hours' to know. Older hours are those of a host that
// was put away.
const (
	freshLatest = 24 * time.Hour
	freshHours  = 8 * 7 * 24 * time.Hour
	// otherLength is from how many times the length of earlier windows on counts of a window are not comparable.
	otherLength = 1.5
)

// ErrPast is wrapped by errors of a past that cannot be read: it is damaged, or of another version.
var ErrPast = errors.New("no baseline")

// Past is what a stream has learned, for a store.
type Past struct {
	Baseline
	At     int64 // end of the window that was learned last, ns since 1970
	Length int64 // of that window, ns
}

// MarshalBaseline writes the form that ReadBaseline reads.
func (p *Past) MarshalBaseline() []byte {
	b := make([]byte, 0, MaxPast)
	b = append(b, pastVersion, byte(len(p.Latest)), byte(len(p.Hours)))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.At))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Length))
	b = appendValues(b, p.Latest)
	for _, hour := range slices.Sorted(maps.Keys(p.Hours)) {
		h := p.Hours[hour]
		b = append(b, byte(hour), byte(len(h.Values)))
		b = binary.LittleEndian.AppendUint64(b, uint64(h.First))
		b = binary.LittleEndian.AppendUint64(b, uint64(h.Last))
		b = appendValues(b, h.Values)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func appendValues(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// ReadBaseline reads what MarshalBaseline wrote, and nothing that it cannot have written.
func ReadBaseline(b []byte) (*Past, error) {
	if len(b) < pastHead+checksum || len(b) > MaxPast {
		return nil, fmt.Errorf("%w: %d bytes", ErrPast, len(b))
	}
	if b[0] != pastVersion {
		return nil, fmt.Errorf("%w: version %d, this one reads %d", ErrPast, b[0], pastVersion)
	}
	end := len(b) - checksum
	if crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, fmt.Errorf("%w: the checksum differs", ErrPast)
	}
	r := pastReader{rest: b[3:end]}
	p := &Past{At: r.number(), Length: r.number()}
	p.Latest = r.values(int(b[1]), latestWindows)
	for range b[2] {
		r.hour(p)
	}
	if r.bad || len(r.rest) > 0 || p.Length < 0 {
		return nil, fmt.Errorf("%w: its fields make no sense", ErrPast)
	}
	return p, nil
}

// pastReader takes fields from the front; bad once one was not there or made no sense.
type pastReader struct {
	rest []byte
	bad  bool
}

func (r *pastReader) take(n int) []byte {
	if r.bad || len(r.rest) < n {
		r.bad = true
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *pastReader) number() int64 { return int64(binary.LittleEndian.Uint64(r.take(8))) }

func (r *pastReader) values(n, most int) []float32 {
	if n > most {
		r.bad = true
		return nil
	}
	list := make([]float32, 0, n)
	for range n {
		v := math.Float32frombits(binary.LittleEndian.Uint32(r.take(4)))
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			r.bad = true
		}
		list = append(list, v)
	}
	return list
}

func (r *pastReader) hour(p *Past) {
	head := r.take(2)
	h := &Hour{First: r.number(), Last: r.number()}
	h.Values = r.values(int(head[1]), 2*hourly)
	if _, twice := p.Hours[int(head[0])]; twice || int(head[0]) >= hours || h.First > h.Last {
		r.bad = true
		return
	}
	if p.Hours == nil {
		p.Hours = map[int]*Hour{}
	}
	p.Hours[int(head[0])] = h
}

// Pasts are the streams' pasts in the form of a store, those that learned latest first, as far as their forms and keys have no more than room bytes together; left is
// how many have not.
func (s *Streams) Pasts(room int) (kept map[string][]byte, left int) {
	keys := slices.SortedFunc(maps.Keys(s.streams), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.streams[b].at, s.streams[a].at), cmp.Compare(a, b))
	})
	kept = map[string][]byte{}
	for _, key := range keys {
		st := s.streams[key]
		if len(st.past.Latest) == 0 && len(st.past.Hours) == 0 || len(key) > maxKey {
			continue
		}
		b := (&Past{Baseline: st.past, At: st.at, Length: st.length}).MarshalBaseline()
		if room -= len(key) + len(b); room < 0 {
			left++
			continue
		}
		kept[key] = b
	}
	return kept, left
}

// maxKey bounds a stream's name in a store, bytes: names of subjects are from traffic.
const maxKey = 1024

// Recall gives a stream the past that a store has kept, unless it has one already; now is ns since 1970. What is too old to be believed is left out.
func (s *Streams) Recall(key string, p *Past, now int64) {
	end := strings.LastIndexByte(key, 0)
	if s.streams[key] != nil || s.recalled >= mostRecalled || len(key) > maxKey || end < 0 || now-p.At > int64(freshHours) || p.At > now+int64(freshLatest) {
		return
	}
	past := p.Baseline
	if now-p.At > int64(freshLatest) {
		past.Latest = nil
	}
	s.recalled++
	s.streams[key] = &stream{past: past, at: p.At, length: p.Length, kept: p.Length, last: Measure{Weak: "not seen since the start", Absent: math.NaN()}}
	f := s.families[key[:end]]
	if f == nil {
		f = &family{}
		s.families[key[:end]] = f
	}
	f.windows = max(f.windows, len(past.Latest)) // a subject that is new since the start had nothing then, either
}

// recalled compares a past of an earlier run with the first window of this one: counts of windows of another length are not comparable.
func (st *stream) recalled(length int64) {
	if st.kept == 0 {
		return
	}
	if longer, shorter := max(length, st.kept), min(length, st.kept); float64(longer) > otherLength*float64(shorter) {
		st.past, st.test = Baseline{}, Score{}
	}
	st.kept = 0
}
