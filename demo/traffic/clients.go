package traffic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// Clients open connections and send requests, from addresses of their namespace.
type Clients struct {
	at      *netns.Namespace
	running sync.WaitGroup
}

// NewClients are clients in a namespace. Wait for them when their context has ended.
func NewClients(at *netns.Namespace) *Clients { return &Clients{at: at} }

// Wait returns when all have ended.
func (c *Clients) Wait() { c.running.Wait() }

// longest is the timeout of a client for any operation.
const longest = 12 * time.Second

// connect opens a connection between two addresses; port 0 is any. Only making the socket needs a thread in the namespace, so that handshakes that
// are never answered hold no threads.
func (c *Clients) connect(ctx context.Context, from netip.Addr, to netip.AddrPort, options ...func(fd int) error) (net.Conn, error) {
	var file *os.File
	err := c.at.Run(func() (err error) {
		file, err = begin(from, to, options)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect %v to %v: %w", from, to, err)
	}
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(longest))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	if err := established(conn.(*net.TCPConn)); err != nil {
		stop()
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func address(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func begin(from netip.Addr, to netip.AddrPort, options []func(fd int) error) (*os.File, error) {
	family := unix.AF_INET6
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "connection")
	for _, set := range options {
		if err := set(fd); err != nil {
			file.Close()
			return nil, err
		}
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	if err := unix.Bind(fd, address(netip.AddrPortFrom(from, 0))); err != nil {
		file.Close()
		return nil, err
	}
	if err := unix.Connect(fd, address(to)); err != nil && err != unix.EINPROGRESS {
		file.Close()
		return nil, err
	}
	return file, nil
}

// established waits until the handshake is over.
func established(conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		if e, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
			failed = errors.Join(err, syscall.Errno(e))
			return true
		}
		_, err := unix.Getpeername(int(fd))
		return err == nil
	})
	return errors.Join(err, failed)
}

// Pace keeps a connection below a rate, bytes a second.
func Pace(rate float64) func(fd int) error {
	return func(fd int) error {
		return unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(rate))
	}
}

// Congestion chooses the congestion control.
func Congestion(name string) func(fd int) error {
	return func(fd int) error {
		return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}
}

// Receive limits the bytes in flight to the client.
func Receive(bytes int) func(fd int) error {
	return func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bytes) }
}

// Ask is one exchange over a connection: an upload, and the answer after a delay.
type Ask struct {
	Upload, Answer int
	Think          time.Duration
	ReadRate       int           // bytes a second that the client takes of the answer; 0: all
	TakeRate       int           // ... that the server takes of the upload
	Stop           time.Duration // before the client reads the answer at all
}

func (a Ask) over(ctx context.Context, conn net.Conn, b []byte) error {
	r := request{uint32(a.Upload), uint32(a.Answer), a.Think, uint32(a.TakeRate)}
	if _, err := conn.Write(append(r.bytes(), b[:min(a.Upload, len(b))]...)); err != nil {
		return err
	}
	for left := a.Upload - min(a.Upload, len(b)); left > 0; {
		n, err := conn.Write(b[:min(left, len(b))])
		if left -= n; err != nil {
			return err
		}
	}
	if a.Stop > 0 && !sleep(ctx, a.Stop) {
		return ctx.Err()
	}
	for left := a.Answer; left > 0; {
		part := min(left, len(b))
		if a.ReadRate > 0 {
			part = min(part, 1<<11)
		}
		n, err := conn.Read(b[:part])
		if left -= n; err != nil {
			return err
		}
		if a.ReadRate > 0 && !sleep(ctx, time.Duration(float64(n)/float64(a.ReadRate)*1e9)) {
			return ctx.Err()
		}
	}
	return nil
}

// Pair is a client's and a server's address.
type Pair struct {
	From netip.Addr
	To   netip.AddrPort
}

// Exchange opens a connection, asks once and closes it.
func (c *Clients) Exchange(ctx context.Context, p Pair, a Ask, options ...func(fd int) error) {
	c.running.Go(func() {
		conn, err := c.connect(ctx, p.From, p.To, options...)
		if err != nil {
			return // an expected error: networks and servers are made to fail
		}
		defer conn.Close()
		_ = a.over(ctx, conn, make([]byte, 1<<14))
	})
}

// Exchanges are opened at random times, at a mean rate a second, until ctx ends.
func (c *Clients) Exchanges(ctx context.Context, r *rand.Rand, rate float64, draw func(*rand.Rand) (Pair, Ask)) {
	c.running.Go(func() {
		for sleep(ctx, time.Duration(r.ExpFloat64()/rate*1e9)) {
			p, a := draw(r)
			c.Exchange(ctx, p, a)
		}
	})
}

// Session is a connection that stays open with repeated requests, until ctx ends.
func (c *Clients) Session(ctx context.Context, r *rand.Rand, p Pair, pause time.Duration, draw func(*rand.Rand) Ask, options ...func(fd int) error) {
	c.running.Go(func() {
		for b := make([]byte, 1<<14); ctx.Err() == nil; sleep(ctx, 200*time.Millisecond) {
			conn, err := c.connect(ctx, p.From, p.To, options...)
			if err != nil {
				continue
			}
			for sleep(ctx, time.Duration(r.ExpFloat64()*float64(pause))) {
				_ = conn.SetDeadline(time.Now().Add(longest))
				if draw(r).over(ctx, conn, b) != nil {
					break
				}
			}
			conn.Close()
		}
	})
}

// Upload is a connection that always has data to send, at most at a rate, bytes a second (0: as TCP allows), until ctx ends.
func (c *Clients) Upload(ctx context.Context, p Pair, rate float64, take int, options ...func(fd int) error) {
	if rate > 0 {
		options = append(options, Pace(rate))
	}
	c.running.Go(func() {
		for ctx.Err() == nil {
			conn, err := c.connect(ctx, p.From, p.To, options...)
			if err != nil {
				sleep(ctx, 200*time.Millisecond)
				continue
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
			_ = conn.SetDeadline(time.Time{})
			if ctx.Err() == nil {
				_ = Ask{Upload: math.MaxInt32, TakeRate: take}.over(ctx, conn, make([]byte, 1<<14))
			}
			stop()
			_ = conn.(*net.TCPConn).SetLinger(0) // unsent data is discarded
			conn.Close()
		}
	})
}

// Question is one DNS or NTP question, by the port, repeated once after a second and a half without an answer.
func (c *Clients) Question(ctx context.Context, r *rand.Rand, p Pair) {
	payload := ntp(r.Uint64(), false)
	if p.To.Port() == DNS {
		payload = dns(uint16(r.Uint32()), false)
	}
	c.running.Go(func() {
		conn, err := c.at.ListenPacket(ctx, "udp", netip.AddrPortFrom(p.From, 0).String())
		if err != nil {
			return
		}
		defer conn.Close()
		for range 2 {
			if _, err := conn.WriteTo(payload, net.UDPAddrFromAddrPort(p.To)); err != nil {
				return
			}
			_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond))
			var b [512]byte
			if _, _, err := conn.ReadFrom(b[:]); err == nil || ctx.Err() != nil {
				return
			}
		}
	})
}

// Questions are sent at random times, at a mean rate a second, until ctx ends.
func (c *Clients) Questions(ctx context.Context, r *rand.Rand, rate float64, draw func(*rand.Rand) Pair) {
	c.running.Go(func() {
		for sleep(ctx, time.Duration(r.ExpFloat64()/rate*1e9)) {
			c.Question(ctx, r, draw(r))
		}
	})
}

// Datagrams of one size, at a rate in bytes a second, until ctx ends.
func (c *Clients) Datagrams(ctx context.Context, p Pair, size int, rate float64) {
	c.running.Go(func() {
		conn, err := c.at.ListenPacket(ctx, "udp", netip.AddrPortFrom(p.From, 0).String())
		if err != nil {
			return
		}
		defer conn.Close()
		began, sent, payload := time.Now(), 0.0, make([]byte, size)
		for pause := max(time.Millisecond, time.Duration(float64(size)/rate*1e9)); sleep(ctx, pause); {
			for due := time.Since(began).Seconds() * rate; sent < due && ctx.Err() == nil; sent += float64(size) {
				_, _ = conn.WriteTo(payload, net.UDPAddrFromAddrPort(p.To))
			}
		}
	})
}

// Burst sends datagrams at once, repeatedly, until ctx ends.
func (c *Clients) Burst(ctx context.Context, p Pair, size, count int, every time.Duration) {
	c.running.Go(func() {
		conn, err := c.at.ListenPacket(ctx, "udp", netip.AddrPortFrom(p.From, 0).String())
		if err != nil {
			return
		}
		defer conn.Close()
		for payload := make([]byte, size); sleep(ctx, every); {
			for range count {
				_, _ = conn.WriteTo(payload, net.UDPAddrFromAddrPort(p.To))
			}
		}
	})
}
