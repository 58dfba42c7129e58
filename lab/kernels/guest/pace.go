package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// pacing is TCP of A's sockets on its way out, which has fq and ahab.act=pace, or another act to compare with.
type pacing struct {
	rate  int   // Mbit/s
	users []int // connections of each; a user is a source address
	trip  time.Duration
	gso   bool
	args  []string // instead of ahab.act=pace
	name  string   // of those
}

const (
	paceTime   = 10 * time.Second
	paceWarm   = 3 * time.Second
	paceLeast  = .9
	paceMost   = 1.02 // in any second
	paceOff    = .16
	paceFrames = 1514. / 1448 // of a segment's data on the wire
)

func pacings() []pacing {
	one, four, uneven := []int{1}, []int{1, 1, 1, 1}, []int{1, 8}
	fifo := []string{"--set", `ahab.config={"slices":[{"name":"all","ceiling":"20Mbit","user":"source","prefix4":1}]}`, "--set", "ahab.act=pace"}
	drop := []string{"--set", "ahab.capacity=20Mbit", "--set", "ahab.user=source"}
	return []pacing{
		{rate: 20, users: four}, {rate: 20, users: uneven}, {rate: 20, users: uneven, args: fifo, name: "one word a slice"}, {rate: 20, users: four, args: drop, name: "act=drop"},
		{rate: 20, users: one}, {rate: 20, users: one, gso: true}, {rate: 50, users: four, gso: true}, {rate: 50, users: uneven, gso: true},
		{rate: 20, users: four, trip: 10 * time.Millisecond}, {rate: 20, users: four, trip: 50 * time.Millisecond}, {rate: 5, users: four},
		{rate: 20, users: make16()},
	}
}

func make16() (users []int) {
	for range 16 {
		users = append(users, 1)
	}
	return users
}

func (p pacing) String() string {
	text := fmt.Sprintf("%d Mbit/s, cubic %v, round trip %v", p.rate, p.users, p.trip)
	if p.gso {
		text += ", aggregates"
	}
	if p.name != "" {
		text += ", " + p.name
	}
	return text
}

// through measures; what is not paced is there to be compared.
func (p pacing) through() (detail string, err error) {
	t, err := netns.New(netns.Options{SingleSegments: !p.gso})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := errors.Join(anywhere(t), queue{name: "fq", make: plain("fq")}.install(t), p.late(t)); err != nil {
		return "", err
	}
	args := p.args
	if args == nil {
		args = []string{"--set", fmt.Sprintf("ahab.capacity=%dMbit", p.rate), "--set", "ahab.user=source", "--set", "ahab.act=pace"}
	}
	run, err := start(t, append([]string{"--hook", "tc", "--direction", "egress", "--algo", "ahab", "--window", "1m"}, args...)...)
	if err != nil {
		return "", err
	}
	got, lost, err := p.send(t)
	if err := errors.Join(err, run.end(unix.SIGINT)); err != nil {
		return "", err
	}
	if p.args == nil && len(run.complaint.String()) > 0 {
		detail = "; " + shorten(run.complaint.String())
	}
	return p.judge(got, lost, run, detail)
}

// late delays what B answers.
func (p pacing) late(t *netns.Topology) error {
	if p.trip == 0 {
		return nil
	}
	h, err := t.B.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	return h.QdiscAdd(netlink.NewNetem(netlink.QdiscAttrs{LinkIndex: t.B.Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		netlink.NetemQdiscAttrs{Latency: uint32(p.trip.Microseconds()), Limit: 10000}))
}

// send lets all send. got is what each user's connections have brought, by steps of 100 ms; lost is segments that were sent again.
func (p pacing) send(t *netns.Topology) (got [][]float64, lost uint32, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	counts := make([]atomic.Int64, len(p.users))
	l, err := t.B.Listen(ctx, "tcp4", netip.AddrPortFrom(t.B.IPv4, tcpPort).String())
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				count := &counts[userOf(conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr())]
				for b := make([]byte, 1<<16); ; {
					n, err := conn.Read(b)
					count.Add(int64(n))
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	var conns []net.Conn
	for user, n := range p.users {
		for range n {
			from := userAddress(user)
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from[:]}, Control: func(_, _ string, c syscall.RawConn) (err error) {
				_ = c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") })
				return err
			}}
			conn, err := t.A.DialFrom(ctx, &d, "tcp4", l.Addr().String())
			if err != nil {
				return nil, 0, fmt.Errorf("connect user %d: %w", user, err)
			}
			defer conn.Close()
			conns = append(conns, conn)
			go func() {
				for b := make([]byte, 1<<14); ; {
					if _, err := conn.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}
	for began, n := time.Now(), 0; n <= int((paceWarm+paceTime)/(100*time.Millisecond)); n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * 100 * time.Millisecond)))
		row := []float64{time.Since(began).Seconds()}
		for i := range counts {
			row = append(row, 8*float64(counts[i].Load())*paceFrames)
		}
		got = append(got, row)
	}
	for _, conn := range conns {
		lost += retransmitted(conn)
	}
	return got, lost, nil
}

func retransmitted(conn net.Conn) (n uint32) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Total_retrans
		}
	})
	return n
}

func (p pacing) judge(got [][]float64, lost uint32, run *attached, detail string) (string, error) {
	rate, first, last := 1e6*float64(p.rate), got[int(paceWarm/(100*time.Millisecond))], got[len(got)-1]
	sum := func(row []float64) (bits float64) {
		for _, v := range row[1:] {
			bits += v
		}
		return bits
	}
	total, off, most := sum(last)-sum(first), 0., 0.
	for i := range p.users {
		share := (last[i+1] - first[i+1]) / total * float64(len(p.users))
		off += max(share-1, 1-share) / float64(len(p.users))
	}
	for n := 10; n < len(got); n++ {
		most = max(most, (sum(got[n])-sum(got[n-10]))/rate/(got[n][0]-got[n-10][0]))
	}
	use := total / rate / (last[0] - first[0])
	detail = fmt.Sprintf("use %.3f, worst second %.3f, users %.1f %% off their share, %d segments sent again%s", use, most, 100*off, lost, detail)
	if len(run.windows) > 0 {
		if report, ok := run.windows[len(run.windows)-1]["report"].(map[string]any); ok {
			detail += fmt.Sprintf(" (%v paced by %v ns, %v dropped)", report["paced"], report["pace_delay"], report["segments_dropped"])
		}
	}
	if p.args == nil && (use < paceLeast || most > paceMost+.2 || off > paceOff) {
		return "", errors.New(detail)
	}
	return detail, nil
}
