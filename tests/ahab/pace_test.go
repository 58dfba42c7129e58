package ahab

import (
	"fmt"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Users with windows of different sizes, on round trips of different lengths, who wait in queues of their own share 98 % of the capacity, and lose nothing.
func TestPace(t *testing.T) {
	const end, settled = 4 * time.Second, 2 * time.Second
	const near, far = 100 * time.Microsecond, 10 * time.Millisecond
	for name, users := range map[string][]link.Window{
		"one":                 {{Packets: 4, Trip: near}},
		"one and eight":       {{Packets: 2, Trip: near}, {Packets: 16, Trip: near}},
		"near and far":        {{Packets: 2, Trip: near}, {Packets: 16, Trip: far}, {Packets: 40, Trip: far}},
		"sixteen":             windows(16, near),
		"three beside a late": append(windows(3, near), link.Window{Packets: 16, Trip: near, From: settled / 2}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(t, 1, map[string]string{"capacity": "20Mbit", "act": "pace"})
			d, err := l.Pace(users, end)
			if err != nil {
				t.Fatal(err)
			}
			bounded(t, d, end, 0)
			sum := 0.
			for _, u := range d.Users {
				sum += u.Rate(settled, end)
			}
			if use := sum / paced; use < .97 || use > .985 {
				t.Errorf("%.3f of the capacity is used", use)
			}
			for n, u := range d.Users {
				if share := u.Rate(settled, end) / sum * float64(len(users)); share < .97 || share > 1.03 || d.Dropped[n] > 0 {
					t.Errorf("user %d has %.3f of its share, and lost %d packets", n, share, d.Dropped[n])
				}
			}
		})
	}
}

// windows are users of different windows.
func windows(n int, trip time.Duration) (list []link.Window) {
	for i := range n {
		list = append(list, link.Window{Packets: 2 + i%3, Trip: trip})
	}
	return list
}

// bounded: no second has more than the ceiling, what may wait, and a packet.
func bounded(t *testing.T, d *link.Left, end, horizon time.Duration) {
	t.Helper()
	for at := time.Duration(0); at+time.Second <= end; at += 50 * time.Millisecond {
		sum := 0.
		for _, u := range d.Users {
			sum += u.Rate(at, at+time.Second)
		}
		if most := paced*(1+horizon.Seconds()) + 8*1600; sum > most {
			t.Errorf("%.2f Mbit/s leave in the second from %v on, at most %.2f may", sum/1e6, at, most/1e6)
		}
	}
}

// Whoever sends without regard to losses is held as well, and waits no longer than the horizon; who sends little beside that waits for nobody.
func TestPaceHorizon(t *testing.T) {
	const end = 3 * time.Second
	for _, horizon := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond} {
		for _, proto := range []packet.Valid{packet.UDP, packet.TCP} {
			t.Run(fmt.Sprintf("%v, %#x", horizon, uint64(proto)), func(t *testing.T) {
				l := newLink(t, 1, map[string]string{"capacity": "20Mbit", "act": "pace", "horizon": horizon.String()})
				users := []link.Window{{Packets: 400, Trip: 50 * time.Millisecond, Proto: proto}, {Packets: 200, Trip: 50 * time.Millisecond, Proto: proto},
					{Packets: 1, Trip: 20 * time.Millisecond}}
				d, err := l.Pace(users, end)
				if err != nil {
					t.Fatal(err)
				}
				bounded(t, d, end, horizon)
				if d.Longest > horizon || d.Longest < horizon/2 && proto == packet.TCP {
					t.Errorf("a packet waits for %v", d.Longest)
				}
				if d.Late[0] == 0 || d.Late[2] > 0 {
					t.Errorf("dropped are %d", d.Late)
				}
				if rate := d.Users[2].Rate(2*time.Second, end); rate < .9*1514*8/20e-3 {
					t.Errorf("who sends a packet each 20 ms has %.0f bit/s", rate)
				}
			})
		}
	}
}

// paced is the capacity, bits a second.
const paced = 20e6
