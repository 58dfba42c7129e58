package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
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
	Alpha      string        // culprits: share of the queue from which a flow is one
	Hold       time.Duration
	Pair       int // seed of the web flows: the same for all settings of a pair
}

// result is what was measured.
type result struct {
	Goodput float64   // of the bulk flows, bits a second
	Times   []float64 // completion of web flows, ms
	Marked  uint64    // packets, of the bulk flows and others
	Missing int       // web flows that did not end
	Queue   []float64 // bytes in the queue, every queueStep
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

// Sizes of web flows: Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, as the dissertation cites it: median 1.44 kB, mean 38.8 kB.
// Here they are log-normal with these two, cut at mostWeb so that one flow is not a bulk flow.
const (
	webMedian = 1440.
	webMean   = 38800.
	mostWeb   = 1 << 20
)

func webSize(r *rand.Rand) int {
	sigma := math.Sqrt(2 * math.Log(webMean/webMedian))
	for {
		if size := webMedian * math.Exp(sigma*r.NormFloat64()); size >= 1 && size <= mostWeb {
			return int(size)
		}
	}
}

// webRate is how many of them a second are webLoad.
func webRate() float64 {
	r, sum := rand.New(rand.NewPCG(1, 1)), 0.
	const draws = 200_000
	for range draws {
		sum += float64(webSize(r))
	}
	return webLoad * rate / 8 / (sum / draws)
}

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
	before, began := b.Load(), time.Now()
	r.Queue, err = network.watch(seconds)
	if err != nil {
		return r, err
	}
	r.Goodput = float64(b.Load()-before) * 8 / time.Since(began).Seconds()
	r.Times, r.Missing = w.wait()
	if stop != nil {
		r.Marked, err = stop()
	}
	return r, err
}

// watch notes how much is in the queue.
func (s *scene) watch(span time.Duration) (queue []float64, err error) {
	began := time.Now()
	for n := range int(span / queueStep) {
		time.Sleep(time.Until(began.Add(time.Duration(n) * queueStep)))
		bytes, err := s.reader.Backlog(s.A.Index)
		if err != nil {
			return nil, err
		}
		queue = append(queue, float64(bytes))
	}
	time.Sleep(time.Until(began.Add(span)))
	return queue, nil
}

// startBulk starts the flows that never end, and counts what arrives of them.
func (s *scene) startBulk(ctx context.Context) (*atomic.Int64, error) {
	var count atomic.Int64
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
				count.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
	}
	return &count, nil
}

// web are the flows that arrive at random.
type web struct {
	mu      sync.Mutex
	ended   map[uint16]time.Time // by the sender's port
	begun   map[uint16]time.Time // of those that are counted
	started chan struct{}
	dialing sync.WaitGroup
}

// startWeb begins flows until a time; those that begin after from are counted.
func (s *scene) startWeb(ctx context.Context, seed uint64, from, until time.Duration) (*web, error) {
	w := &web{ended: map[uint16]time.Time{}, begun: map[uint16]time.Time{}, started: make(chan struct{})}
	listener, err := s.listen(ctx)
	if err != nil {
		return nil, err
	}
	go w.receive(listener)
	random, mean := rand.New(rand.NewPCG(seed, 7)), 1/webRate()
	began := time.Now()
	go func() {
		defer close(w.started)
		for at := time.Duration(0); ; {
			at += time.Duration(random.ExpFloat64() * mean * 1e9)
			size := webSize(random)
			if at > until || ctx.Err() != nil {
				return
			}
			time.Sleep(time.Until(began.Add(at)))
			w.dialing.Go(func() { w.send(ctx, s, listener.Addr().String(), size, at >= from) })
		}
	}()
	return w, nil
}

func (w *web) send(ctx context.Context, from *scene, to string, size int, counted bool) {
	start := time.Now()
	conn, err := from.dial(ctx, to)
	if err != nil {
		return
	}
	if counted {
		w.mu.Lock()
		w.begun[uint16(conn.LocalAddr().(*net.TCPAddr).Port)] = start
		w.mu.Unlock()
	}
	_, _ = conn.Write(make([]byte, size))
	conn.Close()
}

// receive notes when the last byte of each flow has arrived.
func (w *web) receive(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := io.Copy(io.Discard, conn); err != nil {
				return
			}
			w.mu.Lock()
			w.ended[uint16(conn.RemoteAddr().(*net.TCPAddr).Port)] = time.Now()
			w.mu.Unlock()
		}()
	}
}

// wait is for flows that are on their way. Their times are in ms.
func (w *web) wait() (times []float64, missing int) {
	<-w.started
	w.dialing.Wait()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		w.mu.Lock()
		times, missing = nil, 0
		for port, begun := range w.begun {
			if ended, ok := w.ended[port]; ok {
				times = append(times, float64(ended.Sub(begun))/1e6)
			} else {
				missing++
			}
		}
		w.mu.Unlock()
		if missing == 0 || time.Now().After(deadline) {
			slices.Sort(times)
			return times, missing
		}
	}
}

// act attaches xdpmon until stop is called, which returns how many packets it has marked.
func (s setting) act(at *netns.Host) (stop func() (uint64, error), err error) {
	cmd := exec.Command(*binary, "attach", at.Interface, "--algo", "conquest", "--output", "json", "--window", "10m",
		"--set", "conquest.source=qdisc", "--set", "conquest.action=ecn", "--set", "conquest.whom="+s.Whom, "--set", "conquest.longest=33ms",
		"--set", "conquest.tau="+s.Tau.String(), "--set", "conquest.hold="+s.Hold.String(), "--set", "conquest.alpha="+s.Alpha, "--set", "conquest.snapshots=8")
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
