package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// payload makes n distinguishable bytes.
func payload(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i)
	}
	return b
}

func threeFrames() []packet.Frame {
	return []packet.Frame{
		{Time: 1700000000_000001000, Data: payload(60, 1), Len: 60},
		{Time: 1700000000_000002000, Data: payload(96, 2), Len: 1514},
		{Time: 1699999999_999999000, Data: payload(14, 3), Len: 14}, // out of order: passed on
	}
}

func TestPcapFormats(t *testing.T) {
	micro, nano := threeFrames(), threeFrames()
	nano[0].Time += 999
	for _, c := range []struct {
		name  string
		bytes []byte
		want  []packet.Frame
	}{
		{"little micro", classic(binary.LittleEndian, magicMicro, 1, micro...), micro},
		{"big micro", classic(binary.BigEndian, magicMicro, 1, micro...), micro},
		{"little nano", classic(binary.LittleEndian, magicNano, 1, nano...), nano},
		{"big nano", classic(binary.BigEndian, magicNano, 1, nano...), nano},
		{"with check sequence bits", classic(binary.LittleEndian, magicNano, 0x24000001, nano...), nano},
		{"empty", classic(binary.LittleEndian, magicNano, 1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkFrames(t, mustRead(t, c.bytes), c.want)
			checkFrames(t, mustRead(t, zipped(t, c.bytes)), c.want)
		})
	}
}

func TestOpenFileAndStandardInput(t *testing.T) {
	raw := classic(binary.LittleEndian, magicNano, 1, threeFrames()...)
	for _, b := range [][]byte{raw, zipped(t, raw)} {
		path := filepath.Join(t.TempDir(), "x.pcap")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		frames, _ := readAll(r)
		checkFrames(t, frames, threeFrames())
		if read, total := r.Progress(); read != int64(len(b)) || total != int64(len(b)) {
			t.Errorf("progress %d of %d, want %d", read, total, len(b))
		}
		if r.Packets() != 3 {
			t.Errorf("%d packets, want 3", r.Packets())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		in, err := Open("-", bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		frames, _ = readAll(in)
		checkFrames(t, frames, threeFrames())
		if read, total := in.Progress(); read != int64(len(b)) || total != 0 {
			t.Errorf("progress of a pipe %d of %d, want %d of 0", read, total, len(b))
		}
	}
}

func TestRefusedFiles(t *testing.T) {
	for _, c := range []struct {
		name, bytes, want string
	}{
		{"empty", "", "empty"},
		{"three bytes", "abc", "only 3 bytes"},
		{"text", "hello world, this is text and no capture", "68 65 6c 6c"},
		{"zstd", "\x28\xb5\x2f\xfd000000000000000000000000000", "zstd -d"},
		{"header cut", "\xd4\xc3\xb2\xa1\x02\x00", "file header"},
		{"version 3", "\xd4\xc3\xb2\xa1\x03\x00\x00\x00aaaaaaaaaaaaaaaaaaaa", "version 3"},
	} {
		_, err := NewReader("x", strings.NewReader(c.bytes))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrTruncated) {
			t.Errorf("%s: error %v is of no kind", c.name, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open("-", nil); err == nil {
		t.Error("standard input that is not there was opened")
	}
}

// Every truncated file gives exactly its complete packets, and then an error.
func TestCutAnywhere(t *testing.T) {
	ng := newNG(binary.LittleEndian)
	ng.iface(1, 0, ng.resolution(9))
	bounds := map[int]int{len(ng.buf): 0}
	want := threeFrames()
	for i, f := range want {
		ng.enhanced(0, uint64(f.Time), f.Data, f.Len)
		bounds[len(ng.buf)] = i + 1
	}
	t.Run("pcapng", func(t *testing.T) { cutEverywhere(t, ng.buf, len(ng.buf)-ngSize(want), bounds, want) })

	bounds = map[int]int{24: 0}
	for i := range want {
		bounds[len(classic(binary.LittleEndian, magicNano, 1, want[:i+1]...))] = i + 1
	}
	whole := classic(binary.LittleEndian, magicNano, 1, want...)
	t.Run("pcap", func(t *testing.T) { cutEverywhere(t, whole, 24, bounds, want) })
}

func ngSize(frames []packet.Frame) int {
	n := 0
	for _, f := range frames {
		n += blockOverhead + enhancedHeader + (len(f.Data)+3)&^3
	}
	return n
}

func cutEverywhere(t *testing.T, whole []byte, header int, bounds map[int]int, want []packet.Frame) {
	count := 0
	for n := header; n <= len(whole); n++ {
		r, err := NewReader("cut", bytes.NewReader(whole[:n]))
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		frames, err := readAll(r)
		atBound := false
		if k, ok := bounds[n]; ok {
			count, atBound = k, true
		}
		checkFrames(t, frames, want[:count])
		if atBound != (err == io.EOF) {
			t.Errorf("cut at %d of %d: %v", n, len(whole), err)
		}
		if !atBound {
			checkPlace(t, err, count)
		}
		if again := r.Next(new(packet.Frame)); again != err {
			t.Errorf("after the end: %v, then %v", err, again)
		}
	}
}

func checkPlace(t *testing.T, err error, delivered int) {
	t.Helper()
	if !errors.Is(err, ErrTruncated) {
		t.Errorf("error %v is not ErrTruncated", err)
	}
	if where := fmt.Sprintf("packet %d at byte ", delivered+1); !strings.Contains(err.Error(), where) {
		t.Errorf("error %v does not contain %q", err, where)
	}
}

func TestCutGzip(t *testing.T) {
	frames := make([]packet.Frame, 500)
	for i := range frames {
		frames[i] = packet.Frame{Time: int64(i) + 1, Data: payload(100+i%50, byte(i*7)), Len: 1500}
	}
	whole := zipped(t, classic(binary.LittleEndian, magicNano, 1, frames...))
	for _, n := range []int{len(whole) / 3, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
		r, err := NewReader("cut", bytes.NewReader(whole[:n]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(r)
		if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "unpacked") {
			t.Errorf("cut at %d: %v", n, err)
		}
		checkFrames(t, got, frames[:len(got)])
	}
	whole[len(whole)/2] ^= 0x55
	r, err := NewReader("flipped", bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(r); !errors.Is(err, ErrTruncated) {
		t.Errorf("flipped bit: %v", err)
	}
}

func TestReadErrorIsNoDamage(t *testing.T) {
	whole := classic(binary.LittleEndian, magicNano, 1, threeFrames()...)
	r, err := NewReader("nfs", &broken{bytes.NewReader(whole[:100])})
	if err != nil {
		t.Fatal(err)
	}
	frames, err := readAll(r)
	if !errors.Is(err, errBroken) || errors.Is(err, ErrTruncated) {
		t.Errorf("error %v, want the reader's own", err)
	}
	checkFrames(t, frames, threeFrames()[:1])
}

func TestHugeRecord(t *testing.T) {
	big := packet.Frame{Time: 5, Data: payload(3*inputSize+17, 9), Len: 4 * inputSize}
	frames := []packet.Frame{threeFrames()[0], big, threeFrames()[1]}
	checkFrames(t, mustRead(t, classic(binary.LittleEndian, magicNano, 1, frames...)), frames)

	hostile := classic(binary.LittleEndian, magicNano, 1)
	hostile = append(hostile, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	r, err := NewReader("hostile", bytes.NewReader(hostile))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Next(new(packet.Frame)); !errors.Is(err, ErrTruncated) {
		t.Errorf("record of 4 GiB: %v", err)
	}
}

// A captured length above the length on the wire happens; the frame then was at least as long as what was captured.
func TestCapturedMoreThanWire(t *testing.T) {
	f := packet.Frame{Time: 1, Data: payload(60, 1), Len: 46}
	got := mustRead(t, classic(binary.LittleEndian, magicNano, 1, f))
	if got[0].Len != 60 || len(got[0].Data) != 60 {
		t.Errorf("length %d with %d bytes, want 60 with 60", got[0].Len, len(got[0].Data))
	}
}

func TestTimeIsNeverZero(t *testing.T) {
	got := mustRead(t, classic(binary.LittleEndian, magicNano, 1, packet.Frame{Data: payload(14, 0), Len: 14}))
	if got[0].Time != 1 {
		t.Errorf("time %d, want 1: 0 means that the clock was not read yet", got[0].Time)
	}
}
