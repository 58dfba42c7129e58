// Command live measures ahab with real TCP: flows through two namespaces and a link emulator between them share a slice, and what each got in each
// second is compared with its fair share. `make ahab-live` puts it into the table of docs/eval/ahab-live.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/eval"
)

// run is one measurement.
type run struct {
	hook       string // xdp: where packets arrive; tc: where they leave
	congestion string
	flows      int
	capacity   int // Mbit/s
	delay      time.Duration
	weights    []int // of flows, in turn; nil: 1
	gso        bool
}

// result is what was measured.
type result struct {
	use       float64 // of the capacity, without headers
	deviation float64 // mean |goodput - fair| / fair over seconds and flows; fair is a share of what passed
	ideal     float64 // the same against a share of the capacity
	weighted  float64 // mean deviation of flows' means from their share by weight
}

var (
	binary  = flag.String("xdpmon", "bin/xdpmon", "the binary")
	seconds = flag.Int("seconds", 60, "of a run; five more in front are not counted")
	runs    = flag.Int("runs", 5, "runs, of which the median counts")
	only    = flag.String("only", "", "measure only rows that contain this")
	out     = flag.String("out", "", "put the rows into the table of this document, which keeps its other rows and its text")
	drawn   = flag.String("figures", "", "draw figures 6.8, 6.9, 6.10 and 6.13 into this folder instead; -only takes one of them")
	loud    = flag.Bool("v", false, "print each second what each flow got, its window, round trip and retransmissions")
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("ahab-live: ")
	flag.Parse()
	measure := all
	if *drawn != "" {
		measure = func() error { return figures(*drawn) }
	}
	if err := measure(); err != nil {
		log.Fatal(err)
	}
}

func (r run) String() string {
	name := fmt.Sprintf("%d %s, %d Mbit/s, %s, %v", r.flows, r.congestion, r.capacity, r.hook, r.delay)
	if r.weights != nil {
		name += ", weights " + strings.Trim(strings.ReplaceAll(fmt.Sprint(r.weights), " ", ":"), "[]")
	}
	if r.gso {
		name += ", GSO"
	}
	return name
}

// rows are what is measured.
func rows() (list []run) {
	const rtt = 10 * time.Millisecond
	for _, hook := range []string{"xdp", "tc"} {
		for _, capacity := range []int{100, 500} {
			for _, n := range []int{2, 4, 8} {
				list = append(list, run{hook: hook, congestion: "cubic", flows: n, capacity: capacity, delay: rtt})
			}
		}
		list = append(list, run{hook: hook, congestion: "bbr", flows: 4, capacity: 100, delay: rtt},
			run{hook: hook, congestion: "cubic", flows: 6, capacity: 100, delay: rtt, weights: []int{1, 2, 4}})
	}
	return append(list, run{hook: "xdp", congestion: "cubic", flows: 4, capacity: 100}, run{hook: "tc", congestion: "cubic", flows: 4, capacity: 100},
		run{hook: "tc", congestion: "cubic", flows: 4, capacity: 100, gso: true})
}

func all() error {
	if *out != "" { // before hours are spent on what cannot be stored
		if _, err := eval.ReadSection(*out, section); err != nil {
			return err
		}
	}
	for _, r := range rows() {
		if !strings.Contains(r.String(), *only) {
			continue
		}
		var results []result
		for range *runs {
			one, err := r.measure()
			if err != nil {
				return fmt.Errorf("%v: %w", r, err)
			}
			log.Printf("%v: %+v", r, one)
			results = append(results, one)
		}
		line := r.line(results)
		fmt.Println(line)
		if *out == "" {
			continue
		}
		if err := keep(*out, line); err != nil {
			return err
		}
	}
	return nil
}

func median(results []result, of func(result) float64) float64 {
	list := slices.SortedFunc(func(yield func(float64) bool) {
		for _, r := range results {
			yield(of(r))
		}
	}, cmp.Compare[float64])
	return list[len(list)/2]
}

func (r run) network() (*netns.Topology, error) {
	if r.gso || r.delay == 0 {
		return netns.New(netns.Options{SingleSegments: !r.gso})
	}
	way := emulator.Direction{Delay: emulator.Fixed(r.delay / 2)}
	return netns.New(netns.Options{Middle: netns.Emulator, Link: emulator.Options{AtoB: way, BtoA: way}})
}

// port of the n-th flow; users are flows, so that weights are those of their addresses.
func (r run) address(n int) string {
	w := 1
	if r.weights != nil {
		w = r.weights[n%len(r.weights)]
	}
	return "10.78." + strconv.Itoa(w) + "." + strconv.Itoa(n+1)
}

// config is the file: users are destinations, with weights by prefix.
func (r run) config(dir string) (string, error) {
	text := fmt.Sprintf("capacity: %dMbit\nslices:\n  - name: all\n    user: destination\n    match: {destinations: [10.78.0.0/16]}\n", r.capacity)
	if r.weights != nil {
		text += "    prefix4: 32\n    users: ["
		for _, w := range r.weights {
			text += fmt.Sprintf("{prefix: 10.78.%d.0/24, weight: %d}, ", w, w)
		}
		text += "]\n"
	}
	path := filepath.Join(dir, "slices.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (r run) measure() (result, error) {
	goodput, err := r.goodput()
	if err != nil {
		return result{}, err
	}
	return r.judge(goodput), nil
}

// goodput is what each flow got in each second, bytes.
func (r run) goodput() ([][]float64, error) {
	network, err := r.network()
	if err != nil {
		return nil, err
	}
	defer network.Close()
	dir, err := os.MkdirTemp("", "ahab-live-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := r.config(dir)
	if err != nil {
		return nil, err
	}
	if err := r.addresses(network); err != nil {
		return nil, err
	}
	at, direction := network.B, "ingress"
	if r.hook == "tc" {
		at, direction = network.A, "egress"
	}
	stop, err := attach(at, "--hook", r.hook, "--direction", direction, "--algo", "ahab", "--set", "ahab.config="+path, "--output", "json", "--window", "1s")
	if err != nil {
		return nil, err
	}
	defer stop()
	return r.traffic(network)
}

// addresses are B's, one a flow.
func (r run) addresses(network *netns.Topology) error {
	for n := range r.flows {
		if out, err := network.B.Output(context.Background(), "ip", "addr", "add", r.address(n)+"/32", "dev", network.B.Interface); err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
	}
	out, err := network.A.Output(context.Background(), "ip", "route", "add", "10.78.0.0/16", "via", network.B.IPv4.String(), "dev", network.A.Interface)
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return nil
}

// attach runs the binary in a host's namespace until stop is called; it returns when the first window is there.
func attach(at *netns.Host, args ...string) (stop func(), err error) {
	cmd := exec.Command(*binary, append([]string{"attach", at.Interface}, args...)...)
	var printed strings.Builder
	cmd.Stderr = &printed
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := at.Start(cmd); err != nil {
		return nil, err
	}
	first := make(chan error, 1)
	go func() {
		b := make([]byte, 1<<16)
		for once := false; ; once = true {
			_, err := lines.Read(b)
			if !once {
				first <- err
			}
			if err != nil {
				return
			}
		}
	}()
	if err := <-first; err != nil {
		return nil, errors.Join(cmd.Wait(), errors.New(printed.String()))
	}
	time.Sleep(2 * time.Second)
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}, nil
}

const settling = 5 // seconds that are not counted

// traffic is what each flow got in each second, bytes.
func (r run) traffic(network *netns.Topology) ([][]float64, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	counts := make([]atomic.Int64, r.flows)
	var conns []net.Conn
	for n := range r.flows {
		l, err := network.B.Listen(ctx, "tcp", net.JoinHostPort(r.address(n), "5000"))
		if err != nil {
			return nil, err
		}
		defer l.Close()
		go receive(l, &counts[n])
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
			_ = c.Control(func(fd uintptr) {
				err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, r.congestion)
			})
			return err
		}}
		conn, err := network.A.DialFrom(ctx, &d, "tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		conns = append(conns, conn)
		go func() {
			for b := make([]byte, 1<<17); ; {
				if _, err := conn.Write(b); err != nil {
					return
				}
			}
		}()
	}
	var all [][]float64
	retransmitted := make([]uint32, r.flows)
	last, before := make([]int64, r.flows), time.Now()
	for second := range settling + *seconds {
		time.Sleep(time.Second)
		now := time.Now()
		row := make([]float64, r.flows)
		for n := range counts {
			c := counts[n].Load()
			row[n], last[n] = float64(c-last[n])/now.Sub(before).Seconds(), c
		}
		if *loud {
			log.Print(speak(row, conns, retransmitted))
		}
		if before = now; second >= settling {
			all = append(all, row)
		}
	}
	return all, nil
}

// speak is a line about a second: of each flow goodput in Mbit/s, window in segments, smoothed round trip and retransmissions.
func speak(row []float64, conns []net.Conn, before []uint32) string {
	var b strings.Builder
	for n, conn := range conns {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			continue
		}
		_ = raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			if err != nil {
				return
			}
			fmt.Fprintf(&b, " %6.1f (%d, %.1f ms, %d)", row[n]*8/1e6, info.Snd_cwnd, float64(info.Rtt)/1e3, info.Total_retrans-before[n])
			before[n] = info.Total_retrans
		})
	}
	return b.String()
}

func receive(l net.Listener, count *atomic.Int64) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	for b := make([]byte, 1<<18); ; {
		n, err := conn.Read(b)
		count.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// headers: of 1514 bytes on the link 1448 are goodput.
const headers = 1448. / 1514

func (r run) judge(goodput [][]float64) (res result) {
	weight := func(n int) float64 {
		if r.weights == nil {
			return 1
		}
		return float64(r.weights[n%len(r.weights)])
	}
	total, weights := 0., 0.
	means := make([]float64, r.flows)
	for n := range r.flows {
		weights += weight(n)
		for _, row := range goodput {
			means[n] += row[n] / float64(len(goodput))
		}
		total += means[n]
	}
	capacity := float64(r.capacity) * 1e6 / 8 * headers
	samples := float64(len(goodput) * r.flows)
	for n := range r.flows {
		fair, ideal := total*weight(n)/weights, capacity*weight(n)/weights
		res.weighted += math.Abs(means[n]-fair) / fair / float64(r.flows)
		for _, row := range goodput {
			res.deviation += math.Abs(row[n]-fair) / fair / samples
			res.ideal += math.Abs(row[n]-ideal) / ideal / samples
		}
	}
	res.use = total / capacity
	return res
}
