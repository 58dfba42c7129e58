package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdmaps "maps"
	"math"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	bpf "github.com/xdpmon/xdpmon/bpf/conquest"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/queue/scene"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/tests/queue/departures"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/conquest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// run sends a cell's traffic through its queue, with ConQuest and the truth on it.
func (c cell) run(span time.Duration) (all seen, err error) {
	s, err := scene.New(scene.Options{Rate: c.rate, Limit: c.limit, Kind: strings.TrimPrefix(c.kind, pfifo)})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := c.configure(s); err != nil {
		return all, err
	}
	w, err := watch(s.Device)
	if err != nil {
		return all, err
	}
	stop := make(chan struct{})
	var heard error
	var listener sync.WaitGroup
	listener.Go(func() { heard = w.listen(stop) })
	lost, err := c.send(s, span)
	close(stop)
	listener.Wait()
	w.Fate = fate{Lost: lost}
	if err := errors.Join(err, heard, w.count(s, c.kind), w.close()); err != nil {
		return all, err
	}
	return w.seen, nil
}

// drain is longer than packets wait here, so that what was not dropped has left.
const drain = 2 * time.Second

// overflowed finds what the queueing discipline dropped, for any reason of its own.
func overflowed(kind string) *regexp.Regexp {
	return regexp.MustCompile("qdisc " + kind + ` (?s:.*?)\(dropped (\d+),`)
}

// count what was dropped, by the chain and by the queue.
func (w *watched) count(s *scene.Scene, kind string) error {
	counts, err := w.inst.CountsSoFar()
	if err != nil {
		return err
	}
	if counts.Verdicts != nil {
		w.Fate.Dropped = counts.Verdicts.Dropped
	}
	var text []byte
	err = s.Device.Run(func() (err error) {
		text, err = exec.Command("tc", "-s", "qdisc", "show", "dev", scene.Out).Output()
		return err
	})
	if err != nil {
		return fmt.Errorf("read the queue's drops: %w", err)
	}
	found := overflowed(kind).FindAllSubmatch(text, -1)
	if len(found) == 0 {
		return fmt.Errorf("no %s in %q", kind, text)
	}
	for _, m := range found {
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil {
			return err
		}
		w.Fate.Overflow += n
	}
	return nil
}

// configure lets windows be large, answers return, and aggregates be as drawn.
func (c cell) configure(s *scene.Scene) error {
	for _, host := range []*netns.Namespace{s.A, s.B} {
		err := host.Run(func() error {
			return errors.Join(os.WriteFile("/proc/sys/net/ipv4/tcp_rmem", []byte("4096 3000000 3000000"), 0), os.WriteFile("/proc/sys/net/ipv4/tcp_wmem", []byte("4096 3000000 3000000"), 0),
				os.WriteFile("/proc/sys/net/ipv4/tcp_no_metrics_save", []byte("1"), 0), c.ecn())
		})
		if err != nil {
			return err
		}
	}
	if c.segments > 0 {
		if err := s.A.Command("ip link set xdpmon-a0 gso_max_segs %d", c.segments); err != nil {
			return err
		}
	}
	return s.B.Command("ip route add default via 10.79.4.1")
}

// ecn lets TCP understand marks where there are some: DCTCP wherever both ends use it, others where they are asked.
func (c cell) ecn() error {
	if c.congestion == dctcpName {
		return os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte(c.congestion), 0)
	}
	if *action == "ecn" {
		return os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0)
	}
	return nil
}

// mark is what culprits' next packets bear: nothing looks at it but the truth.
const mark = 77

// watched is ConQuest and the truth in one chain.
type watched struct {
	inst  *loader.Instance
	at    *attach.Attachment
	ring  *maps.Ring
	truth *maps.Ring
	seen
}

// values are what ConQuest is asked with.
func values() (d *algo.Descriptor, v algo.Values, err error) {
	if d, err = algo.Lookup(conquest.Name); err != nil {
		return nil, v, err
	}
	v, err = algo.NewValues(d.Name, d.Params, map[string]string{"action": *action, "to": strconv.Itoa(mark)})
	return d, v, err
}

func watch(host *netns.Namespace) (w *watched, err error) {
	d, v, err := values()
	if err != nil {
		return nil, err
	}
	objects, _, err := session.Objects(session.Config{Algorithms: []session.Selected{{Descriptor: d, Values: v}}, Seed: 7}, false)
	if err != nil {
		return nil, err
	}
	truth, err := departures.Object(true)
	if err != nil {
		return nil, err
	}
	truth.Enforces = true // it follows ConQuest in the chain, and sees what that drops
	w = &watched{}
	if w.inst, err = loader.Load(append(objects, truth), loader.Options{Seed: 7, Lazy: true}); err != nil {
		return nil, err
	}
	if err := w.attach(host); err != nil {
		return nil, errors.Join(err, w.inst.Close())
	}
	return w, nil
}

func (w *watched) attach(host *netns.Namespace) error {
	set, err := w.inst.Set(conquest.Name)
	if err != nil {
		return err
	}
	events, err := set.Array("conquest_events")
	if err != nil {
		return err
	}
	if w.ring, err = maps.NewRing(events.Map()); err != nil {
		return err
	}
	if w.truth, err = maps.NewRing(departures.Ring(w.inst)); err != nil {
		return err
	}
	return host.Run(func() (err error) {
		w.at, err = attach.Attach(w.inst, scene.Out, attach.Options{Direction: attach.Egress})
		return err
	})
}

func (w *watched) close() error { return errors.Join(w.at.Close(), w.inst.Close()) }

// hear empties both rings.
func (w *watched) hear() error {
	return errors.Join(
		w.truth.Drain(func(b []byte) {
			if d := departures.Read(b); d.Now > 0 {
				w.Left = append(w.Left, d)
			} else {
				w.Condemned = append(w.Condemned, d)
			}
		}),
		w.ring.Drain(func(b []byte) {
			w.Events = append(w.Events, *(*bpf.ConquestConquestEvent)(unsafe.Pointer(unsafe.SliceData(b))))
		}))
}

func (w *watched) listen(stop chan struct{}) (err error) {
	for {
		select {
		case <-stop:
			return errors.Join(err, w.hear())
		case <-time.After(50 * time.Millisecond):
			err = errors.Join(err, w.hear())
		}
	}
}

// send TCP and UDP at the same time. It returns how many datagrams were sent from each port and did not arrive.
func (c cell) send(s *scene.Scene, span time.Duration) (lost map[uint16]int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	sink, err := s.B.ListenPacket(ctx, "udp4", scene.AddressB+":0")
	if err != nil {
		return nil, err
	}
	arrived, arrival := map[uint16]int{}, make(chan error, 1)
	go func() { arrival <- receive(sink.(*net.UDPConn), arrived) }()
	const size, mice = 1472, 100
	var all sync.WaitGroup
	var errs [3]error
	var others map[uint16]int
	lost = map[uint16]int{}
	all.Go(func() { errs[0] = c.stream(ctx, s) })
	all.Go(func() {
		lost, errs[1] = datagrams(ctx, s, sink.LocalAddr().String(), 1, size, c.udp*c.rate/8/(size+42))
	})
	all.Go(func() { others, errs[2] = datagrams(ctx, s, sink.LocalAddr().String(), mice, 58, 50) })
	all.Wait()
	time.Sleep(drain)
	if err := errors.Join(append(errs[:], sink.Close(), <-arrival)...); err != nil {
		return nil, err
	}
	stdmaps.Copy(lost, others)
	for port, n := range arrived {
		lost[port] -= n
	}
	return lost, nil
}

// receive counts datagrams by their source ports until the socket is closed.
func receive(sink *net.UDPConn, arrived map[uint16]int) error {
	raw, err := sink.SyscallConn()
	if err != nil {
		return err
	}
	var forced error
	if err := raw.Control(func(fd uintptr) { forced = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) }); err != nil || forced != nil {
		return errors.Join(err, forced)
	}
	for b := make([]byte, 1<<11); ; {
		_, from, err := sink.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		arrived[from.Port()]++
	}
}

// stream is one TCP flow that has always something to send.
func (c cell) stream(ctx context.Context, s *scene.Scene) error {
	choose := func(raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, c.congestion)
		})
		return errors.Join(failed, err)
	}
	listener, err := s.B.Listen(ctx, "tcp4", scene.AddressB+":0")
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	conn, err := s.A.DialFrom(ctx, &net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error { return choose(raw) }}, "tcp4", listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetLinger(0) // what still waits is of no use
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	for b := make([]byte, 1<<17); ; {
		if _, err := conn.Write(b); err != nil {
			return nil // the time is over
		}
	}
}

// datagrams of one size, so many a second, of some flows by turns. It returns how many were sent from each port.
func datagrams(ctx context.Context, s *scene.Scene, to string, flows, size int, rate float64) (map[uint16]int, error) {
	conns, from := make([]net.Conn, flows), map[uint16]int{}
	for n := range conns {
		conn, err := s.A.Dial(ctx, "udp4", to)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		conns[n] = conn
	}
	b, began := make([]byte, size), time.Now()
	for sent := 0.0; ctx.Err() == nil; time.Sleep(time.Duration(math.Max(5e5, math.Min(1e8, 1e9/rate)))) {
		for due := time.Since(began).Seconds() * rate; sent < due; sent++ {
			conn := conns[int(sent)%flows]
			switch _, err := conn.Write(b); {
			case err == nil:
				from[conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()]++
			case !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.ECONNREFUSED):
				return nil, err
			}
		}
	}
	return from, nil
}
