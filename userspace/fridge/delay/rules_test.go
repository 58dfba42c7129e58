package delay

import "testing"

// What takes days has its own unit of time, and 32 bits of it are 78 hours; of the others they are four and a half minutes.
func TestTick(t *testing.T) {
	for kind, want := range map[Kind]int64{TCPDuration: 65536, DNS: 64, NTP: 64} {
		if got := kind.TickNS(); got != want {
			t.Errorf("kind %d: a tick of %d ns, want %d", kind, got, want)
		}
	}
}
