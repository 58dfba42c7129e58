package packet_test

import (
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/capture"
	. "github.com/xdpmon/xdpmon/userspace/packet"
)

// Odd packets from public test suites, whole and cut at every length: no panic, no transport that is not there.
func TestCornerCaptures(t *testing.T) {
	var reasons [Reasons]int
	packets := 0
	for _, path := range testutil.CornerCaptures(t) {
		src, err := capture.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			var f Frame
			if src.Next(&f) != nil {
				break
			}
			packets++
			reasons[decodeCut(t, filepath.Base(path), f)]++
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
	for r, n := range reasons {
		t.Logf("%-16v %d", Reason(r), n)
		if n == 0 {
			t.Errorf("no packet of %d is %v: the captures should hold every kind", packets, Reason(r))
		}
	}
}

// decodeCut decodes a frame at every captured length up to 200 bytes and returns the reason of the whole one. What
// a shorter capture shows is never something else than what the whole packet shows.
func decodeCut(t *testing.T, name string, f Frame) Reason {
	t.Helper()
	var whole, cut Packet
	reason := Decode(&f, DecodeOptions{}, &whole)
	all := f.Data
	for n := range min(len(all), 200) {
		f.Data = all[:n:n]
		shorter := Decode(&f, DecodeOptions{}, &cut)
		if shorter != reason && shorter != Truncated {
			t.Fatalf("%s: %v with %d bytes, %v with all", name, shorter, n, reason)
		}
		if cut.Valid&^whole.Valid != 0 {
			t.Fatalf("%s: valid %#x with %d bytes, %#x with all", name, cut.Valid, n, whole.Valid)
		}
		if cut.Has(TCP) && (cut.Seq != whole.Seq || cut.Payload != whole.Payload || cut.Len != whole.Len) {
			t.Fatalf("%s: %+v with %d bytes, %+v with all", name, cut, n, whole)
		}
		var inner Packet
		Decode(&f, DecodeOptions{Decap: true}, &inner)
	}
	return reason
}
