package scene

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// clients open connections at random times and close them as soon as they are established. All of them are used on the
// thread that calls run, which is in the clients' network namespace.
type clients struct {
	rate    float64 // connections a second, Poisson
	rng     *rand.Rand
	targets []netip.AddrPort

	epoll int
	open  map[int]struct{} // sockets whose handshake is not over
}

func newClients(traffic Traffic, targets ...netip.AddrPort) *clients {
	return &clients{rate: traffic.Rate, rng: rand.New(rand.NewPCG(traffic.Seed, 3)), targets: targets, open: map[int]struct{}{}}
}

// maxOpen limits the handshakes in progress; a slower link gets no further ones.
const maxOpen = 8192

// overdue is the largest lateness of a connection. On an overloaded machine the rate decreases: opening all due connections at once would be a burst, which
// is not the requested traffic and fills tables at once.
const overdue = 10 * time.Millisecond

// run opens connections until ctx ends.
func (c *clients) run(ctx context.Context) (err error) {
	if c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("make epoll: %w", err)
	}
	defer c.close()
	for next := time.Now(); ctx.Err() == nil; {
		if now := time.Now(); now.Sub(next) > overdue {
			next = now
		}
		for ; !next.After(time.Now()); next = next.Add(c.pause()) {
			if err := c.connect(); err != nil {
				return err
			}
		}
		if err := c.finish(time.Until(next)); err != nil {
			return err
		}
	}
	return nil
}

func (c *clients) close() {
	for fd := range c.open {
		unix.Close(fd)
	}
	unix.Close(c.epoll)
}

// pause is the time to the next connection.
func (c *clients) pause() time.Duration {
	return time.Duration(c.rng.ExpFloat64() / c.rate * float64(time.Second))
}

// connect begins a handshake. Closing sends a reset, so that no port stays in TIME_WAIT.
func (c *clients) connect() error {
	if len(c.open) >= maxOpen {
		return nil
	}
	target := c.targets[c.rng.IntN(len(c.targets))]
	family, address := sockaddr(target)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	if err := c.begin(fd, address); err != nil {
		unix.Close(fd)
		return fmt.Errorf("connect to %s: %w", target, err)
	}
	c.open[fd] = struct{}{}
	return nil
}

func (c *clients) begin(fd int, address unix.Sockaddr) error {
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return err
	}
	if err := unix.Connect(fd, address); err != nil && err != unix.EINPROGRESS {
		return err
	}
	return unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(fd)})
}

func sockaddr(target netip.AddrPort) (family int, address unix.Sockaddr) {
	if target.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(target.Port()), Addr: target.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(target.Port()), Addr: target.Addr().As16()}
}

// finish closes sockets that are established (or have failed), waiting for them at most until the next connection is due.
func (c *clients) finish(wait time.Duration) error {
	const longest = 100 * time.Millisecond // the largest delay until the end of ctx is noticed
	wait = min(longest, max(0, wait))
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(c.epoll, events[:], int((wait+time.Millisecond-1)/time.Millisecond))
	if err == unix.EINTR {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wait for connections: %w", err)
	}
	for _, e := range events[:n] {
		unix.Close(int(e.Fd))
		delete(c.open, int(e.Fd))
	}
	return nil
}
