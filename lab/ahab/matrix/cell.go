package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/lab/ahab/policer"
	"github.com/xdpmon/xdpmon/lab/queue/dctcp"
)

// cell is one measurement: TCP flows that share one slice.
type cell struct {
	Rate       int // Mbit/s
	Congestion string
	Flows      int
	Trip       time.Duration // round trip; below a millisecond: a bare veth
	GSO        bool
	Hook       string  // xdp, tc: where packets arrive; egress: where they leave; policer: a plain one where they arrive, and no xdpmon
	Guests     []guest // in the place of flows: users are their addresses
	Set        []string
}

// guest is a sender with an address of its own.
type guest struct {
	UDP float64 // bits a second of datagrams
	TCP int     // connections
}

// sender is one connection, or one stream of datagrams.
type sender struct {
	user int
	udp  float64
}

func (c cell) senders() (list []sender) {
	for n := range c.Flows {
		list = append(list, sender{user: n})
	}
	for n, g := range c.Guests {
		if g.UDP > 0 {
			list = append(list, sender{n, g.UDP})
		}
		for range g.TCP {
			list = append(list, sender{user: n})
		}
	}
	return list
}

func (c cell) users() int { return max(c.Flows, len(c.Guests)) }

func (c cell) String() string {
	name := fmt.Sprintf("%d Mbit/s, %d %s, %v, %s", c.Rate, c.Flows, c.Congestion, c.Trip, c.Hook)
	if len(c.Guests) > 0 {
		name = fmt.Sprintf("%d Mbit/s, %v, %s", c.Rate, c.Guests, c.Hook)
	}
	if c.GSO {
		name += ", GSO"
	}
	return name
}

// step is how often counters are read.
const step = 100 * time.Millisecond

// settling is in front of the seconds that use and shares are of; a ceiling holds in it as well.
const settling = 3 * time.Second

// trace is what was seen of a cell, by steps.
type trace struct {
	at     []time.Time
	wire   []float64   // bytes that host B took in, as on the wire, ever since
	flows  [][]float64 // bytes of each flow that B's programs read, ever since
	report []window
}

// window is a line of xdpmon.
type window struct {
	Report map[string]json.RawMessage `json:"report"`
}

func (w window) number(name string) float64 {
	var v float64
	_ = json.Unmarshal(w.Report[name], &v)
	return v
}

// network of a cell. The emulator takes single segments, so aggregates over a distance are those of A's way out.
func (c cell) network() (*netns.Topology, error) {
	if c.Trip < time.Millisecond {
		return netns.New(netns.Options{SingleSegments: !c.GSO})
	}
	way := emulator.Direction{Delay: emulator.Fixed(c.Trip / 2)}
	return netns.New(netns.Options{Middle: netns.Emulator, Link: emulator.Options{AtoB: way, BtoA: way}})
}

// withECN is appended to the name of a congestion control whose flows ask for ECN; DCTCP's always do.
const withECN = "+ecn"

func (c cell) name() string {
	if c.Congestion == "dctcp" {
		return dctcp.Name
	}
	return strings.TrimSuffix(c.Congestion, withECN)
}

// askForECN lets both hosts' connections do so.
func (c cell) askForECN(network *netns.Topology) error {
	if !strings.HasSuffix(c.Congestion, withECN) {
		return nil
	}
	set := func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0) }
	return errors.Join(network.A.Run(set), network.B.Run(set))
}

// run measures for a while.
func (c cell) run(binary string, span time.Duration) (*trace, error) {
	network, err := c.network()
	if err != nil {
		return nil, err
	}
	defer network.Close()
	if c.Hook == hookPolicer {
		return c.policed(network, span)
	}
	at, direction, hook := network.B, "ingress", c.Hook
	if c.Hook == "egress" {
		at, direction, hook = network.A, "egress", "tc"
	}
	args := []string{"attach", at.Interface, "--hook", hook, "--direction", direction, "--algo", "ahab", "--set", fmt.Sprintf("ahab.capacity=%dMbit", c.Rate),
		"--window", "1s", "--output", "json"}
	if len(c.Guests) > 0 {
		args = append(args, "--set", "ahab.user=source")
	}
	for _, s := range c.Set {
		args = append(args, "--set", s)
	}
	a, err := start(at, binary, args...)
	if err != nil {
		return nil, err
	}
	t, err := c.traffic(network, span)
	windows, ended := a.stop()
	if err != nil || ended != nil {
		return nil, errors.Join(err, ended)
	}
	t.report = windows
	return t, nil
}

// hookPolicer in the place of a hook measures what TCP makes of a plain policer there, with the same rate and burst: only what it does not use either is TCP's, and not AHAB's.
const hookPolicer = "policer"

// policed is a cell with a plain policer in the place of xdpmon.
func (c cell) policed(network *netns.Topology, span time.Duration) (t *trace, err error) {
	end, err := policer.Attach(network.B, ebpf.AttachTCXIngress, float64(c.Rate), burstTime)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return c.traffic(network, span)
}

// attached is xdpmon while it runs.
type attached struct {
	cmd     *exec.Cmd
	printed bytes.Buffer
	lines   chan []byte
	windows []window
}

// start returns when the first line, which describes the run, has been printed.
func start(at *netns.Host, binary string, args ...string) (*attached, error) {
	a := &attached{cmd: exec.Command(binary, args...), lines: make(chan []byte, 1000)}
	a.cmd.Stderr = &a.printed
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := at.Start(a.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(a.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			a.lines <- bytes.Clone(s.Bytes())
		}
	}()
	if _, ok := <-a.lines; !ok {
		return nil, fmt.Errorf("attach: %w: %s", a.cmd.Wait(), a.printed.String())
	}
	return a, nil
}

func (a *attached) stop() ([]window, error) {
	_ = a.cmd.Process.Signal(syscall.SIGINT)
	for line := range a.lines {
		var w window
		if err := json.Unmarshal(line, &w); err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		a.windows = append(a.windows, w)
	}
	if err := a.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("xdpmon: %w: %s", err, a.printed.String())
	}
	return a.windows, nil
}

// traffic lets all send.
func (c cell) traffic(network *netns.Topology, span time.Duration) (*trace, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := errors.Join(c.addresses(ctx, network), c.askForECN(network)); err != nil {
		return nil, err
	}
	counts := make([]atomic.Int64, c.users())
	var conns []net.Conn
	for n, s := range c.senders() {
		open := c.stream
		if s.udp > 0 {
			open = c.datagrams
		}
		conn, close, err := open(ctx, network, n, s, &counts[s.user])
		if err != nil {
			return nil, err
		}
		defer close()
		conns = append(conns, conn)
	}
	for n, s := range c.senders() {
		go send(ctx, conns[n], s.udp)
	}
	return watch(network, counts, conns, span)
}

// addresses are those of guests.
func (c cell) addresses(ctx context.Context, network *netns.Topology) error {
	for n := range c.Guests {
		if _, err := network.A.Output(ctx, "ip", "addr", "add", source(n)+"/32", "dev", network.A.Interface); err != nil {
			return err
		}
	}
	if len(c.Guests) == 0 {
		return nil
	}
	_, err := network.B.Output(ctx, "ip", "route", "add", "10.78.0.0/16", "via", network.A.IPv4.String(), "dev", network.B.Interface)
	return err
}

func source(n int) string { return "10.78.0." + strconv.Itoa(n+1) }

// from is the address that a sender has; nil: the host's.
func (c cell) from(s sender) net.IP {
	if len(c.Guests) == 0 {
		return nil
	}
	return net.ParseIP(source(s.user))
}

func (c cell) stream(ctx context.Context, network *netns.Topology, n int, s sender, count *atomic.Int64) (net.Conn, func(), error) {
	control := func(_, _ string, conn syscall.RawConn) (err error) {
		_ = conn.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, c.name())
		})
		return err
	}
	l, err := listen(network, n, control)
	if err != nil {
		return nil, nil, err
	}
	go receive(l, count)
	d := net.Dialer{Control: control}
	if from := c.from(s); from != nil {
		d.LocalAddr = &net.TCPAddr{IP: from}
	}
	conn, err := network.A.DialFrom(ctx, &d, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return conn, func() { _, _ = conn.Close(), l.Close() }, nil
}

// datagramBytes are those of one on the wire; its headers have 42.
const datagramBytes = 1514

func (c cell) datagrams(ctx context.Context, network *netns.Topology, n int, s sender, count *atomic.Int64) (net.Conn, func(), error) {
	to, err := network.B.ListenPacket(ctx, "udp", net.JoinHostPort(network.B.IPv4.String(), strconv.Itoa(5000+n)))
	if err != nil {
		return nil, nil, err
	}
	_ = to.(*net.UDPConn).SetReadBuffer(8 << 20)
	go func() {
		for b := make([]byte, datagramBytes); ; {
			n, _, err := to.ReadFrom(b)
			if err != nil {
				return
			}
			count.Add(int64(n) * 1448 / 1472) // as much of a frame as TCP has
		}
	}()
	d := net.Dialer{}
	if from := c.from(s); from != nil {
		d.LocalAddr = &net.UDPAddr{IP: from}
	}
	conn, err := network.A.DialFrom(ctx, &d, "udp", to.LocalAddr().String())
	if err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	return conn, func() { _, _ = conn.Close(), to.Close() }, nil
}

// send sends until the connection is closed: at a rate, or as much as it takes.
func send(ctx context.Context, conn net.Conn, rate float64) {
	if rate == 0 {
		for b := make([]byte, 1<<17); ; {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
	b := make([]byte, datagramBytes-42)
	for began, sent := time.Now(), 0.; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for due := time.Since(began).Seconds() * rate / 8 / datagramBytes; sent < due; sent++ {
			_, _ = conn.Write(b)
		}
	}
}

func listen(network *netns.Topology, n int, control func(string, string, syscall.RawConn) error) (l net.Listener, err error) {
	config := net.ListenConfig{Control: control}
	config.SetMultipathTCP(false)
	err = network.B.Run(func() error {
		l, err = config.Listen(context.Background(), "tcp", net.JoinHostPort(network.B.IPv4.String(), strconv.Itoa(5000+n)))
		return err
	})
	return l, err
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

// watch reads counters until the time is over.
func watch(network *netns.Topology, counts []atomic.Int64, conns []net.Conn, span time.Duration) (*trace, error) {
	t := &trace{}
	for began, n := time.Now(), 0; n <= int((settling+span)/step); n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * step)))
		at, wire, err := sampled(network.B)
		if err != nil {
			return nil, err
		}
		row := make([]float64, len(counts))
		for i := range counts {
			row[i] = float64(counts[i].Load())
		}
		t.at, t.wire, t.flows = append(t.at, at), append(t.wire, wire), append(t.flows, row)
		if *loud && n%int(time.Second/step) == 0 {
			fmt.Fprintln(os.Stderr, "  ", speak(conns))
		}
	}
	return t, nil
}

// readWithin is how long reading a counter may take: a reader that a busy machine holds up in between has a counter and a time that do not belong together.
const readWithin = 2 * time.Millisecond

// sampled is a counter and when it was read. It is read again while that takes too long, a hundred times at most.
func sampled(h *netns.Host) (at time.Time, wire float64, err error) {
	for range 100 {
		at = time.Now()
		if wire, err = wireBytes(h); err != nil || time.Since(at) < readWithin {
			break
		}
	}
	return at, wire, err
}

// speak is a line of what each sender knows: window in segments, threshold, round trip, retransmissions.
func speak(conns []net.Conn) string {
	var b strings.Builder
	for _, conn := range conns {
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			continue
		}
		raw, err := tcp.SyscallConn()
		if err != nil {
			continue
		}
		_ = raw.Control(func(fd uintptr) {
			if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
				fmt.Fprintf(&b, " (%d/%d, %.1f ms, rto %d, %d, backoff %d)", info.Snd_cwnd, int32(info.Snd_ssthresh), float64(info.Rtt)/1e3, info.Rto/1000, info.Total_retrans, info.Backoff)
			}
		})
	}
	return b.String()
}

// wireBytes are what the stack of a host has taken in of IPv4, as on the wire: an aggregate's segments each have their headers there.
func wireBytes(h *netns.Host) (float64, error) {
	const link, inner = 14, 52 // Ethernet; IPv4 and TCP with a timestamp
	var ip map[string]float64
	err := h.Run(func() (err error) {
		ip, err = counters("/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat")
		return err
	})
	if err != nil {
		return 0, err
	}
	segments := ip["InNoECTPkts"] + ip["InECT0Pkts"] + ip["InECT1Pkts"] + ip["InCEPkts"]
	return ip["InOctets"] + link*segments + inner*(segments-ip["InReceives"]), nil
}

// counters of IP.
func counters(paths ...string) (map[string]float64, error) {
	all := map[string]float64{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var names []string
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] != "Ip:" && words[0] != "IpExt:" {
				continue
			}
			if _, err := strconv.ParseFloat(words[1], 64); err != nil {
				names = words
				continue
			}
			for n, w := range words[1:] {
				if n+1 < len(names) {
					all[names[n+1]], _ = strconv.ParseFloat(w, 64)
				}
			}
		}
	}
	return all, nil
}

// String is what a guest sends.
func (g guest) String() string {
	if g.UDP > 0 {
		return fmt.Sprintf("UDP %.0fM", g.UDP/1e6)
	}
	return fmt.Sprintf("TCP x %d", g.TCP)
}
