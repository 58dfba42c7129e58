package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/loader/qdisc"
)

// setting is one measurement.
type setting struct {
	Congestion string
	Whom       string        // culprits, everyone; "": nothing is marked
	Tau        time.Duration // the threshold: the delay from which packets are marked
	Weight     int           // culprits: bytes in the queue from which a flow is one; 0: Alpha decides
	Alpha      string        // ... or the share of it
	Chance     string
	Hold       time.Duration
	Interval   time.Duration // of snapshots
	Pair       int           // seed of the web flows: the same for all settings of a pair
}

func (s setting) String() string {
	if s.Whom == "" {
		return s.Congestion + ", nothing marked"
	}
	return fmt.Sprintf("%s, %s from %v, weight %d, alpha %s, %s, hold %v, snapshots of %v", s.Congestion, s.Whom, s.Tau, s.Weight, s.Alpha, s.Chance, s.Hold, s.Interval)
}

// snapshots that reach back further than a queue is long which is kept short, since a wait inside of a few of them is no evidence.
const snapshots = 16

// result is what was measured.
type result struct {
	Goodput float64   // of the bulk flows, bits a second
	Web     []flow    // that began while it was measured, in order of their beginning: the same flows in all settings of a pair
	Bulk    []flow    // what they did while it was measured
	Marked  uint64    // packets, of the bulk flows and others
	Dropped uint64    // packets or aggregates, by the queue
	Queue   []float64 // bytes in the queue, every queueStep
	Stall   float64   // the longest time by which the machine was late, ms
}

// The scene: bulk flows that never end, and web flows that arrive at random, through one queue.
const (
	rate      = 100e6 // bits a second
	buffer    = 400   // packets: 48 ms
	roundTrip = 4 * time.Millisecond
	bulk      = 4
	webLoad   = 0.2 // of the rate
	settling  = 1500 * time.Millisecond
	queueStep = 5 * time.Millisecond
	patience  = 10 * time.Second // for web flows that are on their way at the end
)

// scene is the network of a measurement.
type scene struct {
	*netns.Topology
	reader     *qdisc.Reader
	congestion string
}

func (s *scene) dial(ctx context.Context, to string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { return s.choose(c) }}
	return s.A.DialFrom(ctx, &d, "tcp4", to)
}

// listen on host B. What is accepted has the listener's congestion control.
func (s *scene) listen(ctx context.Context) (net.Listener, error) {
	l, err := s.B.Listen(ctx, "tcp4", netip.AddrPortFrom(s.B.IPv4, 0).String())
	if err != nil {
		return nil, err
	}
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err == nil {
		err = s.choose(raw)
	}
	go func() {
		<-ctx.Done()
		l.Close()
	}()
	return l, err
}

func (s *scene) choose(c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, s.congestion)
	})
	return errors.Join(failed, err)
}

func newScene(congestion string) (*scene, error) {
	way := emulator.Direction{Delay: emulator.Fixed(roundTrip / 2)}
	t, err := netns.New(netns.Options{Middle: netns.Emulator, Link: emulator.Options{AtoB: way, BtoA: way}})
	if err != nil {
		return nil, err
	}
	s := &scene{Topology: t, congestion: congestion}
	if err := s.configure(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *scene) Close() error {
	if s.reader != nil {
		s.reader.Close()
	}
	return s.Topology.Close()
}

func (s *scene) configure() error {
	for _, host := range []*netns.Host{s.A, s.B} {
		err := host.Run(func() error {
			return errors.Join(os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0),
				os.WriteFile("/proc/sys/net/ipv4/tcp_no_metrics_save", []byte("1"), 0))
		})
		if err != nil {
			return err
		}
	}
	for _, line := range []string{
		"qdisc add dev %s root handle 1: htb default 10",
		fmt.Sprintf("class add dev %%s parent 1: classid 1:10 htb rate %.0fbit burst 3k cburst 3k quantum 1514", rate),
		fmt.Sprintf("qdisc add dev %%s parent 1:10 handle 10: pfifo limit %d", buffer),
	} {
		if out, err := s.A.Output(context.Background(), "tc", strings.Fields(fmt.Sprintf(line, s.A.Interface))...); err != nil {
			return fmt.Errorf("tc: %s%w", out, err)
		}
	}
	return s.A.Run(func() (err error) {
		s.reader, err = qdisc.Open()
		return err
	})
}

// measure runs one setting.
func (s setting) measure(seconds time.Duration) (r result, err error) {
	network, err := newScene(s.Congestion)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stop func() (uint64, error)
	if s.Whom != "" {
		if stop, err = s.act(network.A); err != nil {
			return r, err
		}
	}
	b, err := network.startBulk(ctx)
	if err != nil {
		return r, err
	}
	w, err := network.startWeb(ctx, uint64(s.Pair), settling, settling+seconds)
	if err != nil {
		return r, err
	}
	time.Sleep(settling)
	dropped, err := network.dropped()
	if err != nil {
		return r, err
	}
	before, first, began := b.arrived.Load(), b.flows(), time.Now()
	r.Queue, r.Stall, err = network.watch(seconds)
	if err != nil {
		return r, err
	}
	r.Goodput = float64(b.arrived.Load()-before) * 8 / time.Since(began).Seconds()
	r.Bulk = b.since(first)
	r.Web = w.wait()
	if r.Dropped, err = network.dropped(); err != nil {
		return r, err
	}
	r.Dropped -= dropped
	if stop != nil {
		r.Marked, err = stop()
	}
	return r, err
}

// watch notes how much is in the queue.
func (s *scene) watch(span time.Duration) (queue []float64, stall float64, err error) {
	began := time.Now()
	for n := range int(span / queueStep) {
		time.Sleep(time.Until(began.Add(time.Duration(n) * queueStep)))
		stall = max(stall, float64(time.Since(began.Add(time.Duration(n)*queueStep)))/1e6)
		bytes, err := s.reader.Backlog(s.A.Index)
		if err != nil {
			return nil, 0, err
		}
		queue = append(queue, float64(bytes))
	}
	time.Sleep(time.Until(began.Add(span)))
	return queue, stall, nil
}

// dropped is what the queue has dropped so far.
func (s *scene) dropped() (uint64, error) {
	out, err := s.A.Output(context.Background(), "tc", "-s", "-j", "qdisc", "show", "dev", s.A.Interface)
	if err != nil {
		return 0, fmt.Errorf("tc: %s%w", out, err)
	}
	var list []struct {
		Kind  string
		Drops uint64
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return 0, err
	}
	for _, q := range list {
		if q.Kind == "pfifo" {
			return q.Drops, nil
		}
	}
	return 0, errors.New("tc shows no pfifo")
}

// heavy are the flows that never end.
type heavy struct {
	arrived atomic.Int64 // bytes
	conns   []net.Conn
}

func (h *heavy) flows() (list []flow) {
	for _, c := range h.conns {
		list = append(list, flowOf(c))
	}
	return list
}

func (h *heavy) since(first []flow) (list []flow) {
	for n, f := range h.flows() {
		list = append(list, f.less(first[n]))
	}
	return list
}

// startBulk starts the flows that never end, and counts what arrives of them.
func (s *scene) startBulk(ctx context.Context) (*heavy, error) {
	h := &heavy{}
	listener, err := s.listen(ctx)
	if err != nil {
		return nil, err
	}
	for range bulk {
		conn, err := s.dial(ctx, listener.Addr().String())
		if err != nil {
			return nil, err
		}
		far, err := listener.Accept()
		if err != nil {
			return nil, err
		}
		h.conns = append(h.conns, conn)
		go func() {
			<-ctx.Done()
			conn.Close()
			far.Close()
		}()
		go func() {
			for b := make([]byte, 1<<16); ; {
				if _, err := conn.Write(b); err != nil {
					return
				}
			}
		}()
		go func() {
			for b := make([]byte, 1<<17); ; {
				n, err := far.Read(b)
				h.arrived.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
	}
	return h, nil
}

// act attaches xdpmon until stop is called, which returns how many packets it has marked.
func (s setting) act(at *netns.Host) (stop func() (uint64, error), err error) {
	cmd := exec.Command(*binary, "attach", at.Interface, "--algo", "conquest", "--output", "json", "--window", "10m",
		"--set", "conquest.source=qdisc", "--set", "conquest.action=ecn", "--set", "conquest.whom="+s.Whom,
		"--set", "conquest.interval="+s.Interval.String(), "--set", "conquest.tau="+s.Tau.String(), "--set", "conquest.hold="+s.Hold.String(), "--set", "conquest.alpha="+s.Alpha, "--set", fmt.Sprint("conquest.weight=", s.Weight), "--set", "conquest.chance="+s.Chance, "--set", fmt.Sprint("conquest.snapshots=", snapshots))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var printed strings.Builder
	cmd.Stderr = &printed
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := at.Start(cmd); err != nil {
		return nil, err
	}
	lines := newLines(out)
	if _, err := lines.next(); err != nil {
		return nil, fmt.Errorf("attach: %w: %s", errors.Join(err, cmd.Wait()), printed.String())
	}
	return func() (uint64, error) {
		if err := cmd.Process.Signal(unix.SIGINT); err != nil {
			return 0, err
		}
		var w struct {
			Packets struct{ Verdicts struct{ Marked uint64 } }
		}
		err := lines.last(&w)
		return w.Packets.Verdicts.Marked, errors.Join(err, cmd.Wait())
	}, nil
}

// String is the line of the log.
func (r result) String() string {
	times, queue := r.times(0, math.MaxInt), slices.Sorted(slices.Values(r.Queue))
	w, b := total(r.Web), total(r.Bulk)
	return fmt.Sprintf("bulk %.1f Mb/s, queue %.1f kB (99 %% %.0f), dropped %d, stall %.0f ms; %d web flows, %d missing: median %.2f ms, 90 %% %.1f, 99 %% %.1f; marked %d: bulk %.3f, web %.3f of segments; sent again %d and %d, timeouts %d and %d",
		r.Goodput/1e6, mean(r.Queue)/1e3, quantile(queue, .99)/1e3, r.Dropped, r.Stall, len(times), len(r.Web)-len(times), quantile(times, 0.5), quantile(times, 0.9), quantile(times, 0.99), r.Marked,
		b.share(), w.share(), b.Again, w.Again, b.Timeouts, w.Timeouts)
}

// times of web flows of from to to bytes that ended, sorted.
func (r result) times(from, to int) (list []float64) {
	for _, f := range r.Web {
		if f.Time > 0 && f.Size >= from && f.Size <= to {
			list = append(list, f.Time)
		}
	}
	slices.Sort(list)
	return list
}
