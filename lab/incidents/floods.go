package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/demo/traffic"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// inject sends frames into the clients' end of the link (or the servers'), until ctx ends.
func (w *world) inject(ctx context.Context, fromServers bool, rate float64, next func(*rand.Rand) *builder.Spec) {
	r := w.fork()
	go func() { w.failed(w.stream(ctx, fromServers, rate, func() *builder.Spec { return next(r) })) }()
}

func (w *world) stream(ctx context.Context, fromServers bool, rate float64, next func() *builder.Spec) error {
	toClients, toServers, err := w.stage.NextHop()
	if err != nil {
		return err
	}
	at, name, hop := w.stage.Clients, stage.ClientsPort, toClients
	if fromServers {
		at, name, hop = w.stage.Servers, stage.ServersPort, toServers
	}
	wire, err := traffic.NewWire(at, name, hop)
	if err != nil {
		return err
	}
	defer wire.Close()
	return wire.Stream(ctx, rate, func() ([]byte, error) {
		s := next()
		s.SrcMAC, s.DstMAC, s.Checksums, s.Whole = wire.Source, wire.Hop, true, true
		f, err := builder.Build(s)
		return f.Data, err
	})
}

// syn is the first packet of a connection, as a scanner writes it.
func syn(r *rand.Rand, from, to netip.AddrPort) *builder.Spec {
	return &builder.Spec{IP: builder.IP{Src: from.Addr(), Dst: to.Addr(), ID: uint16(r.Uint32())},
		TCP: &builder.TCP{SrcPort: from.Port(), DstPort: to.Port(), Seq: r.Uint32(), Flags: packet.SYN, Window: 1024, Options: []byte{2, 4, 5, 180}}}
}

func ephemeral(r *rand.Rand) uint16 { return uint16(32768 + r.IntN(28000)) }

// stranger is an address that nobody here has.
func stranger(r *rand.Rand) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(60 + r.IntN(120)), byte(r.IntN(256)), byte(r.IntN(256)), byte(1 + r.IntN(254))})
}

// portScan: one client tries all ports of one server.
func portScan(w *world) *staged {
	a, b := w.client4(w.r), w.server4()
	rate, port := w.share(200, 500), uint16(1000)
	return &staged{
		what: fmt.Sprintf("client %v tries %.0f ports a second of %v", a, rate, b),
		start: func(ctx context.Context) {
			w.inject(ctx, false, rate, func(r *rand.Rand) *builder.Spec {
				port++
				return syn(r, netip.AddrPortFrom(a, ephemeral(r)), netip.AddrPortFrom(b, port))
			})
		},
		expect: []want{{scan, exactly(a.String())}},
		proof: func(f *facts) error {
			is := all(from(one(a)), to(one(b)), row.isSYN)
			return atLeast("different ports", float64(different(f.during(is), func(r row) uint16 { return r.dport })), 3*rate)
		},
	}
}

// spreader: one client tries one port of very many hosts.
func spreader(w *world) *staged {
	a, rate := w.client4(w.r), w.share(250, 500)
	return &staged{
		what: fmt.Sprintf("client %v tries port 443 of %.0f hosts a second", a, rate),
		start: func(ctx context.Context) {
			w.inject(ctx, false, rate, func(r *rand.Rand) *builder.Spec {
				four := w.options.Servers.Addr().As4()
				four[2], four[3] = byte(r.IntN(240)), byte(1+r.IntN(250))
				return syn(r, netip.AddrPortFrom(a, ephemeral(r)), netip.AddrPortFrom(netip.AddrFrom4(four), traffic.HTTPS))
			})
		},
		expect: []want{{scan, exactly(a.String())}},
		proof: func(f *facts) error {
			return atLeast("different hosts", float64(different(f.during(all(from(one(a)), row.isSYN)), func(r row) netip.Addr { return r.dst })), 2.5*rate)
		},
	}
}

// synFlood: SYNs with made-up addresses to one port of one server; nobody answers its SYN-ACKs.
func synFlood(w *world) *staged {
	b, rate := w.server4(), w.share(1500, 2200)
	sources := [3]netip.Addr{stranger(w.r), stranger(w.r), stranger(w.r)}
	return &staged{
		what: fmt.Sprintf("%.0f SYNs a second from three made-up addresses to %v, port 443", rate, b),
		start: func(ctx context.Context) {
			w.inject(ctx, false, rate, func(r *rand.Rand) *builder.Spec {
				return syn(r, netip.AddrPortFrom(sources[r.IntN(3)], ephemeral(r)), netip.AddrPortFrom(b, traffic.HTTPS))
			})
		},
		expect: []want{{flood, service(netip.AddrPortFrom(b, traffic.HTTPS))}},
		proof: func(f *facts) error {
			syns := len(f.during(all(to(one(b)), row.isSYN)))
			completed := len(f.during(all(to(one(b)), answered, func(r row) bool { return r.payload == 0 })))
			return errors.Join(atLeast("SYNs", float64(syns), 3*rate), atMost("ACKs a SYN", float64(completed)/float64(max(syns, 1)), .6))
		},
	}
}

// manySources: datagrams of very many hosts to one.
func manySources(w *world) *staged {
	b, rate := w.server4(), w.share(800, 1200)
	return &staged{
		what: fmt.Sprintf("%.0f datagrams a second, each from another host, to %v", rate, b),
		start: func(ctx context.Context) {
			w.inject(ctx, false, rate, func(r *rand.Rand) *builder.Spec {
				return &builder.Spec{IP: builder.IP{Src: stranger(r), Dst: b}, UDP: &builder.UDP{SrcPort: ephemeral(r), DstPort: 8080}, PayloadLen: 100}
			})
		},
		expect: []want{{floodOfMany, service(netip.AddrPortFrom(b, 8080))}},
		proof: func(f *facts) error {
			return atLeast("different sources", float64(different(f.during(to(one(b))), func(r row) netip.Addr { return r.src })), 2.5*rate)
		},
	}
}

// network20 is a network of 4,096 addresses, or one a little larger or smaller: hhh has levels.
func network20(p netip.Prefix) subject {
	return subject{p.String(), func(name string) bool {
		q, err := netip.ParsePrefix(name)
		return err == nil && q.Bits() >= 16 && q.Bits() <= 24 && q.Overlaps(p)
	}}
}

// heavyNetwork: no host of a network is heavy, the network is.
func heavyNetwork(w *world) *staged {
	four := w.options.Clients.Addr().As4()
	four[2] = 128 + byte(w.r.IntN(6))*16
	p := netip.PrefixFrom(netip.AddrFrom4(four), 20)
	b, rate := anyOf(w.r, w.targets[w.r.IntN(serverNets-1)]), w.share(900, 1300)
	return &staged{
		what: fmt.Sprintf("4,000 hosts of %v send %.0f datagrams a second together, none of them much", p, rate),
		start: func(ctx context.Context) {
			w.inject(ctx, false, rate, func(r *rand.Rand) *builder.Spec {
				a := p.Addr().As4()
				a[2] += byte(r.IntN(16))
				a[3] = byte(1 + r.IntN(254))
				return &builder.Spec{IP: builder.IP{Src: netip.AddrFrom4(a), Dst: b}, UDP: &builder.UDP{SrcPort: ephemeral(r), DstPort: 5000}, PayloadLen: 900}
			})
		},
		expect: []want{{networkHeavy, network20(p)}},
		also:   []want{{floodOfMany, service(netip.AddrPortFrom(b, 5000))}}, // 4,000 sources are many
		proof: func(f *facts) error {
			all := float64(sum(f.during(func(row) bool { return true })))
			return errors.Join(atLeast("share of the bytes", float64(sum(f.during(from(p))))/all, .4),
				atLeast("hosts", float64(different(f.during(from(p)), func(r row) netip.Addr { return r.src })), 2000))
		},
	}
}
