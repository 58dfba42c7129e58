// Package incidents is what `xdpmon demo --incidents` shows: hosts with their usual traffic through a router, and a timetable of incidents.
package incidents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/demo/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// The network: offices on one side of the router, two networks of servers on the other. Every address of them answers.
var (
	offices = [...]netip.Prefix{netip.MustParsePrefix("10.20.1.0/24"), netip.MustParsePrefix("10.20.2.0/24"), netip.MustParsePrefix("10.20.3.0/24")}
	servers = [...]netip.Prefix{netip.MustParsePrefix("10.80.1.0/24"), netip.MustParsePrefix("10.80.2.0/24")}

	resolvers = [...]netip.AddrPort{netip.MustParseAddrPort("10.80.250.53:53"), netip.MustParseAddrPort("10.80.250.54:53")}
	clock     = netip.MustParseAddrPort("10.80.250.123:123")
)

const (
	hostsOfOffice  = 6
	serversOfNet   = 3
	firstHost      = 11    // last byte of the first address
	linkRate       = 40e6  // of the router's link to the servers, bits a second
	queueLimit     = 250   // packets that wait for it
	officeDelay    = 4     // ms one way, times the office's number
	serversDelay   = 1     // ms one way, times the network's number
	exchangeRate   = 50.   // connections a second
	questionRate   = 30.   // DNS questions a second
	timeRate       = 4.    // NTP questions a second
	stays          = 6     // connections that stay open with repeated requests
	uploadsOffice  = 2     // hosts of each office that upload at times
	answerMedian   = 2500  // bytes
	answerSigma    = .8    // of its logarithm
	uploadLeast    = 5000  // bytes
	uploadMost     = 15000 // bytes
	pauseOfUpload  = 250 * time.Millisecond
	pauseOfSession = 150 * time.Millisecond
)

// delays of both sides, one way.
func delayOf(a netip.Addr) time.Duration {
	for n, p := range offices {
		if p.Contains(a) {
			return time.Duration(n+1) * officeDelay * time.Millisecond
		}
	}
	for n, p := range servers {
		if p.Contains(a) {
			return time.Duration(n+1) * serversDelay * time.Millisecond
		}
	}
	return time.Millisecond
}

func source(p *packet.Packet) netip.AddrPort      { return netip.AddrPortFrom(p.Src, p.SrcPort) }
func destination(p *packet.Packet) netip.AddrPort { return netip.AddrPortFrom(p.Dst, p.DstPort) }

// host is the k-th host of a network.
func host(p netip.Prefix, k int) netip.Addr {
	b := p.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(firstHost+k))
	return netip.AddrFrom4(b)
}

// World is the network with its hosts. Close it.
type World struct {
	stage   *stage.Stage
	servers *traffic.Servers
	clients *traffic.Clients
	answers map[netip.AddrPort]*traffic.Answers
	sink    net.PacketConn

	// directions of both links: to the servers and to the clients, on the clients' side and on the servers'.
	upNear, downNear, upFar, downFar *stage.Way

	mu  sync.Mutex
	r   *rand.Rand
	ctx context.Context // of the traffic
	end context.CancelFunc

	restore func() // priority
}

// New makes the network; nothing is sent before Begin. It needs root.
func New(seed uint64) (*World, error) {
	w := &World{r: rand.New(rand.NewPCG(seed, 27)), answers: map[netip.AddrPort]*traffic.Answers{}, restore: hurry()}
	w.ctx, w.end = context.WithCancel(context.Background())
	w.upNear, w.downNear = stage.NewWay(source, delayOf), stage.NewWay(destination, delayOf)
	w.upFar, w.downFar = stage.NewWay(destination, delayOf), stage.NewWay(source, delayOf)
	var err error
	w.stage, err = stage.New(stage.Options{
		Clients: netip.MustParsePrefix("10.20.0.0/16"), Servers: netip.MustParsePrefix("10.80.0.0/16"),
		Clients6: netip.MustParsePrefix("fd20::/48"), Servers6: netip.MustParsePrefix("fd80::/48"),
		Rate: linkRate, Limit: queueLimit, Seed: seed,
		Near: stage.Link{ToServers: w.upNear, ToClients: w.downNear}, Far: stage.Link{ToServers: w.upFar, ToClients: w.downFar}})
	if err != nil {
		w.end()
		w.restore()
		return nil, fmt.Errorf("demo: %w", err)
	}
	return w, nil
}

// Router is the host in the middle, where Interface is measured: its link to the servers.
func (w *World) Router() *netns.Namespace { return w.stage.Device }

// Interface is where to measure.
const Interface = stage.Out

// LinkRate is the rate of the router's link to the servers, bits a second.
const LinkRate = linkRate

// Describe is the usual traffic in a sentence.
func Describe() string {
	return fmt.Sprintf("%d hosts of three offices (%v, %v, %v), a router with a link of %.0f Mbit/s, %d servers (%v, %v) and resolvers; %.0f connections a second, DNS, NTP, uploads",
		len(offices)*hostsOfOffice, offices[0], offices[1], offices[2], linkRate/1e6, len(servers)*serversOfNet, servers[0], servers[1], exchangeRate)
}

// Begin starts servers and the usual traffic.
func (w *World) Begin() (err error) {
	if w.servers, err = traffic.Serve(w.ctx, w.stage.Servers); err != nil {
		return fmt.Errorf("demo: start servers: %w", err)
	}
	for _, at := range append(resolvers[:], clock) {
		if w.answers[at], err = w.servers.Resolve(at); err != nil {
			return fmt.Errorf("demo: start %v: %w", at, err)
		}
	}
	if w.sink, err = w.stage.Servers.ListenPacket(w.ctx, "udp", target.String()); err != nil { // unread datagrams are dropped there, without an ICMP message
		return fmt.Errorf("demo: start %v: %w", target, err)
	}
	w.clients = traffic.NewClients(w.stage.Clients)
	w.usual()
	return nil
}

func (w *World) usual() {
	w.clients.Exchanges(w.ctx, w.fork(), exchangeRate, func(r *rand.Rand) (traffic.Pair, traffic.Ask) {
		return traffic.Pair{From: anyClient(r), To: anyServer(r, traffic.HTTPS)},
			traffic.Ask{Upload: 150 + r.IntN(600), Answer: int(answerMedian * math.Exp(answerSigma*r.NormFloat64())), Think: time.Duration((.3 + r.ExpFloat64()) * 1e6)}
	})
	w.clients.Questions(w.ctx, w.fork(), questionRate, func(r *rand.Rand) traffic.Pair {
		return traffic.Pair{From: anyClient(r), To: resolvers[r.IntN(len(resolvers))]}
	})
	w.clients.Questions(w.ctx, w.fork(), timeRate, func(r *rand.Rand) traffic.Pair { return traffic.Pair{From: anyClient(r), To: clock} })
	for n := range stays {
		w.session(n%len(offices), traffic.Database, pauseOfSession, func(r *rand.Rand) traffic.Ask {
			return traffic.Ask{Upload: 60 + r.IntN(200), Answer: 500 + r.IntN(6000), Think: time.Duration(r.ExpFloat64() * 5e5)}
		})
	}
	for n := range len(offices) * uploadsOffice {
		w.session(n%len(offices), traffic.HTTPS, pauseOfUpload, func(r *rand.Rand) traffic.Ask {
			return traffic.Ask{Upload: uploadLeast + r.IntN(uploadMost-uploadLeast), Answer: 100}
		})
	}
}

// session is a connection of a host of an office that stays open.
func (w *World) session(office int, port uint16, pause time.Duration, draw func(*rand.Rand) traffic.Ask) {
	r := w.fork()
	p := traffic.Pair{From: host(offices[office], r.IntN(hostsOfOffice)), To: anyServer(r, port)}
	w.clients.Session(w.ctx, r, p, pause, draw)
}

// fork is a separate random generator.
func (w *World) fork() *rand.Rand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return rand.New(rand.NewPCG(w.r.Uint64(), 1))
}

func anyClient(r *rand.Rand) netip.Addr {
	return host(offices[r.IntN(len(offices))], r.IntN(hostsOfOffice))
}

func anyServer(r *rand.Rand, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(host(servers[r.IntN(len(servers))], r.IntN(serversOfNet)), port)
}

// Close ends the traffic and removes the network.
func (w *World) Close() error {
	defer w.restore()
	w.end()
	if w.clients != nil {
		w.clients.Wait()
	}
	if w.servers != nil {
		w.servers.Close()
	}
	if w.sink != nil {
		w.sink.Close()
	}
	if err := w.stage.Close(); err != nil {
		return fmt.Errorf("demo: remove the network: %w", err)
	}
	return nil
}

// inject sends frames of the clients' side until ctx ends.
func (w *World) inject(ctx context.Context, rate float64, next func(*traffic.Wire, *rand.Rand) []byte) error {
	hop, _, err := w.stage.NextHop()
	if err != nil {
		return err
	}
	wire, err := traffic.NewWire(w.stage.Clients, stage.ClientsPort, hop)
	if err != nil {
		return err
	}
	defer wire.Close()
	r := w.fork()
	err = wire.Stream(ctx, rate, func() ([]byte, error) { return next(wire, r), nil })
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
