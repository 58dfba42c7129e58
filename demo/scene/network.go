// Package scene is the network of `xdpmon demo`: two hosts with an emulated link between them, real connections, and their exact delays by the emulator.
package scene

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
	"github.com/xdpmon/xdpmon/userspace/packet"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Traffic is the clients' load and the link's delay.
type Traffic struct {
	Rate     float64 // handshakes a second
	Median   time.Duration
	Duration time.Duration // 0: until the operator ends it
	Seed     uint64
}

// The delays of a handshake: a log-normal body and a tail that stays below the second after which a SYN is repeated.
const (
	sigma     = 0.7
	tailShare = 0.03
	tailLow   = 200 * time.Millisecond
	tailHigh  = 800 * time.Millisecond
)

// delay draws a connection's delay; each direction takes half of it.
func (t Traffic) delay() emulator.Delay {
	body, tail := emulator.LogNormal(t.Median/2, sigma), emulator.LogUniform(tailLow/2, tailHigh/2)
	mixed := emulator.Mixture([]float64{1 - tailShare, tailShare}, []emulator.Delay{body, tail})
	return emulator.PerFlow(t.Seed, func(p *packet.Packet, r *rand.Rand) time.Duration {
		return min(mixed(p, r), tailHigh/2)
	})
}

// Describe is the traffic as text for the operator.
func (t Traffic) Describe() string {
	return fmt.Sprintf("two hosts, %s handshakes a second, delays log-normal around %s, %s of them from %s to %s",
		report.Human(t.Rate, report.Count), t.Median, report.Human(tailShare, report.Ratio), tailLow, tailHigh)
}

// Network is two hosts with an emulated link between them.
type Network struct {
	topology *netns.Topology
	traffic  Traffic
	stop     context.CancelFunc // ends the opening of connections
	listener net.Listener       // nil until begin
	running  sync.WaitGroup
}

// NewNetwork makes both hosts; nothing is sent before Begin.
func NewNetwork(traffic Traffic, truth *Truth) (*Network, error) {
	delay := traffic.delay()
	topology, err := netns.New(netns.Options{Middle: netns.Emulator, Link: emulator.Options{
		Seed: traffic.Seed,
		AtoB: emulator.Direction{Delay: delay, Drop: truth.request},
		BtoA: emulator.Direction{Delay: delay, OnPacket: truth.response},
	}})
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return &Network{topology: topology, traffic: traffic, stop: func() {}}, nil
}

// Iface is where to measure: in the middle, on the clients' side, so that it sees both directions of the link.
func (n *Network) Iface() string { return n.topology.MiddleA }

// InMiddle runs f in the network namespace of the interface.
func (n *Network) InMiddle(f func() error) error { return n.topology.Middle.Run(f) }

const demoPort = 7777

// Begin starts server and clients; fail is called with an error that ends them before ctx does.
func (n *Network) Begin(ctx context.Context, fail func(error)) {
	ctx, n.stop = context.WithCancel(ctx)
	listener, err := n.topology.B.Listen(ctx, "tcp", fmt.Sprintf("[::]:%d", demoPort))
	if err != nil {
		fail(fmt.Errorf("demo: start server: %w", err))
		return
	}
	n.listener = listener
	n.running.Go(func() { serve(listener) })
	n.running.Go(func() {
		c := newClients(n.traffic, netip.AddrPortFrom(n.topology.B.IPv4, demoPort), netip.AddrPortFrom(n.topology.B.IPv6, demoPort))
		if err := n.topology.A.Run(func() error { return c.run(ctx) }); err != nil {
			fail(fmt.Errorf("demo: connect: %w", err))
		}
	})
}

// serve accepts connections and closes them until the listener is closed.
func serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		conn.Close()
	}
}

// Wind ends the demonstration after its time or with ctx: first the clients, then, when all packets in flight have arrived,
// the measurement, so that no answer is missing in the last window.
func (n *Network) Wind(ctx context.Context, truth *Truth, end func()) {
	if n.traffic.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.traffic.Duration)
		defer cancel()
	}
	<-ctx.Done()
	n.stop()
	for deadline := time.Now().Add(2 * tailHigh); truth.waiting() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	end()
}

// Close ends the traffic and removes the network.
func (n *Network) Close() error {
	n.stop()
	if n.listener != nil {
		n.listener.Close()
	}
	n.running.Wait()
	if err := n.topology.Close(); err != nil {
		return fmt.Errorf("demo: remove the network: %w", err)
	}
	return nil
}
