package capture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/pcapgo"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

func captures(t *testing.T) []string {
	t.Helper()
	large, err := filepath.Glob(filepath.Join(testutil.Traces(t), "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	return append(large, testutil.CornerCaptures(t)...)
}

type pcapgoReader interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

func openPcapgo(t *testing.T, f *os.File) pcapgoReader {
	t.Helper()
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil {
		t.Fatal(err)
	}
	if binary.LittleEndian.Uint32(magic) == blockSection {
		r, err := pcapgo.NewNgReader(f, pcapgo.NgReaderOptions{WantMixedLinkType: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r.SetSnaplen(1 << 20) // it refuses packets above the header's snap length, which writers do not keep
	return r
}

// Bytes, times and lengths are those that pcapgo reads, as far as it reads.
func TestAgreesWithPcapgo(t *testing.T) {
	total := 0
	for _, path := range captures(t) {
		total += agreeWithPcapgo(t, path)
	}
	t.Logf("%d packets agree", total)
	if total < 100 {
		t.Errorf("only %d packets were compared", total)
	}
}

func agreeWithPcapgo(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	theirs := openPcapgo(t, file)
	ours, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	name := filepath.Base(path)
	for n := 0; ; n++ {
		var rec record
		data, info, theirErr := theirs.ZeroCopyReadPacketData()
		if theirErr != nil {
			return n
		}
		if err := ours.format.next(ours.in, &rec); err != nil {
			t.Errorf("%s: packet %d: %v, pcapgo has one", name, n, err)
			return n
		}
		wire := max(info.Length, len(data))
		if !bytes.Equal(data, rec.data) || info.Timestamp.UnixNano() != rec.time || wire != rec.wire || rec.iface != uint32(info.InterfaceIndex) {
			t.Errorf("%s: packet %d differs: %d bytes at %d, pcapgo has %d at %d", name, n, rec.wire, rec.time, wire, info.Timestamp.UnixNano())
			return n
		}
	}
}

// tshark is a second judge, also where pcapgo stops: number of packets, times and lengths. One start of tshark
// takes a quarter of a second, so it sees the block format, files that are damaged, and every eighth of the others.
func TestAgreesWithTshark(t *testing.T) {
	tshark := testutil.NeedTool(t, "tshark")
	total, files := 0, 0
	for i, path := range testutil.CornerCaptures(t) {
		if strings.HasSuffix(path, "ng") || strings.Contains(path, "fuzz") || i%8 == 0 {
			total += agreeWithTshark(t, tshark, path)
			files++
		}
	}
	t.Logf("%d packets of %d files agree", total, files)
}

func agreeWithTshark(t *testing.T, tshark, path string) int {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(tshark, "-n", "-r", path, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len",
		"-e", "frame.cap_len")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("tshark: %v: %s", err, &stderr)
	}
	damaged := strings.Contains(stderr.String(), "damaged")
	ours, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); n++ {
		var rec record
		if ourErr := ours.format.next(ours.in, &rec); ourErr != nil {
			if !damaged { // otherwise tshark found the damage too, some guesses later
				t.Errorf("%s: packet %d: %v, tshark has one", filepath.Base(path), n+1, ourErr)
			}
			return n
		}
		if got := [3]int64{rec.time, int64(rec.wire), int64(len(rec.data))}; got != tsharkLine(t, lines.Text()) {
			t.Errorf("%s: packet %d is %v, tshark has %q", filepath.Base(path), n+1, got, lines.Text())
		}
	}
	if err := ours.Next(new(packet.Frame)); err == nil {
		t.Errorf("%s: more than the %d packets that tshark has", filepath.Base(path), n)
	}
	return n
}

// tsharkLine reads time, length and captured length. Microseconds above a million are printed as they are.
func tsharkLine(t *testing.T, line string) [3]int64 {
	t.Helper()
	var sec, frac, wire, captured int64
	if _, err := fmt.Sscanf(strings.Replace(line, ".", " ", 1), "%d %d %d %d", &sec, &frac, &wire, &captured); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return [3]int64{sec*1e9 + frac, wire, captured}
}

// Damage of every kind in a real capture: no panic, no endless loop, and the length of a frame covers its bytes.
func FuzzReader(f *testing.F) {
	f.Add(classic(binary.BigEndian, magicNano, 113, threeFrames()...))
	f.Add(zipped(f, classic(binary.LittleEndian, magicMicro, 1, threeFrames()...)))
	w := newNG(binary.LittleEndian)
	w.iface(1, 0, w.resolution(9), w.offset(3))
	w.iface(276, 0, w.resolution(0x80|40))
	w.enhanced(0, 77, payload(60, 1), 60, w.flags(2))
	w.simple(payload(5, 1), 5)
	w.enhanced(1, 77, payload(60, 1), 60)
	f.Add(w.buf)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader("fuzz", bytes.NewReader(b))
		if err != nil {
			return
		}
		defer r.Close()
		for n := 0; ; n++ {
			var frame packet.Frame
			if err := r.Next(&frame); err != nil {
				return
			}
			if frame.Len < len(frame.Data) || frame.Time <= 0 || n > len(b)*1100 {
				t.Fatalf("packet %d: %+v", n, frame)
			}
		}
	})
}

// The bar is 1.5 million packets a second from the page cache on one core: 667 ns.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"pcap", "pcapng", "gzip"} {
		b.Run(name, func(b *testing.B) { benchmarkRead(b, benchmarkFile(b, name)) })
	}
}

const benchmarkPackets = 200000

// benchmarkFile is a capture with full frames of Ethernet, as long as the average one of real traffic (700 bytes).
func benchmarkFile(b *testing.B, kind string) string {
	b.Helper()
	frames := make([]packet.Frame, benchmarkPackets)
	for i := range frames {
		frames[i] = packet.Frame{Time: int64(i+1) * 1000, Data: payload(700, byte(i)), Len: 700}
	}
	raw := classic(binary.LittleEndian, magicNano, 1, frames...)
	switch kind {
	case "pcapng":
		w := newNG(binary.LittleEndian)
		w.iface(1, 0)
		for _, f := range frames {
			w.enhanced(0, uint64(f.Time), f.Data, f.Len, w.flags(1))
		}
		raw = w.buf
	case "gzip":
		raw = zipped(b, raw)
	}
	path := filepath.Join(b.TempDir(), kind)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

func benchmarkRead(b *testing.B, path string) {
	n := 0
	for b.Loop() {
		r, err := Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		var f packet.Frame
		for err == nil {
			if err = r.Next(&f); err == nil {
				n++
			}
		}
		if err != io.EOF {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mpackets/s")
}
