package cause

import (
	"math"
	"testing"
)

const milli = 1e6

func some(number, ns float64) Wait { return Wait{number, ns, ns, ns} }

// TestJudge: who waits, because of whom, and how much of it is the path's.
func TestJudge(t *testing.T) {
	unknown := math.NaN()
	for name, c := range map[string]struct {
		kind  Kind
		end   Role
		wait  Wait
		legs  [Roles]float64
		cause Cause
		ns    float64
	}{
		"closed window, no handshake": {Window, Client, some(3, 900*milli), [Roles]float64{unknown, unknown}, Receiver, 900 * milli},
		"late ACKs of a near host":    {Ack, Client, some(2, 800*milli), [Roles]float64{Client: milli, Server: 200 * milli}, Receiver, 798 * milli},
		"late ACKs of a far host":     {Ack, Client, some(2, 800*milli), [Roles]float64{Client: 390 * milli, Server: milli}, Path, 780 * milli},
		"late ACKs, no handshake":     {Ack, Client, some(2, 800*milli), [Roles]float64{unknown, milli}, Undecided, 800 * milli},
		"slow server":                 {Answer, Server, some(4, 1200*milli), [Roles]float64{milli, 2 * milli}, Slow, 1192 * milli},
		"far server":                  {Answer, Server, some(4, 1200*milli), [Roles]float64{milli, 290 * milli}, Path, 1160 * milli},
		"a SYN-ACK that was late":     {Answer, Server, some(4, 1200*milli), [Roles]float64{milli, 3000 * milli}, Path, 1200 * milli},
	} {
		of := Connection{Legs: c.legs}
		of.Waits[c.kind][c.end] = c.wait
		v := of.Judge()
		if v.Cause != c.cause || v.End != c.end || math.Abs(v.NS-c.ns) > 1 {
			t.Errorf("%s: %s of %d, %.0f ns; want %s of %d, %.0f ns", name, v.Cause, v.End, v.NS, c.cause, c.end, c.ns)
		}
		if !(v.Low <= c.ns && c.ns <= v.High) || v.High-v.Low > 3*tick*v.Number {
			t.Errorf("%s: %.0f to %.0f", name, v.Low, v.High)
		}
	}
	if v := (&Connection{}).Judge(); v.Number != 0 {
		t.Errorf("nobody waits for %s", v.Cause)
	}
}
