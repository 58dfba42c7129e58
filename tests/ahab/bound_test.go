package ahab

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
	"github.com/xdpmon/xdpmon/tests/traffic"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Whoever sends, no second has more than the ceiling, its burst of 20 ms and a packet, and datagrams use nearly all of it.
func TestCeiling(t *testing.T) {
	const end = 3 * time.Second
	for _, proto := range []packet.Valid{packet.UDP, packet.TCP} { // senders that react to nothing
		for _, n := range []int{1, 2, 4, 8, 16} {
			t.Run(fmt.Sprintf("%d of kind %#x", n, uint64(proto)), func(t *testing.T) {
				l := newLink(t, 1, map[string]string{"capacity": "100Mbit", "burst": "20ms"})
				users := make([]link.User, n)
				for i := range users {
					users[i] = link.User{Until: time.Hour, Rate: 2 * link.Capacity / float64(n), Proto: proto}
				}
				r, err := l.Run(users, end, nil)
				if err != nil {
					t.Fatal(err)
				}
				const burst = .02*link.Capacity + 8*1600
				for at := time.Duration(0); at+time.Second <= end; at += 100 * time.Millisecond {
					sum := 0.
					for _, u := range r.Users {
						sum += u.Rate(at, at+time.Second)
					}
					if sum > link.Capacity+burst {
						t.Errorf("%.2f Mbit/s pass in the second from %v on, the ceiling is 100", sum/1e6, at)
					}
					if sum < .9*link.Capacity {
						t.Errorf("%.2f Mbit/s pass in the second from %v on of a ceiling of 100", sum/1e6, at)
					}
				}
			})
		}
	}
}

// What a ceiling would refuse passes when the lease has run out, and is counted, of users below the limit too.
func TestUnlimitedBeyondCeiling(t *testing.T) {
	l := newLink(t, 1, map[string]string{"capacity": "8Mbit", "burst": "1ms"})
	if err := l.Algorithm.(algo.Controller).Tick(traffic.Start); err != nil {
		t.Fatal(err)
	}
	core, err := l.Core(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	const packets = 5 // at once: 15 Mbit/s as they are read, and the limit of a user alone is 16
	err = core.Send(coreTCP(0), 10*time.Second, packets)
	if err := errors.Join(err, core.Close()); err != nil {
		t.Fatal(err)
	}
	r := window(t, l)
	if passed, open := value(t, r, "passed_bytes"), value(t, r, "unlimited"); passed != packets*coreSize || open != packets-1 {
		t.Errorf("%d bytes passed, %d packets of %d are counted as beyond the ceiling", passed, open, packets)
	}
}
