package ahab

import (
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

const (
	coreRate  = 8e6 / 8 // bytes a second
	coreBurst = 20 * time.Millisecond
	coreSize  = 1514
)

// Two cores ask one ceiling at once. A compare-and-swap that a core loses lets its packet pass uncharged: one a core and silence, and each is counted. All else is charged, so that what passes beyond
// the rate is no more than one burst, a packet for each core, and those.
func TestCeilingOfCores(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two cores that run at the same time; this machine has one")
	}
	const cores, rounds, each = 2, 2000, 10
	for name, c := range map[string]struct {
		gap    time.Duration // between two rounds
		begins uint64        // of bursts: rounds that find the word far in the past
	}{
		"silences": {10 * coreBurst, rounds}, // each round is the first after one
		"busy":     {coreBurst / 2, 1},       // what two cores send in a round is three times what the rate allows
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(t, 1, map[string]string{"capacity": "8Mbit", "burst": coreBurst.String(), "spacing": "1GB", "lease": "1h", "flows": "64"})
			atOnce(t, l, cores, rounds, func(of *link.Core, core, round int) error {
				return of.Send(coreTCP(core), time.Second+time.Duration(round)*c.gap, each)
			})
			r := window(t, l)
			lost, passed := value(t, r, "ceiling_uncharged"), value(t, r, "passed_bytes")
			bursts := coreRate*coreBurst.Seconds() + cores*coreSize
			span := float64(rounds) * c.gap.Seconds()
			most := float64(lost*coreSize) + bursts + coreRate*span
			if c.begins > 1 {
				most = float64(lost*coreSize) + float64(c.begins)*bursts
			}
			t.Logf("%d of %d silences had a packet that passed uncharged; %d of at most %.0f bytes passed", lost, c.begins, passed, most)
			if lost > (cores-1)*c.begins {
				t.Errorf("%d packets passed uncharged after %d silences on %d cores", lost, c.begins, cores)
			}
			if float64(passed) > most {
				t.Errorf("%d bytes passed, %.0f may", passed, most)
			}
			least := coreRate * span
			if c.begins > 1 {
				least = float64(c.begins) * coreRate * coreBurst.Seconds()
			}
			if float64(passed) < .98*least {
				t.Errorf("%d bytes passed of %.0f that the ceiling has", passed, least)
			}
		})
	}
}

func coreTCP(core int) packet.Packet {
	return packet.Packet{Valid: packet.IP | packet.Ports | packet.TCP, Proto: 6, TCPFlags: packet.ACK, Src: netip.AddrFrom4([4]byte{10, 0, 0, byte(core)}), Dst: netip.AddrFrom4([4]byte{10, 200, 0, 1}),
		SrcPort: 1024, DstPort: 5001, Payload: coreSize - 54, Segs: 1, Len: coreSize}
}

// atOnce lets cores send, round by round, each beginning when all have ended the one before.
func atOnce(t *testing.T, l *link.Link, cores, rounds int, send func(c *link.Core, core, round int) error) {
	t.Helper()
	var arrived atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for core := range cores {
		all.Go(func() {
			c, err := l.Core(core, uint64(core))
			for round := 0; err == nil && round < rounds; round++ {
				for arrived.Add(1); arrived.Load() < int64(cores*(round+1)) && !failed.Load(); {
					runtime.Gosched()
				}
				if failed.Load() {
					break
				}
				err = send(c, core, round)
			}
			if c != nil {
				err = errors.Join(err, c.Close())
			}
			if err != nil {
				failed.Store(true)
				t.Error(err)
			}
		})
	}
	all.Wait()
}
