package finding

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"strconv"
	"testing"
)

// learned are streams that know a delay of ms, of windows of the given length that end at the given time.
func learned(ms float64, windows int, length, end int64) *Streams {
	s := NewStreams()
	for n := range int64(windows) {
		last := end - (int64(windows)-1-n)*length
		s.Window("fridge", []Measure{delayed(ms * 1e6)}, last-length, last)
	}
	return s
}

// Streams that recall what others learned find with their second window what those would have found; a past of windows of another length, of another day, of the
// future or under no stream's name is not believed.
func TestRecall(t *testing.T) {
	const length, now = int64(10e9), unix2000 + int64(1000*3600e9)
	for name, c := range map[string]struct {
		length, ended, window int64
		want                  bool
	}{
		"as before": {length, now, length, true}, "an hour ago": {length, now - 3600e9, length, true}, "a late window": {length, now, 14e9, true},
		"longer windows": {length, now, 60e9, false}, "two days ago": {length, now - 48*3600e9, length, false}, "tomorrow": {length, now + 48*3600e9, length, false},
	} {
		kept, left := learned(20, 20, c.length, c.ended).Pasts(1 << 20)
		if len(kept) != 1 || left != 0 {
			t.Fatalf("%s: %d pasts, %d left", name, len(kept), left)
		}
		s := NewStreams()
		for key, b := range kept {
			p, err := ReadBaseline(b)
			if err != nil {
				t.Fatal(err)
			}
			s.Recall(key, p, now)
			s.Recall("no name of a stream", p, now)
		}
		var r Reading
		for n := range int64(2) {
			r = s.Window("fridge", []Measure{delayed(200e6)}, now+n*c.window, now+(n+1)*c.window)[0]
		}
		if r.Active != c.want || r.Known != c.want {
			t.Errorf("%s: active %v, known %v, want %v", name, r.Active, r.Known, c.want)
		}
	}
}

// Hours outlast the latest windows: a week after the last one they are still expected.
func TestHoursAreRecalled(t *testing.T) {
	var b Baseline
	const hour = int64(3600e9)
	for h := range int64(2 * 7 * 24) {
		for k := range int64(6) {
			b.Learn(40e6, unix2000+h*hour+k*10*60e9)
		}
	}
	m, at := delayed(400e6), unix2000+2*7*24*hour
	m.Source = "fridge"
	s := NewStreams()
	s.Recall(KeyOf(&m), &Past{Baseline: b, At: at, Length: 10e9}, at+7*24*hour)
	for n := range int64(2) {
		begin := at + 7*24*hour + n*10e9
		r := s.Window("fridge", []Measure{m}, begin, begin+10e9)[0]
		if r.Active != (n > 0) || !r.Known || math.Abs(r.Expected.Value-40e6) > 1e6 {
			t.Errorf("window %d: %+v", n, r.Expected)
		}
	}
}

// No byte of a past can be changed, cut or added unnoticed, and one whose checksum is right but whose fields make no sense is refused, too.
func TestDamagedPast(t *testing.T) {
	p := Past{Baseline: Baseline{Latest: []float32{1, 2}, Hours: map[int]*Hour{3: {Values: []float32{4}, First: 5, Last: 6}}}, At: unix2000, Length: 10e9}
	whole := p.MarshalBaseline()
	for i := range whole {
		bad := append([]byte{}, whole...)
		bad[i] ^= 0x40
		if _, err := ReadBaseline(bad); !errors.Is(err, ErrPast) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := ReadBaseline(whole[:i]); !errors.Is(err, ErrPast) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	hour := pastHead + 4*2
	for name, change := range map[string]func([]byte) []byte{
		"more values than there are": func(b []byte) []byte { b[1] += 2; return b },
		"too many values":            func(b []byte) []byte { b[1] = 200; return append(b[:pastHead], make([]byte, 800)...) },
		"more hours than there are":  func(b []byte) []byte { b[2]++; return b },
		"an hour of no week":         func(b []byte) []byte { b[hour] = 168; return b },
		"an hour that ends first":    func(b []byte) []byte { b[hour+2] = 7; return b },
		"no number": func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[pastHead:], math.Float32bits(float32(math.Inf(1))))
			return b
		},
		"a negative length": func(b []byte) []byte { b[18] = 0x80; return b },
		"bytes behind it":   func(b []byte) []byte { return append(b, 0) },
	} {
		b := change(append([]byte{}, whole[:len(whole)-checksum]...))
		if _, err := ReadBaseline(binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))); !errors.Is(err, ErrPast) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The bound of all pasts holds, and those that learned latest are kept.
func TestPastsAreBounded(t *testing.T) {
	s := NewStreams()
	for n := range int64(300) {
		m := delayed(20e6)
		m.Subject.Name = string(rune('A'+n%26)) + string(rune('a'+n/26))
		m.Absent = math.NaN()
		s.Window("fridge", []Measure{m}, n*10e9, (n+1)*10e9)
	}
	const room = 4096
	kept, left := s.Pasts(room)
	size := 0
	for key, b := range kept {
		size += len(key) + len(b)
	}
	if size > room || len(kept) == 0 || len(kept)+left != 300 {
		t.Errorf("%d bytes of %d pasts, %d left", size, len(kept), left)
	}
	m := delayed(1)
	m.Source = "fridge"
	m.Subject.Name = string(rune('A'+299%26)) + string(rune('a'+299/26))
	if kept[KeyOf(&m)] == nil {
		t.Error("the latest one is left out")
	}
	full := Past{Baseline: Baseline{Hours: map[int]*Hour{}}}
	for n := range 200 * hours * 2 * hourly {
		full.Learn(float64(n), unix2000+int64(n)*int64(every))
	}
	if n := len(full.MarshalBaseline()); n != MaxPast {
		t.Errorf("the largest past has %d bytes, not %d", n, MaxPast)
	}
}

// Every expected source keeps its past, however many there are, and what sources that have ended leave is bounded.
func TestStreamsOfSources(t *testing.T) {
	const sources, each = 500, 5
	window := func(s *Streams, source string, n int64) (known int) {
		var list []Measure
		for i := range each {
			list = append(list, Measure{Instance: source, Algorithm: "a", Symptom: Symptom(strconv.Itoa(i)), Subject: Subject{Name: source},
				Value: Estimate{Value: 5, Low: 4, High: 6}, Bound: math.NaN(), Absent: math.NaN()})
		}
		for _, r := range s.Window("a\x00"+source, list, n*10e9, (n+1)*10e9) {
			if r.Known {
				known++
			}
		}
		return known
	}
	s := NewStreams()
	s.Expect(sources)
	known := 0
	for n := range int64(6) {
		known = 0
		for i := range sources {
			known += window(s, strconv.Itoa(i), n)
		}
	}
	if known != sources*each {
		t.Errorf("%d of %d streams have a past", known, sources*each)
	}
	s.Expect(1)
	for n := range int64(2000) {
		window(s, "gone "+strconv.Itoa(int(n)), 6+n)
	}
	kept, _ := s.Pasts(1 << 30)
	if families := len(s.families); len(kept) > 2100 || families > 2400 {
		t.Errorf("%d streams and %d families are kept", len(kept), families)
	}
}
