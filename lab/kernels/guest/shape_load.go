package main

import (
	"context"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

const (
	headers   = 28 // bytes of a datagram: IPv4 and UDP
	sinkPort  = 7000
	echoPort  = 7001
	tcpPort   = 7002
	probeGap  = 20 * time.Millisecond
	streamMSS = 1448.0 / 1500 // of a full segment is data: what is used is counted with headers
)

// receiver counts what arrives in B by second and user.
type receiver struct {
	mu        sync.Mutex
	begin     time.Time
	users     []float64 // bits
	seconds   []float64
	sent      []float64 // bits of datagrams that users wanted to send
	datagrams float64
	offered   float64
}

func newReceiver(users int) *receiver {
	return &receiver{begin: time.Now().Add(shareWarm), users: make([]float64, users), sent: make([]float64, users), seconds: make([]float64, int(shareTime/time.Second))}
}

// add counts bits of a user; what arrives before or after the time is not counted.
func (r *receiver) add(user int, bits float64, datagram bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := int(time.Since(r.begin).Seconds())
	if time.Now().Before(r.begin) || n >= len(r.seconds) || user < 0 || user >= len(r.users) {
		return
	}
	r.users[user] += bits
	r.seconds[n] += bits
	if datagram {
		r.datagrams++
	}
}

func userOf(a netip.Addr) int {
	b := a.Unmap().As4()
	return int(b[2])*250 + int(b[3]) - 1
}

// send lets all users send for the time, and counts.
func (c crowd) send(t *netns.Topology) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), shareWarm+shareTime+time.Minute)
	defer cancel()
	throwers, err := c.open(t) // thousands of sockets take seconds
	defer func() {
		for _, u := range throwers {
			_ = unix.Close(u.fd)
		}
	}()
	if err != nil {
		return outcome{}, err
	}
	r := newReceiver(len(c.users))
	stop, err := r.listen(ctx, t)
	if err != nil {
		return outcome{}, err
	}
	defer stop()
	until := r.begin.Add(shareTime)
	var all sync.WaitGroup
	var problem error
	var mu sync.Mutex
	start := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				problem = errors.Join(problem, err)
				mu.Unlock()
			}
		})
	}
	for i, u := range c.users {
		for range u.tcp {
			start(func() error { return stuff(ctx, t, i, until) })
		}
	}
	all.Go(func() { c.throw(throwers, r, until) })
	var o outcome
	start(func() (err error) { o.probes, o.lost, err = probe(t, r.begin, until); return err })
	all.Wait()
	return r.judge(c, o), problem
}

func (r *receiver) judge(c crowd, o outcome) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := 0.0
	for _, bits := range r.seconds {
		total += bits
		o.most = max(o.most, bits/c.rate)
	}
	o.use = total / c.rate / shareTime.Seconds()
	o.datagrams, o.offered = r.datagrams/shareTime.Seconds(), r.offered/shareTime.Seconds()
	for i := range r.sent {
		r.sent[i] /= shareTime.Seconds()
	}
	fair, classes := c.fair(total/shareTime.Seconds(), r.sent), c.classes()
	for _, class := range classes {
		got, due := 0.0, 0.0
		for _, i := range class {
			got, due = got+r.users[i]/shareTime.Seconds(), due+fair[i]
		}
		if due > 0 {
			o.off += max(got-due, due-got) / due / float64(len(classes))
		}
	}
	return o
}

// listen takes datagrams and connections in B, and echoes probes.
func (r *receiver) listen(ctx context.Context, t *netns.Topology) (stop func(), err error) {
	sink, err := t.B.ListenPacket(ctx, "udp4", netip.AddrPortFrom(t.B.IPv4, sinkPort).String())
	if err != nil {
		return nil, err
	}
	echo, err := t.B.ListenPacket(ctx, "udp4", netip.AddrPortFrom(t.B.IPv4, echoPort).String())
	if err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	streams, err := t.B.Listen(ctx, "tcp", netip.AddrPortFrom(t.B.IPv4, tcpPort).String())
	if err != nil {
		return nil, errors.Join(err, sink.Close(), echo.Close())
	}
	if err := roomFor(sink.(*net.UDPConn)); err != nil {
		return nil, errors.Join(err, sink.Close(), echo.Close(), streams.Close())
	}
	go r.datagramsFrom(sink.(*net.UDPConn))
	go echoes(echo.(*net.UDPConn))
	go r.streamsFrom(streams)
	return func() { _, _, _ = sink.Close(), echo.Close(), streams.Close() }, nil
}

// roomFor what arrives while the receiver has no processor.
func roomFor(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20) })
	return errors.Join(failed, err)
}

func (r *receiver) datagramsFrom(conn *net.UDPConn) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		r.add(userOf(from.Addr()), float64(8*(n+headers)), true)
	}
}

func echoes(conn *net.UDPConn) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		_, _ = conn.WriteToUDPAddrPort(buffer[:n], from)
	}
}

func (r *receiver) streamsFrom(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			user := userOf(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())
			for buffer := make([]byte, 1<<16); ; {
				n, err := conn.Read(buffer)
				r.add(user, 8*float64(n)/streamMSS, false)
				if err != nil {
					return
				}
			}
		}()
	}
}

// stuff writes into one connection of a user as long as it takes anything.
func stuff(ctx context.Context, t *netns.Topology, user int, until time.Time) error {
	from := userAddress(user)
	conn, err := t.A.DialFrom(ctx, &net.Dialer{LocalAddr: &net.TCPAddr{IP: from[:]}}, "tcp4", netip.AddrPortFrom(t.B.IPv4, tcpPort).String())
	if err != nil {
		return fmt.Errorf("connect user %d: %w", user, err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(until)
	for buffer := make([]byte, 1<<14); ; {
		if _, err := conn.Write(buffer); err != nil {
			return nil // the time is over
		}
	}
}

// datagramSocket of a user; it does not wait: what a full queue refuses is the user's loss.
func datagramSocket(t *netns.Topology, from [4]byte, port int) (fd int, err error) {
	err = t.A.Run(func() error {
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: from}), unix.Connect(fd, &unix.SockaddrInet4{Addr: t.B.IPv4.As4(), Port: port}))
	})
	return fd, err
}

// thrower is a user who sends datagrams.
type thrower struct {
	number int
	fd     int
	next   time.Time
	gap    time.Duration
}

// open a socket for each user who sends datagrams.
func (c crowd) open(t *netns.Topology) (users []thrower, err error) {
	many := unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &many); err != nil {
		return nil, fmt.Errorf("raise the limit of open files: %w", err)
	}
	for i, d := range c.users {
		if d.rate == 0 {
			continue
		}
		fd, err := datagramSocket(t, userAddress(i), sinkPort)
		if err != nil {
			return users, fmt.Errorf("open a socket for user %d: %w", i, err)
		}
		users = append(users, thrower{number: i, fd: fd, gap: time.Duration(float64(8*c.size) / d.rate * 1e9)})
	}
	return users, nil
}

// throw sends the datagrams of all users, each at its rate.
func (c crowd) throw(users []thrower, r *receiver, until time.Time) {
	now := time.Now()
	for n := range users {
		users[n].next = now.Add(users[n].gap * time.Duration(users[n].number*7919%1000) / 1000)
	}
	payload := make([]byte, max(c.size-headers, 0))
	for len(users) > 0 && time.Now().Before(until) {
		now := time.Now()
		counts := !now.Before(r.begin)
		for i := range users {
			for u := &users[i]; now.After(u.next); u.next = u.next.Add(u.gap) {
				_ = unix.Send(u.fd, payload, unix.MSG_DONTWAIT)
				if counts {
					r.sent[u.number] += float64(8 * c.size)
					r.offered++
				}
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// probe is a user who sends next to nothing: how long do its datagrams take there and back?
func probe(t *netns.Topology, from, until time.Time) (took []float64, lost int, err error) {
	fd, err := datagramSocket(t, [4]byte{10, 128, 255, 1}, echoPort)
	if err != nil {
		return nil, 0, fmt.Errorf("open the probe's socket: %w", err)
	}
	defer unix.Close(fd)
	time.Sleep(time.Until(from))
	sent := 0
	for next := time.Now(); time.Now().Before(until); {
		if !time.Now().Before(next) {
			_ = unix.Send(fd, encoding.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixNano())), unix.MSG_DONTWAIT)
			sent++
			next = next.Add(probeGap)
		}
		took = append(took, answers(fd)...)
		time.Sleep(200 * time.Microsecond)
	}
	time.Sleep(time.Second)
	took = append(took, answers(fd)...)
	slices.Sort(took)
	return took, sent - len(took), nil
}

func answers(fd int) (took []float64) {
	for buffer := make([]byte, 64); ; {
		n, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
		if err != nil || n != 8 {
			return took
		}
		took = append(took, float64(time.Now().UnixNano()-int64(encoding.LittleEndian.Uint64(buffer))))
	}
}
