package incidents

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/demo/traffic"
	"github.com/xdpmon/xdpmon/userspace/finding"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// Incident is a fault of limited duration.
type Incident struct {
	What    string        // description of the fault
	Kind    finding.Kind  // of the expected finding
	Subject string        // of the finding, or a prefix of it
	Slot    time.Duration // until the next one
	// play runs until ctx ends, and restores the network.
	play func(ctx context.Context, w *World) error
}

// Expect is the finding that an operator should see.
func (i Incident) Expect() string { return fmt.Sprintf("%s %s", i.Kind, i.Subject) }

// Timetable of one round. The first windows are the baseline; an incident lasts for a part of its slot, so that its finding ends before the next one.
const (
	First   = 30 * time.Second // until the first incident
	Lasting = 14 * time.Second
	slot    = 35 * time.Second
	attack  = 75 * time.Second // slot: scans and floods are held for 45 s after the last alert
)

// Begins is when incident n of a round begins, after the start of the measurement.
func Begins(n int) time.Duration {
	at := First
	for _, i := range All[:n] {
		at += i.Slot
	}
	return at
}

// Round is the time until the timetable starts again.
func Round() time.Duration { return Begins(len(All)) - First }

// faults of directions while an incident lasts.
type fault struct {
	way *stage.Way
	stage.Fault
}

func hold(ctx context.Context, faults ...fault) error {
	for _, f := range faults {
		f.way.Set(f.Fault)
	}
	<-ctx.Done()
	for _, f := range faults {
		f.way.Set()
	}
	return nil
}

func of(p netip.Prefix, end func(*packet.Packet) netip.AddrPort) func(*packet.Packet) bool {
	return func(q *packet.Packet) bool { return p.Contains(end(q).Addr()) }
}

func one(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Sizes of the incidents.
const (
	serverLate   = 300 * time.Millisecond
	resolverLate = 250 * time.Millisecond
	officeLate   = 80 * time.Millisecond // each way
	lossShare    = .08
	overtaken    = .08
	overtakenBy  = 2500 * time.Microsecond
	scanRate     = 500.  // SYNs a second
	floodRate    = 2000. // SYNs a second
	sourcesRate  = 1000. // datagrams a second

	uploadsOfOffice = 2    // hosts
	uploadShare     = 1.25 // of the link, which they would have together
)

var (
	slowServer = host(servers[0], 0)
	deadServer = host(servers[1], 0)
	victim     = netip.AddrPortFrom(host(servers[0], 2), traffic.HTTPS)
	target     = netip.AddrPortFrom(host(servers[1], 1), 8080)
	greedy     = host(offices[1], 2)
	scanner    = host(offices[0], 3)
)

// All are the incidents in the order in which they are staged.
var All = []Incident{
	{fmt.Sprintf("server %v answers %v later; its kernel acknowledges at once", slowServer, serverLate), finding.SlowServer, slowServer.String(), slot, slowAnswers},
	{fmt.Sprintf("resolver %v answers %v later", resolvers[0].Addr(), resolverLate), finding.DNSSlow, resolvers[0].Addr().String(), slot, func(ctx context.Context, w *World) error { return w.resolver(ctx, resolverLate, false) }},
	{fmt.Sprintf("%.0f %% of what is sent to %v is lost after the router", 100*lossShare, servers[1]), finding.LossAfter, servers[1].String(), slot, losses},
	{fmt.Sprintf("host %v fills the queue of the link with one upload", greedy), finding.UnfairUser, greedy.String(), slot, greed},
	{fmt.Sprintf("packets of %v take %v longer each way", offices[2], officeLate), finding.SlowNetwork, offices[2].String(), slot, lateOffice},
	{fmt.Sprintf("%d hosts of all offices upload at once: the link is full, and no host has most of it", uploadsOfOffice*len(offices)), finding.LinkFull, Interface, slot, allUpload},
	{fmt.Sprintf("%.0f %% of the data from %v is overtaken; nothing is lost", 100*overtaken, offices[0]), finding.Reordering, offices[0].String(), slot, overtake},
	{fmt.Sprintf("server %v is dead: SYNs to it stay unanswered", deadServer), finding.Unanswered, deadServer.String(), slot, dead},
	{fmt.Sprintf("resolver %v does not answer any more", resolvers[0].Addr()), finding.DNSUnanswered, resolvers[0].Addr().String(), slot, func(ctx context.Context, w *World) error { return w.resolver(ctx, 0, true) }},
	{fmt.Sprintf("%.0f SYNs a second from three made-up addresses to %v", floodRate, victim), finding.Flood, victim.String(), attack, flood},
	{fmt.Sprintf("host %v tries %.0f ports a second of %v", scanner, scanRate, slowServer), finding.Scan, scanner.String(), attack, scan},
	{fmt.Sprintf("%.0f datagrams a second, each from another host, to %v", sourcesRate, target), finding.FloodManySources, target.Addr().String(), attack, manySources},
}

func slowAnswers(ctx context.Context, w *World) error {
	w.servers.Slow(slowServer, serverLate)
	<-ctx.Done()
	w.servers.Slow(slowServer, 0)
	return nil
}

func (w *World) resolver(ctx context.Context, late time.Duration, silent bool) error {
	w.answers[resolvers[0]].Set(late, silent)
	<-ctx.Done()
	w.answers[resolvers[0]].Set(0, false)
	return nil
}

// uploads of hosts in pieces, without end, so that there are packets to lose or to reorder.
func (w *World) uploads(ctx context.Context, pairs ...traffic.Pair) {
	for _, p := range pairs {
		w.clients.Session(ctx, w.fork(), p, 60*time.Millisecond, func(r *rand.Rand) traffic.Ask { return traffic.Ask{Upload: 15_000 + r.IntN(10_000), Answer: 100} })
	}
}

func losses(ctx context.Context, w *World) error {
	var pairs []traffic.Pair
	for n := range 6 {
		pairs = append(pairs, traffic.Pair{From: host(offices[n%len(offices)], n%hostsOfOffice), To: netip.AddrPortFrom(host(servers[1], n%serversOfNet), traffic.HTTPS)})
	}
	w.uploads(ctx, pairs...)
	return hold(ctx, fault{w.upFar, stage.Fault{Match: of(servers[1], destination), Loss: lossShare}})
}

func lateOffice(ctx context.Context, w *World) error {
	return hold(ctx, fault{w.upNear, stage.Fault{Match: of(offices[2], source), Delay: officeLate}}, fault{w.downNear, stage.Fault{Match: of(offices[2], destination), Delay: officeLate}})
}

func overtake(ctx context.Context, w *World) error {
	var pairs []traffic.Pair
	for n := range 3 {
		pairs = append(pairs, traffic.Pair{From: host(offices[0], n), To: netip.AddrPortFrom(host(servers[n%len(servers)], n), traffic.HTTPS)})
	}
	w.uploads(ctx, pairs...)
	data := func(p *packet.Packet) bool { return p.Has(packet.TCP) && p.Payload > 0 && offices[0].Contains(p.Src) }
	return hold(ctx, fault{w.upNear, stage.Fault{Match: data, Hold: overtaken, HoldBy: overtakenBy}})
}

func dead(ctx context.Context, w *World) error {
	return hold(ctx, fault{w.upFar, stage.Fault{Match: of(one(deadServer), destination), Loss: 1}}, fault{w.downFar, stage.Fault{Match: of(one(deadServer), source), Loss: 1}})
}

func greed(ctx context.Context, w *World) error {
	w.clients.Upload(ctx, traffic.Pair{From: greedy, To: netip.AddrPortFrom(host(servers[0], 1), traffic.HTTPS)}, 0, 0, traffic.Congestion("cubic"))
	<-ctx.Done()
	return nil
}

// allUpload fills the link and hardly more: many uploads that each look for more at the same time would lose so much that the queue's drops are a finding beside it.
func allUpload(ctx context.Context, w *World) error {
	for n, office := range offices {
		for k := range uploadsOfOffice {
			pair := traffic.Pair{From: host(office, k), To: netip.AddrPortFrom(host(servers[(n+k)%len(servers)], k%serversOfNet), traffic.HTTPS)}
			w.clients.Upload(ctx, pair, uploadShare*linkRate/8/float64(uploadsOfOffice*len(offices)), 0, traffic.Congestion("cubic"))
		}
	}
	<-ctx.Done()
	return nil
}

func ephemeral(r *rand.Rand) uint16 { return uint16(32768 + r.IntN(28000)) }

// stranger is an address outside of the network.
func stranger(r *rand.Rand) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(60 + r.IntN(120)), byte(r.IntN(256)), byte(r.IntN(256)), byte(1 + r.IntN(254))})
}

func scan(ctx context.Context, w *World) error {
	port := uint16(1000)
	return w.inject(ctx, scanRate, func(wire *traffic.Wire, r *rand.Rand) []byte {
		port++
		return wire.SYN(netip.AddrPortFrom(scanner, ephemeral(r)), netip.AddrPortFrom(slowServer, port), r.Uint32())
	})
}

func flood(ctx context.Context, w *World) error {
	r := w.fork()
	sources := [3]netip.Addr{stranger(r), stranger(r), stranger(r)}
	return w.inject(ctx, floodRate, func(wire *traffic.Wire, r *rand.Rand) []byte {
		return wire.SYN(netip.AddrPortFrom(sources[r.IntN(3)], ephemeral(r)), victim, r.Uint32())
	})
}

func manySources(ctx context.Context, w *World) error {
	return w.inject(ctx, sourcesRate, func(wire *traffic.Wire, r *rand.Rand) []byte {
		return wire.Datagram(netip.AddrPortFrom(stranger(r), ephemeral(r)), target, 100)
	})
}

// Play stages incidents by the timetable until ctx ends; begun is called when one begins, and ended when it is over.
func (w *World) Play(ctx context.Context, begun, ended func(round int, i Incident)) error {
	start := time.Now()
	for round := 0; ; round++ {
		for n, i := range All {
			if !waitUntil(ctx, start.Add(time.Duration(round)*Round()+Begins(n))) {
				return nil
			}
			begun(round, i)
			lasting, stop := context.WithTimeout(ctx, Lasting)
			err := i.play(lasting, w)
			stop()
			if err != nil {
				return fmt.Errorf("demo: stage %q: %w", i.What, err)
			}
			if ctx.Err() == nil {
				ended(round, i)
			}
		}
	}
}

// waitUntil returns false when ctx ends first.
func waitUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
