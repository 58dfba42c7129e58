package parser

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// mutant makes broken packets of good ones. The same seed makes the same packets.
type mutant struct {
	*rand.Rand
	corpus []packet.Frame
	buf    []byte
}

const longest = 2000 // bytes of a mutated frame

// newMutant uses the crafted packets and, if they exist, the packets of the odd captures.
func newMutant(tb testing.TB, seed uint64) *mutant {
	tb.Helper()
	_, frames := crafted(tb)
	return &mutant{Rand: rand.New(rand.NewPCG(seed, 2)), corpus: append(frames, cornerFrames(tb)...)}
}

// cornerFrames are none where the captures are missing: the crafted packets then have to do.
func cornerFrames(tb testing.TB) []packet.Frame {
	tb.Helper()
	var frames []packet.Frame
	for _, path := range cornerPaths(tb) {
		forFrames(tb, path, func(_ int, f *packet.Frame) bool {
			frame := *f
			frame.Data = slices.Clone(f.Data[:min(len(f.Data), longest)])
			frames = append(frames, frame)
			return true
		})
	}
	return frames
}

// next is a new mutant; its bytes are valid until the next call.
func (m *mutant) next() packet.Frame {
	f := m.pick()
	m.buf = append(m.buf[:0], f.Data...)
	wire := f.Len
	for range 1 + m.IntN(4) {
		m.change()
	}
	m.buf = m.buf[:min(len(m.buf), longest)]
	f.Data = m.buf
	if m.IntN(20) == 0 {
		wire = m.IntN(1 << 18)
	}
	if m.IntN(50) == 0 {
		f.Link ^= 1
	}
	f.Len = max(wire, len(f.Data))
	return f
}

func (m *mutant) pick() packet.Frame { return m.corpus[m.IntN(len(m.corpus))] }

// near is an offset that is more often in the headers than after them.
func (m *mutant) near() int {
	limit := len(m.buf)
	if m.IntN(8) != 0 {
		limit = min(limit, 120)
	}
	return m.IntN(max(limit, 1))
}

func (m *mutant) change() {
	if len(m.buf) == 0 {
		m.buf = append(m.buf, byte(m.Uint32()))
		return
	}
	at := m.near()
	switch m.IntN(10) {
	case 0, 1:
		m.buf[at] ^= 1 << m.IntN(8)
	case 2:
		m.buf[at] = byte(m.Uint32())
	case 3:
		m.buf[at] = interestingBytes[m.IntN(len(interestingBytes))]
	case 4, 5:
		m.word(at)
	case 6:
		m.buf = m.buf[:at]
	case 7:
		m.buf = append(m.buf, make([]byte, m.IntN(64))...)
	case 8:
		m.splice(at)
	case 9:
		m.repeat(at)
	}
}

// word writes two bytes with a meaning for a parser, mostly at positions of such words.
func (m *mutant) word(at int) {
	if m.IntN(3) > 0 {
		at &^= 1
	}
	if at+2 > len(m.buf) {
		return
	}
	w := interestingWords[m.IntN(len(interestingWords))]
	m.buf[at], m.buf[at+1] = byte(w>>8), byte(w)
}

// splice continues with another packet, from some place of it.
func (m *mutant) splice(at int) {
	other := m.pick().Data
	if len(other) == 0 {
		return
	}
	m.buf = append(m.buf[:at], other[m.IntN(min(len(other), 100)):]...)
}

// repeat doubles a piece: one more tag, label, option or extension header.
func (m *mutant) repeat(at int) {
	size := min([]int{1, 2, 4, 8, 12, 16, 20, 40}[m.IntN(8)], len(m.buf)-at)
	m.buf = slices.Insert(m.buf, at, slices.Clone(m.buf[at:at+size])...)
}

var interestingBytes = []byte{
	0, 1, 4, 5, 6, 7, 8, 9, 10, 14, 17, 20, 41, 43, 44, 47, 50, 51, 53, 58, 59, 60, 123, 127, 128, 129, 135, 139, 140, 255,
	0x11, 0x40, 0x44, 0x45, 0x46, 0x4f, 0x50, 0x60, 0x80, 0xf0, 0x21, 0x57,
}

var interestingWords = []uint16{
	0, 1, 7, 8, 19, 20, 21, 40, 53, 123, 576, 1500, 0x7fff, 0x8000, 0xffff, 0x2000, 0x1fff, 0x0021, 0x0057, 4789, 6081, 0x6558,
	0xc204, 0x0101, 0x080a, builder.EtherIPv4, builder.EtherIPv6, builder.EtherVLAN, builder.EtherQinQ, builder.EtherMPLS,
	builder.EtherPPPoE, builder.EtherARP, 0x9100, 0x8848,
}

func cornerPaths(tb testing.TB) []string {
	tb.Helper()
	dir := os.Getenv("XDPMON_TRACES")
	if dir == "" {
		dir = filepath.Join(testutil.Root(tb), "..", "shared", "traces")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "corner", "*.pcap*"))
	if err != nil {
		tb.Fatal(err)
	}
	return paths
}
