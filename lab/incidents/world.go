package main

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/demo/traffic"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// world is a stage with hosts, what they usually do, and what an incident needs to change it. All of it is drawn by the seed.
type world struct {
	r       *rand.Rand
	options stage.Options
	stage   *stage.Stage
	servers *traffic.Servers
	clients *traffic.Clients

	clientNets, serverNets []netip.Prefix // /24, the last one a /64
	hosts, targets         [][]netip.Addr // of these networks
	resolvers, clocks      []netip.AddrPort
	answers                map[netip.AddrPort]*traffic.Answers
	delays                 map[netip.Prefix]time.Duration // usual, one way

	up, down struct{ near, far *stage.Way } // to the servers, to the clients
	early    []func(context.Context)        // what goes on from the start, beside the usual
	errs     chan error
	pause    func(ctx context.Context, d time.Duration) // stops xdpmon; nil where there is none
}

// Networks of a world: enough that an incident of one is not an incident of all.
const (
	clientNets  = 4
	serverNets  = 3
	hostsOfNet  = 6
	serversOf   = 3
	usualRate   = 100e6 // of the link behind the device, bits a second
	usualQueue  = 1000  // packets
	nearLow     = 2 * time.Millisecond
	nearHigh    = 20 * time.Millisecond
	farLow      = 300 * time.Microsecond
	farHigh     = 4 * time.Millisecond
	elsewhere   = 5 * time.Millisecond // delay of hosts that are in no network of the world
	ipv6Bits    = 64
	networkBits = 24
)

func newWorld(seed uint64, name string) *world {
	h := uint64(14695981039346656037)
	for _, b := range []byte(name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	w := &world{r: rand.New(rand.NewPCG(seed, h)), delays: map[netip.Prefix]time.Duration{}, answers: map[netip.AddrPort]*traffic.Answers{}, errs: make(chan error, 16)}
	w.drawNetworks()
	w.up.near, w.down.near = stage.NewWay(source, w.delay), stage.NewWay(destination, w.delay)
	w.up.far, w.down.far = stage.NewWay(destination, w.delay), stage.NewWay(source, w.delay)
	w.options.Near = stage.Link{ToServers: w.up.near, ToClients: w.down.near}
	w.options.Far = stage.Link{ToServers: w.up.far, ToClients: w.down.far}
	w.options.Rate, w.options.Limit, w.options.Seed = usualRate, usualQueue, seed
	return w
}

func source(p *packet.Packet) netip.AddrPort      { return netip.AddrPortFrom(p.Src, p.SrcPort) }
func destination(p *packet.Packet) netip.AddrPort { return netip.AddrPortFrom(p.Dst, p.DstPort) }

func (w *world) drawNetworks() {
	a, b := byte(16+w.r.IntN(100)), byte(120+w.r.IntN(100))
	w.options.Clients, w.options.Servers = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, a}), 16), netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b}), 16)
	w.options.Clients6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, a}), 48)
	w.options.Servers6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0, 0, b}), 48)
	w.clientNets, w.hosts = w.draw(w.options.Clients, w.options.Clients6, clientNets, hostsOfNet, nearLow, nearHigh)
	w.serverNets, w.targets = w.draw(w.options.Servers, w.options.Servers6, serverNets, serversOf, farLow, farHigh)
	for n := range 2 {
		at := netip.AddrFrom4([4]byte{10, b, 250, byte(10 + n + w.r.IntN(100)*2)})
		w.resolvers = append(w.resolvers, netip.AddrPortFrom(at, traffic.DNS))
		w.clocks = append(w.clocks, netip.AddrPortFrom(at.Next().Next().Next(), traffic.NTP))
	}
	w.delays[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b, 250}), networkBits)] = time.Millisecond
}

// draw chooses networks of a larger one, the last one of IPv6, with hosts in them and a usual delay.
func (w *world) draw(of, of6 netip.Prefix, nets, hosts int, low, high time.Duration) (list []netip.Prefix, in [][]netip.Addr) {
	numbers := w.r.Perm(60)
	for n := range nets {
		four := of.Addr().As4()
		four[2] = byte(numbers[n])
		p := netip.PrefixFrom(netip.AddrFrom4(four), networkBits)
		if n == nets-1 {
			six := of6.Addr().As16()
			six[7] = byte(numbers[n])
			p = netip.PrefixFrom(netip.AddrFrom16(six), ipv6Bits)
		}
		var at []netip.Addr
		for _, k := range w.r.Perm(200)[:hosts] {
			at = append(at, host(p, k+10))
		}
		w.delays[p] = time.Duration(float64(low) * math.Pow(float64(high)/float64(low), w.r.Float64()))
		list, in = append(list, p), append(in, at)
	}
	return list, in
}

// host is the k-th address of a network.
func host(p netip.Prefix, k int) netip.Addr {
	b := p.Addr().As16()
	binary.BigEndian.PutUint16(b[14:], binary.BigEndian.Uint16(b[14:])+uint16(k))
	a := netip.AddrFrom16(b)
	if p.Addr().Is4() {
		return a.Unmap()
	}
	return a
}

func netOf(a netip.Addr) netip.Prefix {
	bits := networkBits
	if !a.Is4() {
		bits = ipv6Bits
	}
	p, _ := a.Prefix(bits)
	return p
}

func (w *world) delay(a netip.Addr) time.Duration {
	if d, ok := w.delays[netOf(a)]; ok {
		return d
	}
	return elsewhere
}

// anyOf draws one of a list.
func anyOf[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// four is the number of networks with IPv4.
func four(nets []netip.Prefix) int { return len(nets) - 1 }

// open makes the network and starts what usually goes on.
func (w *world) open(ctx context.Context) (err error) {
	if w.stage, err = stage.New(w.options); err != nil {
		return err
	}
	if w.servers, err = traffic.Serve(ctx, w.stage.Servers); err != nil {
		return err
	}
	for _, at := range slices.Concat(w.resolvers, w.clocks) {
		if w.answers[at], err = w.servers.Resolve(at); err != nil {
			return err
		}
	}
	w.clients = traffic.NewClients(w.stage.Clients)
	w.usual(ctx)
	for _, begin := range w.early {
		begin(ctx)
	}
	return nil
}

// What usually goes on, a second.
const (
	exchanges = 50.
	questions = 12.
	times     = 8. // with 4 a clock answered two questions a window: that it answers none took three windows to know
	stays     = 8  // connections that stay open
	uploads   = 2  // hosts of each network that upload
)

func (w *world) usual(ctx context.Context) {
	w.clients.Exchanges(ctx, w.fork(), exchanges, w.exchange)
	w.clients.Questions(ctx, w.fork(), questions, func(r *rand.Rand) traffic.Pair {
		return traffic.Pair{From: w.client4(r), To: anyOf(r, w.resolvers)}
	})
	w.clients.Questions(ctx, w.fork(), times, func(r *rand.Rand) traffic.Pair { return traffic.Pair{From: w.client4(r), To: anyOf(r, w.clocks)} })
	for n := range stays {
		w.clients.Session(ctx, w.fork(), w.pair(w.r, n%clientNets, traffic.Database), 150*time.Millisecond, func(r *rand.Rand) traffic.Ask {
			return traffic.Ask{Upload: 60 + r.IntN(200), Answer: 500 + r.IntN(6000), Think: time.Duration(r.ExpFloat64() * 5e5)}
		})
	}
	for n := range clientNets * uploads {
		w.clients.Session(ctx, w.fork(), w.pair(w.r, n%clientNets, traffic.HTTPS), 250*time.Millisecond, func(r *rand.Rand) traffic.Ask {
			return traffic.Ask{Upload: 8000 + r.IntN(16000), Answer: 100}
		})
	}
}

func (w *world) fork() *rand.Rand { return rand.New(rand.NewPCG(w.r.Uint64(), 1)) }

func (w *world) client4(r *rand.Rand) netip.Addr {
	return anyOf(r, w.hosts[r.IntN(four(w.clientNets))])
}

func (w *world) server4() netip.Addr { return anyOf(w.r, w.targets[w.r.IntN(four(w.serverNets))]) }

// pair is a host of a network and a server of the same family.
func (w *world) pair(r *rand.Rand, network int, port uint16) traffic.Pair {
	to := serverNets - 1
	if network < four(w.clientNets) {
		to = r.IntN(four(w.serverNets))
	}
	return traffic.Pair{From: anyOf(r, w.hosts[network]), To: netip.AddrPortFrom(anyOf(r, w.targets[to]), port)}
}

func (w *world) exchange(r *rand.Rand) (traffic.Pair, traffic.Ask) {
	p := w.pair(r, r.IntN(clientNets), traffic.HTTPS)
	a := traffic.Ask{Upload: 150 + r.IntN(600), Answer: int(2500 * math.Exp(.8*r.NormFloat64())), Think: time.Duration((.3 + r.ExpFloat64()) * 1e6)}
	return p, a
}

// failed keeps what an incident's own threads complain of.
func (w *world) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	select {
	case w.errs <- err:
	default:
	}
}

// close ends the traffic, whose context has ended, and removes the network.
func (w *world) close() error {
	if w.clients != nil {
		w.clients.Wait()
	}
	if w.servers != nil {
		w.servers.Close()
	}
	if w.stage != nil {
		return w.stage.Close()
	}
	return nil
}
