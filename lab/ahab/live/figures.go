package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/userspace/ahab"
)

// figures of the dissertation with real packets: 6.8 with datagrams, 6.9, 6.10 and 6.13 with TCP. Each prints what it found.
func figures(dir string) error {
	for _, f := range []struct {
		name string
		draw func(string) error
	}{{"6.8", leaving}, {"6.9, 6.10", goodputs}, {"6.13", sharing}} {
		if strings.Contains("figure "+f.name, *only) {
			if err := f.draw(dir); err != nil {
				return fmt.Errorf("figure %s: %w", f.name, err)
			}
		}
	}
	return nil
}

// stamped is something at a time.
type stamped struct {
	at    time.Time
	value float64
}

// limits looks at the limit of the first slice five times a millisecond until it is stopped, in Mbit/s.
func limits(stop <-chan struct{}, capacity float64) (list []stamped, err error) {
	m, err := newest("ahab_limit")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	full := ahab.Units{Tau: 4 * time.Millisecond, Norm: 1 << 16}.Limit(capacity / 8)
	for {
		select {
		case <-stop:
			return list, nil
		default:
		}
		var units uint32
		if err := m.Lookup(uint32(1), &units); err != nil {
			return nil, err
		}
		list = append(list, stamped{time.Now(), min(1, float64(units)/full) * capacity / 1e6})
		time.Sleep(200 * time.Microsecond)
	}
}

// newest is the map of that name that was made last: those of the run that has just begun.
func newest(name string) (found *ebpf.Map, err error) {
	for id := ebpf.MapID(0); ; {
		if id, err = ebpf.MapGetNextID(id); err != nil {
			if found == nil {
				return nil, fmt.Errorf("find map %s: %w", name, err)
			}
			return found, nil
		}
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue
		}
		if info, err := m.Info(); err != nil || info.Name != name {
			m.Close()
			continue
		}
		if found != nil {
			found.Close()
		}
		found = m
	}
}

// sender sends datagrams of 1,514 bytes on the wire at a rate, when it is on.
type sender struct {
	conn net.Conn
	on   atomic.Bool
	last atomic.Int64 // ns: when the last one left
}

func (s *sender) run(stop <-chan struct{}, rate float64) {
	const wire, payload = 1514, 1472
	b := make([]byte, payload)
	for began, sent := time.Now(), 0; ; time.Sleep(100 * time.Microsecond) {
		select {
		case <-stop:
			return
		default:
		}
		if !s.on.Load() {
			began, sent = time.Now(), 0
			continue
		}
		for due := int(time.Since(began).Seconds() * rate / 8 / wire); sent < due && s.on.Load(); sent++ {
			_, _ = s.conn.Write(b)
			s.last.Store(time.Now().UnixNano())
		}
	}
}

// receiver notes when datagrams arrive.
func receiver(conn net.PacketConn, mu *sync.Mutex, list *[]stamped) {
	for b := make([]byte, 2000); ; {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		mu.Lock()
		*list = append(*list, stamped{time.Now(), float64(n + 42)})
		mu.Unlock()
	}
}

// leaving is figure 6.8: the second of two users of 100 Mbit/s leaves a slice of 100, and returns.
func leaving(dir string) error {
	const capacity, rate, rounds, phase = 100e6, 100e6, 20, 300 * time.Millisecond
	network, err := netns.New(netns.Options{SingleSegments: true})
	if err != nil {
		return err
	}
	defer network.Close()
	detach, err := attach(network.B, "--hook", "xdp", "--direction", "ingress", "--algo", "ahab", "--set", "ahab.capacity=100Mbit", "--output", "json", "--window", "1s")
	if err != nil {
		return err
	}
	defer detach()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	var mu sync.Mutex
	got := make([][]stamped, 2)
	users := make([]*sender, 2)
	for n := range users {
		to, err := network.B.ListenPacket(context.Background(), "udp", net.JoinHostPort(network.B.IPv4.String(), fmt.Sprint(5001+n)))
		if err != nil {
			return err
		}
		defer to.Close()
		go receiver(to, &mu, &got[n])
		from, err := network.A.Dial(context.Background(), "udp", to.LocalAddr().String())
		if err != nil {
			return err
		}
		defer from.Close()
		users[n] = &sender{conn: from}
		wait.Go(func() { users[n].run(stop, rate) })
	}
	var limit []stamped
	var failed error
	wait.Go(func() { limit, failed = limits(stop, capacity) })
	users[0].on.Store(true)
	time.Sleep(phase)
	var left, joined []time.Time
	for range rounds {
		joined = append(joined, time.Now())
		users[1].on.Store(true)
		time.Sleep(phase)
		users[1].on.Store(false)
		time.Sleep(phase)
		left = append(left, time.Unix(0, users[1].last.Load()))
	}
	close(stop)
	wait.Wait()
	if failed != nil {
		return failed
	}
	mu.Lock()
	defer mu.Unlock()
	leaves, joins := until(limit, left, capacity/1e6, phase), until(limit, joined, capacity/2e6, phase)
	log.Printf("figure 6.8: the limit is within a tenth of fair after a user left in %s, after one joined in %s", spread(leaves), spread(joins))
	at := left[slices.Index(leaves, middle(leaves))]
	panel := figure.Panel{X: figure.Axis{Label: "ms after the second user left"}, Y: figure.Axis{Label: "Mbit/s", Max: 130}, Legend: figure.BottomRight}
	for n := range got {
		panel.Series = append(panel.Series, figure.Series{Name: fmt.Sprintf("user %d", n), Points: perMillisecond(got[n], at)})
	}
	line := figure.Series{Name: "limit"}
	for _, l := range limit {
		if ms := l.at.Sub(at).Seconds() * 1e3; ms >= -10 && ms < 60 {
			line.Points = append(line.Points, figure.Point{X: ms, Y: l.value})
		}
	}
	panel.Series = append(panel.Series, line)
	_, err = (&figure.Figure{Panels: []figure.Panel{panel}}).Save(dir, "ahab-live-convergence.svg", "")
	return err
}

// until is how long after each event the limit is first within a tenth of fair, in ms; +Inf where it never is in that phase.
func until(limit []stamped, events []time.Time, fair float64, phase time.Duration) (list []float64) {
	for _, e := range events {
		took := math.Inf(1)
		for _, l := range limit {
			if l.at.After(e) && l.at.Before(e.Add(phase)) && math.Abs(l.value/fair-1) < .1 {
				took = l.at.Sub(e).Seconds() * 1e3
				break
			}
		}
		list = append(list, took)
	}
	return list
}

// middle of a list: one of its values.
func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func spread(list []float64) string {
	sum := 0.
	for _, x := range list {
		sum += x
	}
	return fmt.Sprintf("%.1f ms in the mean, %.1f in the median, %.1f at most (%d times)", sum/float64(len(list)), middle(list), slices.Max(list), len(list))
}

func perMillisecond(got []stamped, at time.Time) (points []figure.Point) {
	const from, to = -10, 60
	bytes := make([]float64, to-from)
	for _, g := range got {
		if ms := int(math.Floor(g.at.Sub(at).Seconds() * 1e3)); ms >= from && ms < to {
			bytes[ms-from] += g.value
		}
	}
	for ms, b := range bytes {
		points = append(points, figure.Point{X: float64(ms + from), Y: b * 8 / 1e3})
	}
	return points
}

// goodputs are figures 6.9 and 6.10: two flows over time, and how goodputs of single seconds are distributed of 2, 4 and 8.
func goodputs(dir string) error {
	var time_, cdf figure.Figure
	for _, n := range []int{2, 4, 8} {
		r := run{hook: "xdp", congestion: "cubic", flows: n, capacity: 100, delay: 10 * time.Millisecond}
		goodput, err := r.goodput()
		if err != nil {
			return err
		}
		log.Printf("figure 6.10: %v: %+v", r, r.judge(goodput))
		if n == 2 {
			time_.Panels = append(time_.Panels, overTime(goodput))
		}
		cdf.Panels = append(cdf.Panels, distribution(goodput, n, headers*100/float64(n)))
	}
	_, err := time_.Save(dir, "ahab-live-goodput.svg", "")
	_, again := cdf.Save(dir, "ahab-live-cdf.svg", "")
	return errors.Join(err, again)
}

func overTime(goodput [][]float64) figure.Panel {
	panel := figure.Panel{X: figure.Axis{Label: "s"}, Y: figure.Axis{Label: "goodput, Mbit/s", Max: 100}, Legend: figure.TopRight}
	for n := range goodput[0] {
		s := figure.Series{Name: fmt.Sprintf("flow %d", n)}
		for second, row := range goodput {
			s.Points = append(s.Points, figure.Point{X: float64(second), Y: row[n] * 8 / 1e6})
		}
		panel.Series = append(panel.Series, s)
	}
	return panel
}

func distribution(goodput [][]float64, flows int, fair float64) figure.Panel {
	var all []float64
	for _, row := range goodput {
		for _, g := range row {
			all = append(all, g*8/1e6)
		}
	}
	slices.SortFunc(all, cmp.Compare[float64])
	s := figure.Series{Name: "goodput of a second"}
	for n, g := range all {
		s.Points = append(s.Points, figure.Point{X: g, Y: float64(n+1) / float64(len(all))})
	}
	ideal := figure.Series{Name: "fair share", Points: []figure.Point{{X: fair, Y: 0}, {X: fair, Y: 1}}}
	return figure.Panel{Title: fmt.Sprintf("%d flows", flows), X: figure.Axis{Label: "Mbit/s", Max: 2 * fair}, Y: figure.Axis{Label: "share of seconds and flows", Max: 1},
		Series: []figure.Series{s, ideal}, Legend: figure.BottomRight}
}

// visit is a flow of a slice for some time.
type visit struct {
	slice       int
	from, until time.Duration
}

// sharing is figure 6.13: two slices of one link of 100 Mbit/s, and their users, who are TCP flows.
func sharing(dir string) error {
	const end, step = 25 * time.Second, 100 * time.Millisecond
	visits := []visit{{1, 0, end}, {1, 0, end}, {2, 5 * time.Second, 20 * time.Second}, {2, 5 * time.Second, 20 * time.Second},
		{2, 10 * time.Second, 15 * time.Second}, {2, 10 * time.Second, 15 * time.Second}}
	way := emulator.Direction{Delay: emulator.Fixed(5 * time.Millisecond)}
	network, err := netns.New(netns.Options{Middle: netns.Emulator, Link: emulator.Options{AtoB: way, BtoA: way}})
	if err != nil {
		return err
	}
	defer network.Close()
	r := run{flows: len(visits)}
	if err := r.addresses(network); err != nil {
		return err
	}
	path := filepath.Join(dir, ".ahab-live-slices.yaml")
	defer os.Remove(path)
	text := "capacity: 100Mbit\nslices:\n"
	for slice := 1; slice <= 2; slice++ {
		var own []string
		for n, v := range visits {
			if v.slice == slice {
				own = append(own, r.address(n))
			}
		}
		text += fmt.Sprintf("  - {name: slice%d, user: destination, match: {destinations: [%s]}}\n", slice, strings.Join(own, ", "))
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	detach, err := attach(network.B, "--hook", "xdp", "--direction", "ingress", "--algo", "ahab", "--set", "ahab.config="+path, "--output", "json", "--window", "1s")
	if err != nil {
		return err
	}
	defer detach()
	counts := make([]atomic.Int64, len(visits))
	began := time.Now()
	var wait sync.WaitGroup
	for n, v := range visits {
		l, err := network.B.Listen(context.Background(), "tcp", net.JoinHostPort(r.address(n), "5000"))
		if err != nil {
			return err
		}
		defer l.Close()
		go receive(l, &counts[n])
		wait.Go(func() { v.send(network, l.Addr().String(), began) })
	}
	panel := figure.Panel{X: figure.Axis{Label: "s"}, Y: figure.Axis{Label: "goodput, Mbit/s", Max: 130}, Legend: figure.TopRight}
	panel.Series = []figure.Series{{Name: "slice 1"}, {Name: "slice 2"}}
	last := make([]int64, len(visits))
	for at := step; at <= end; at += step {
		time.Sleep(time.Until(began.Add(at)))
		sums := [2]float64{}
		for n, v := range visits {
			c := counts[n].Load()
			sums[v.slice-1], last[n] = sums[v.slice-1]+float64(c-last[n]), c
		}
		for slice := range sums {
			panel.Series[slice].Points = append(panel.Series[slice].Points, figure.Point{X: at.Seconds(), Y: sums[slice] * 8 / 1e6 / step.Seconds()})
		}
	}
	wait.Wait()
	for _, piece := range [][2]float64{{2, 5}, {6, 10}, {11, 15}, {16, 20}, {21, 25}} {
		log.Printf("figure 6.13: seconds %.0f to %.0f: slice one %.1f, slice two %.1f Mbit/s", piece[0], piece[1], mean(panel.Series[0], piece), mean(panel.Series[1], piece))
	}
	for _, c := range []struct {
		what string
		at   float64
		fair float64
	}{{"two users join slice two", 5, .5}, {"they leave", 20, 1}} {
		log.Printf("figure 6.13: %s: slice one is within 15 %% of its share for 300 ms after %.1f s", c.what, steady(panel.Series[0], c.at, c.fair*100*headers))
	}
	_, err = (&figure.Figure{Panels: []figure.Panel{panel}}).Save(dir, "ahab-live-slices.svg", "")
	return err
}

func (v visit) send(network *netns.Topology, to string, began time.Time) {
	time.Sleep(time.Until(began.Add(v.from)))
	conn, err := network.A.Dial(context.Background(), "tcp", to)
	if err != nil {
		log.Print(err)
		return
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // what waits when it leaves is not sent any more
	_ = conn.SetDeadline(began.Add(v.until))
	for b := make([]byte, 1<<15); ; {
		if _, err := conn.Write(b); err != nil {
			_ = conn.Close()
			return
		}
	}
}

// mean of a line within [from, to).
func mean(s figure.Series, piece [2]float64) float64 {
	sum, n := 0., 0.
	for _, p := range s.Points {
		if p.X > piece[0] && p.X <= piece[1] {
			sum, n = sum+p.Y, n+1
		}
	}
	return sum / n
}

// steady is how long after a moment the mean of 300 ms is within 15 % of a value; +Inf: never.
func steady(s figure.Series, moment, want float64) float64 {
	for at := moment; at < moment+5; at += .1 {
		if math.Abs(mean(s, [2]float64{at, at + .3})/want-1) < .15 {
			return at - moment
		}
	}
	return math.Inf(1)
}
