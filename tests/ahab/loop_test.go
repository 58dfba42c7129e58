package ahab

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/ahab"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// threeLevels is a file of tenants, each with groups, each with slices: a /16, a /21 of it, a /27 of that.
func threeLevels(tenants, groups, leaves int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{capacity: 100Gbit, room: %d, slices: [\n", tenants*groups*leaves)
	for t := range tenants {
		fmt.Fprintf(&b, "{name: t%d, weight: %d, match: {sources: [10.%d.0.0/16]}, slices: [\n", t, 1+t%3, t)
		for g := range groups {
			fmt.Fprintf(&b, "{name: g%d, match: {sources: [10.%d.%d.0/21]}, slices: [\n", g, t, 8*g)
			for l := range leaves {
				fmt.Fprintf(&b, "{name: l%d, match: {sources: [10.%d.%d.%d/27]}},\n", l, t, 8*g+l/8, l%8*32)
			}
			b.WriteString("]},\n")
		}
		b.WriteString("]},\n")
	}
	b.WriteString("]}")
	return b.String()
}

// loaded is ahab in the kernel with a file of slices, and the registers that packets write.
type loaded struct {
	instance                 algo.Instance
	inst                     *loader.Instance
	slices, offered, dropped *maps.Shared
}

func load(b testing.TB, set map[string]string) *loaded {
	b.Helper()
	testutil.NeedRoot(b)
	d, err := algo.Lookup(ahab.Name)
	if err != nil {
		b.Fatal(err)
	}
	values, err := algo.NewValues(d.Name, d.Params, set)
	if err != nil {
		b.Fatal(err)
	}
	objects, instances, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: values}}, Seed: 1, Notice: b.Logf}, false)
	if err != nil {
		b.Fatal(err)
	}
	l := &loaded{instance: instances[0]}
	if l.inst, err = loader.Load(objects, loader.Options{Seed: 1}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.inst.Close() })
	registers, err := l.inst.Set(ahab.Name)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.instance.Bind(registers); err != nil {
		b.Fatal(err)
	}
	for name, words := range map[string]**maps.Shared{"ahab_slices": &l.slices, "ahab_offered": &l.offered, "ahab_dropped": &l.dropped} {
		array, err := registers.Array(name)
		if err != nil {
			b.Fatal(err)
		}
		if *words, err = array.Shared(); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

// 16,000 slices, and the 4,095 of the twin's form, fit the stages of a switch and load; a tick gives each what it may.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		tenants, groups, leaves int
		form                    string
	}{{20, 20, 40, "exact"}, {13, 15, 21, "table"}} {
		l := load(t, map[string]string{"config": threeLevels(c.tenants, c.groups, c.leaves), "form": c.form})
		for tick := range 3 {
			l.sends(tick)
			if err := l.instance.(algo.Controller).Tick(int64(tick+1) * int64(10*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		sum, n := 0., c.tenants*c.groups*c.leaves
		for slice := 1; slice <= n; slice++ {
			sum += float64(l.slices.Load(6*slice)) * 8
		}
		if sum < 99e9 || sum > 150e9 { // who is idle may take at once what it would get
			t.Errorf("%d slices of a link of 100 Gbit/s may take %.1f Gbit/s", n, sum/1e9)
		}
	}
}

// sends does to the registers what 10 ms of packets do: every slice sends nearly all that it may, two in three lose some, and one in sixteen turns from
// busy to idle and back, so that what others may take changes at each tick.
func (l *loaded) sends(tick int) {
	for n := 1; n < l.offered.Len(); n++ {
		may := l.slices.Load(6*n) / 100
		if n%16 == tick/8%16 {
			may /= 4
		}
		l.offered.Store(n, l.offered.Load(n)+may)
		if n%3 != 0 {
			l.dropped.Store(n, l.dropped.Load(n)+may/50)
		}
	}
}

// cpu is what this thread has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The control loop with the kernel's maps: 16,000 slices in three levels, all busy, in the form of a host, and 4,095, for which the twin has room, in its form. tick-us is what a tick of
// 10 ms takes of a core, window-ms what the end of a window does.
func BenchmarkLoop(b *testing.B) {
	for _, c := range []struct {
		name                    string
		tenants, groups, leaves int
		form                    string
	}{{"16000", 20, 20, 40, "exact"}, {"4095-table", 13, 15, 21, "table"}} {
		b.Run(c.name, func(b *testing.B) {
			l := load(b, map[string]string{"config": threeLevels(c.tenants, c.groups, c.leaves), "form": c.form})
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			loop, now, tick := l.instance.(algo.Controller), int64(1), 0
			var used, worst time.Duration
			for b.Loop() {
				l.sends(tick)
				tick, now = tick+1, now+int64(10*time.Millisecond)
				before, began := cpu(b), time.Now()
				if err := loop.Tick(now); err != nil {
					b.Fatal(err)
				}
				used, worst = used+cpu(b)-before, max(worst, time.Since(began))
			}
			before := cpu(b)
			bank, err := l.inst.Control().Flip()
			if err != nil {
				b.Fatal(err)
			}
			if _, err := l.instance.Read(report.Window{Start: now - int64(time.Second), End: now}, bank); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/1e3, "window-ms")
			b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(tick), "tick-us")
			b.ReportMetric(float64(worst.Microseconds()), "worst-wall-us")
		})
	}
}
