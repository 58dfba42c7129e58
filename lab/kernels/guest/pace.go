package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// pacing is TCP of A's sockets on its way out, which has fq and ahab.act=pace, or something else to compare with.
type pacing struct {
	rate       int    // Mbit/s
	congestion string // "": cubic
	users      []int  // connections of each; a user is a source address
	udp        int    // Mbit/s of datagrams of one more user; 0: there is none
	trip       time.Duration
	gso        bool
	args       []string // instead of ahab.act=pace
	plain      bool     // no xdpmon, but an HTB class of the rate with fq: what this machine can carry
	name       string   // of what is compared
}

const (
	paceTime   = 20 * time.Second
	paceWarm   = 3 * time.Second
	paceLeast  = .9
	paceMean   = 1.01
	paceSecond = 1.02 // in any second, and a burst, and what was due while this machine stood still, up to paceLate
	paceBurst  = .02  // seconds, or one aggregate
	paceOff    = .16
	paceFrames = 1514. / 1448 // of a segment's data on the wire

	// An emulated machine that gets no processor cannot be judged: the control loop's lease (180 ms) has run out before its next tick.
	paceLate = 100 * time.Millisecond

	paceSeed  = 24
	paceDrawn = 12
)

// pacings are chosen rows, what they are compared with, and cells that are drawn.
func pacings() []pacing {
	one, four, uneven := []int{1}, equal(4), []int{1, 8}
	slice := []string{"--set", `ahab.config={"slices":[{"name":"all","ceiling":"20Mbit","user":"source","prefix4":1}]}`, "--set", "ahab.act=pace"}
	drop := []string{"--set", "ahab.capacity=20Mbit", "--set", "ahab.user=source"}
	list := []pacing{
		{rate: 20, users: four}, {rate: 20, users: uneven}, {rate: 20, users: one}, {rate: 20, users: one, gso: true}, {rate: 50, users: four, gso: true},
		{rate: 50, users: uneven, gso: true}, {rate: 20, users: four, trip: 10 * time.Millisecond}, {rate: 20, users: four, trip: 50 * time.Millisecond},
		{rate: 20, users: equal(16)}, {rate: 24, users: uneven, udp: 20}, {rate: 24, users: uneven, udp: 20, gso: true},
		{rate: 20, users: uneven, args: slice, name: "one word a slice"}, {rate: 20, users: four, args: drop, name: "act=drop"},
		{rate: 20, users: uneven, plain: true, name: "htb, fq"}, {rate: 20, users: four, trip: 50 * time.Millisecond, plain: true, name: "htb, fq"},
	}
	for n := range paceDrawn {
		list = append(list, drawnPacing(paceSeed, n))
	}
	return list
}

// drawnPacing is the same for the same seed and number.
func drawnPacing(seed uint64, n int) pacing {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	return pacing{rate: []int{5, 20, 50}[r.IntN(3)], congestion: []string{"cubic", "reno", "bbr", "dctcp"}[r.IntN(4)], users: equal([]int{1, 4, 16}[r.IntN(3)]),
		trip: []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}[r.IntN(4)], gso: r.IntN(2) == 0}
}

// equal users have a connection each.
func equal(n int) (users []int) {
	for range n {
		users = append(users, 1)
	}
	return users
}

func (p pacing) String() string {
	text := fmt.Sprintf("%d Mbit/s, %s %v, round trip %v", p.rate, p.algorithm(), p.users, p.trip)
	if p.udp > 0 {
		text += fmt.Sprintf(", UDP %d Mbit/s", p.udp)
	}
	if p.gso {
		text += ", aggregates"
	}
	if p.name != "" {
		text += ", " + p.name
	}
	return text
}

// all users, of datagrams too.
func (p pacing) all() int { return len(p.users) + min(p.udp, 1) }

func (p pacing) algorithm() string { return cmp.Or(p.congestion, "cubic") }

// through measures; what is not paced is there to be compared.
func (p pacing) through() (detail string, err error) {
	t, err := netns.New(netns.Options{SingleSegments: !p.gso})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := errors.Join(anywhere(t), p.queue().install(t), p.late(t)); err != nil {
		return "", err
	}
	run := &attached{}
	if !p.plain {
		if run, err = p.attach(t); err != nil {
			return "", err
		}
	}
	late := lateness()
	got, lost, err := p.send(t)
	starved := late()
	if !p.plain {
		err = errors.Join(err, run.end(unix.SIGINT))
	}
	if err != nil {
		return "", err
	}
	return p.judge(got, lost, run, starved)
}

func (p pacing) queue() queue {
	if p.plain {
		return queue{name: "htb, fq", make: plain("fq"), below: true, rate: uint64(p.rate) * 1e6}
	}
	return queue{name: "fq", make: plain("fq")}
}

func (p pacing) attach(t *netns.Topology) (*attached, error) {
	args := p.args
	if args == nil {
		args = []string{"--set", fmt.Sprintf("ahab.capacity=%dMbit", p.rate), "--set", "ahab.user=source", "--set", "ahab.act=pace"}
	}
	return start(t, append([]string{"--hook", "tc", "--direction", "egress", "--algo", "ahab", "--window", "1m"}, args...)...)
}

// lateness measures by how much timers of this machine are late until the function is called.
func lateness() func() time.Duration {
	stop, done := make(chan struct{}), make(chan time.Duration)
	go func() {
		const each = 5 * time.Millisecond
		worst := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-stop:
				done <- worst
				return
			case <-time.After(each):
				worst = max(worst, time.Since(began)-each)
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-done
	}
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
	counts := make([]atomic.Int64, p.all())
	control := func(_, _ string, c syscall.RawConn) (err error) { // DCTCP asks for ECN at both ends
		_ = c.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, p.algorithm())
		})
		return err
	}
	var l net.Listener
	err = t.B.Run(func() error {
		l, err = (&net.ListenConfig{Control: control}).Listen(ctx, "tcp4", netip.AddrPortFrom(t.B.IPv4, tcpPort).String())
		return err
	})
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
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from[:]}, Control: control}
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
	if p.udp > 0 {
		end, err := p.datagrams(ctx, t, &counts[len(p.users)])
		if err != nil {
			return nil, 0, err
		}
		defer end()
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

// datagrams of one more user.
func (p pacing) datagrams(ctx context.Context, t *netns.Topology, count *atomic.Int64) (end func(), err error) {
	const size, wire = 1472, 1514
	sink, err := t.B.ListenPacket(ctx, "udp4", netip.AddrPortFrom(t.B.IPv4, sinkPort).String())
	if err != nil {
		return nil, err
	}
	fd, err := datagramSocket(t, userAddress(len(p.users)), sinkPort)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a socket of datagrams: %w", err), sink.Close())
	}
	go func() {
		for b := make([]byte, size); ; {
			n, _, err := sink.ReadFrom(b)
			if err != nil {
				return
			}
			count.Add(int64(float64(n) / size * wire / paceFrames))
		}
	}()
	go func() {
		defer unix.Close(fd)
		gap := time.Duration(8e3*wire/p.udp) * time.Nanosecond
		for b, next := make([]byte, size), time.Now(); ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
			for ; time.Now().After(next); next = next.Add(gap) {
				_ = unix.Send(fd, b, unix.MSG_DONTWAIT)
			}
		}
	}()
	return func() { sink.Close() }, nil
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

func (p pacing) judge(got [][]float64, lost uint32, run *attached, late time.Duration) (string, error) {
	rate, first, last := 1e6*float64(p.rate), got[int(paceWarm/(100*time.Millisecond))], got[len(got)-1]
	sum := func(row []float64) (bits float64) {
		for _, v := range row[1:] {
			bits += v
		}
		return bits
	}
	total, off, farthest, most := sum(last)-sum(first), 0., 0., 0.
	users := float64(p.all())
	for i := range p.all() {
		share := (last[i+1] - first[i+1]) / total * users
		off, farthest = off+max(share-1, 1-share)/users, max(farthest, share-1, 1-share)
	}
	for n := 10; n < len(got); n++ {
		most = max(most, (sum(got[n])-sum(got[n-10]))/rate/(got[n][0]-got[n-10][0]))
	}
	use := total / rate / (last[0] - first[0])
	detail := fmt.Sprintf("use %.3f, worst second %.3f, users %.1f %% off their share, the worst %.1f %%, %d segments sent again; timers late by at most %v", use, most, 100*off, 100*farthest, lost, late.Round(time.Millisecond))
	if len(run.windows) > 0 {
		if report, ok := run.windows[len(run.windows)-1]["report"].(map[string]any); ok {
			detail += fmt.Sprintf(" (%v paced by %v ns, %v dropped)", report["paced"], report["pace_delay"], report["segments_dropped"])
		}
	}
	if p.args != nil || p.plain {
		return detail, nil
	}
	burst := paceBurst
	if p.gso {
		burst = max(burst, 8*(1<<16)/rate)
	}
	if use < paceLeast || use > paceMean || most > paceSecond+burst+min(late, paceLate).Seconds() || off > paceOff {
		if late > paceLate {
			detail = "this machine was starved, which nothing follows from (XDPMON_NICE=-15): " + detail
		}
		return "", errors.New(detail)
	}
	return detail, nil
}
