// Package traffic is the traffic of a stage's hosts: requests and answers over TCP with real sockets, streams, DNS and NTP, and attackers' frames
// through packet sockets.
package traffic

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// Ports that servers listen on.
const (
	HTTPS    = 443
	Database = 5432
	DNS      = 53
	NTP      = 123
)

// request is a client's request: a number of bytes after a delay.
type request struct {
	Upload, Answer uint32
	Think          time.Duration
	ReadRate       uint32 // bytes a second that the server takes of the upload; 0: all
}

const requestBytes = 20

func (r request) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, r.Upload)
	b = binary.BigEndian.AppendUint32(b, r.Answer)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Think))
	return binary.BigEndian.AppendUint32(b, r.ReadRate)
}

func readRequest(from io.Reader) (r request, err error) {
	var b [requestBytes]byte
	if _, err := io.ReadFull(from, b[:]); err != nil {
		return r, err
	}
	return request{binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:]), time.Duration(binary.BigEndian.Uint64(b[8:])), binary.BigEndian.Uint32(b[16:])}, nil
}

// Servers answer on all addresses. Close them.
type Servers struct {
	ctx     context.Context
	at      *netns.Namespace
	running sync.WaitGroup
	mu      sync.Mutex
	open    map[io.Closer]struct{}
	slow    map[netip.Addr]time.Duration
}

// Slow adds a delay to each answer of the server at an address.
func (s *Servers) Slow(at netip.Addr, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow[at] = by
}

func (s *Servers) thinks(conn net.Conn) time.Duration {
	at, _ := netip.ParseAddrPort(conn.LocalAddr().String())
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow[at.Addr().Unmap()]
}

// Serve listens on the TCP ports until ctx ends.
func Serve(ctx context.Context, at *netns.Namespace) (*Servers, error) {
	s := &Servers{ctx: ctx, at: at, open: map[io.Closer]struct{}{}, slow: map[netip.Addr]time.Duration{}}
	for _, port := range []int{HTTPS, Database} {
		l, err := at.Listen(ctx, "tcp", fmt.Sprintf("[::]:%d", port))
		if err != nil {
			s.Close()
			return nil, err
		}
		s.keep(l)
		s.running.Go(func() { s.accept(l) })
	}
	return s, nil
}

func (s *Servers) keep(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

func (s *Servers) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.keep(conn)
		s.running.Go(func() {
			s.answer(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.open, conn)
			s.mu.Unlock()
		})
	}
}

// answer serves requests until the client closes.
func (s *Servers) answer(conn net.Conn) {
	for b := make([]byte, 1<<14); ; {
		r, err := readRequest(conn)
		if err != nil || s.take(conn, r, b) != nil || !sleep(s.ctx, r.Think+s.thinks(conn)) {
			return
		}
		for left := int(r.Answer); left > 0; {
			n, err := conn.Write(b[:min(left, len(b))])
			if left -= n; err != nil {
				return
			}
		}
	}
}

// take reads an upload, as fast as the request allows.
func (s *Servers) take(conn net.Conn, r request, b []byte) error {
	if r.ReadRate > 0 {
		_ = conn.(*net.TCPConn).SetReadBuffer(8 << 10)
		b = b[:min(len(b), 1<<11)]
	}
	for left := int(r.Upload); left > 0; {
		n, err := conn.Read(b[:min(left, len(b))])
		if left -= n; err != nil {
			return err
		}
		if r.ReadRate > 0 && !sleep(s.ctx, time.Duration(float64(n)/float64(r.ReadRate)*1e9)) {
			return s.ctx.Err()
		}
	}
	return nil
}

// Usual is the delay of an answer without incident: more than twice the lateness of a busy machine. With 12 ms tshark had medians of 20 to 30 ms under
// the load of floods and thousands of flows: a second incident that was not staged.
const Usual = 40 * time.Millisecond

// Answers answer datagrams on one address; changes apply from the next question on.
type Answers struct {
	mu    sync.Mutex
	delay time.Duration
	deaf  bool
}

// Set adds a delay to answers, or drops them.
func (a *Answers) Set(later time.Duration, deaf bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay, a.deaf = Usual+later, deaf
}

// Late is how much later than usual answers are, and whether they are held back.
func (a *Answers) Late() (later time.Duration, deaf bool) {
	delay, deaf := a.how()
	return delay - Usual, deaf
}

func (a *Answers) how() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.delay, a.deaf
}

// Resolve answers DNS or NTP, by the port, at an address.
func (s *Servers) Resolve(to netip.AddrPort) (*Answers, error) {
	conn, err := s.at.ListenPacket(s.ctx, "udp", to.String())
	if err != nil {
		return nil, err
	}
	s.keep(conn)
	a := &Answers{delay: Usual}
	s.running.Go(func() { a.serve(s.ctx, conn, to.Port()) })
	return a, nil
}

func (a *Answers) serve(ctx context.Context, conn net.PacketConn, port uint16) {
	var b [512]byte
	for {
		n, from, err := conn.ReadFrom(b[:])
		if err != nil {
			return
		}
		delay, deaf := a.how()
		if deaf || n < 12 || port == NTP && n < 48 {
			continue
		}
		reply := answerTo(b[:n], port)
		time.AfterFunc(delay, func() {
			if ctx.Err() == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		})
	}
}

func answerTo(question []byte, port uint16) []byte {
	if port == DNS {
		return dns(binary.BigEndian.Uint16(question), true)
	}
	return ntp(binary.BigEndian.Uint64(question[40:]), true)
}

// Close ends all servers.
func (s *Servers) Close() {
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// sleep returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
