package ahab

import (
	"net/netip"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/ahab/link"
	"github.com/xdpmon/xdpmon/userspace/ahab"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// indexOf is Jain's index.
func indexOf(shares []float64) float64 {
	sum, squares := 0., 0.
	for _, x := range shares {
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// TestFairness: the interval of Jain's index that a finding prints holds the index of what really passed of the users above the limit in .93 of the windows or more. Where users have few cells of
// the sketch to themselves, their rates read too high by what others put there, and shares look fairer than they are: the interval is wider, and there is none where rates read too high by a tenth.
func TestFairness(t *testing.T) {
	d, err := algo.Lookup(ahab.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		users   int
		set     map[string]string
		windows time.Duration
		seeds   uint64
		judged  bool
	}{
		{"fair", 8, map[string]string{}, 40 * time.Millisecond, 1, true},
		{"collisions", 30, map[string]string{"columns": "128", "tau": "10ms"}, 50 * time.Millisecond, 1, true},
		{"too many collisions", 60, map[string]string{"columns": "64", "tau": "10ms"}, 60 * time.Millisecond, 1, false},
	} {
		held, all, weak, width, mean := 0, 0, 0, 0., 0.
		for seed := range c.seeds {
			c.set["capacity"], c.set["user"], c.set["top"] = "100Mbit", "source", "1000"
			l := newLink(t, seed+1, c.set)
			users := make([]link.User, c.users)
			for n := range users {
				users[n] = link.User{Until: time.Hour, Rate: (2 + float64(n%5)) * link.Capacity / float64(c.users), Src: netip.AddrFrom4([4]byte{10, 0, 1, byte(n)})}
			}
			began := map[time.Duration]report.Body{}
			r, err := l.Run(users, 12*c.windows, func(now time.Duration) error {
				if now%c.windows != 0 {
					return nil
				}
				w, err := l.End(now)
				began[now-c.windows] = w.Body
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for at, b := range began {
				if at == 0 { // the limit is not there yet
					continue
				}
				shares := make([]float64, len(users))
				for n, u := range r.Users {
					for _, bytes := range u.Passed[at/link.Step : (at+c.windows)/link.Step] {
						shares[n] += bytes
					}
				}
				exact := indexOf(shares)
				for _, m := range d.Findings(report.Line{Algorithm: ahab.Name, Report: b}).Measures {
					if m.Symptom != finding.SliceUnfair {
						continue
					}
					if m.Weak != "" {
						weak++
						continue
					}
					all, width, mean = all+1, width+m.Value.High-m.Value.Low, mean+exact
					if m.Value.Low <= exact && exact <= m.Value.High {
						held++
					} else if testing.Verbose() {
						t.Logf("%s: %.4f (%.4f .. %.4f), exact %.4f", c.name, m.Value.Value, m.Value.Low, m.Value.High, exact)
					}
				}
			}
		}
		t.Logf("%s: %d of %d intervals hold the exact index, %.3f on average; they are %.3f wide; %d windows show none", c.name, held, all, mean/float64(all), width/float64(all), weak)
		if judged := all >= 10; judged != c.judged || judged == (weak > 0) || float64(held) < .93*float64(all) {
			t.Errorf("%s: %d of %d intervals hold the exact index, .93 are promised; %d windows show none", c.name, held, all, weak)
		}
	}
}
