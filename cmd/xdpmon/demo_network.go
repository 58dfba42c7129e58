package main

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

// demoTraffic is what the clients do and what the link does to it.
type demoTraffic struct {
	rate     float64 // handshakes a second
	median   time.Duration
	duration time.Duration // 0: until the operator ends it
	seed     uint64
}

// The delays of a handshake: a log-normal body and a tail that stays below the second after which a SYN is repeated.
const (
	demoSigma     = 0.7
	demoTailShare = 0.03
	demoTailLow   = 200 * time.Millisecond
	demoTailHigh  = 800 * time.Millisecond
)

// delay draws a connection's delay; each direction takes half of it.
func (t demoTraffic) delay() emulator.Delay {
	body, tail := emulator.LogNormal(t.median/2, demoSigma), emulator.LogUniform(demoTailLow/2, demoTailHigh/2)
	mixed := emulator.Mixture([]float64{1 - demoTailShare, demoTailShare}, []emulator.Delay{body, tail})
	return emulator.PerFlow(t.seed, func(p *packet.Packet, r *rand.Rand) time.Duration {
		return min(mixed(p, r), demoTailHigh/2)
	})
}

func (t demoTraffic) describe() string {
	return fmt.Sprintf("two hosts, %s handshakes a second, delays log-normal around %s, %s of them from %s to %s",
		report.Human(t.rate, report.Count), t.median, report.Human(demoTailShare, report.Ratio), demoTailLow, demoTailHigh)
}

// demoNetwork is two hosts with an emulated link between them.
type demoNetwork struct {
	topology *netns.Topology
	traffic  demoTraffic
	quiet    context.CancelFunc // no further connections
	listener net.Listener       // nil until begin
	running  sync.WaitGroup
}

func newDemoNetwork(traffic demoTraffic, truth *truth) (*demoNetwork, error) {
	delay := traffic.delay()
	topology, err := netns.New(netns.Options{Middle: netns.Emulator, Link: emulator.Options{
		Seed: traffic.seed,
		AtoB: emulator.Direction{Delay: delay, OnPacket: truth.request},
		BtoA: emulator.Direction{Delay: delay, OnPacket: truth.response},
	}})
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return &demoNetwork{topology: topology, traffic: traffic, quiet: func() {}}, nil
}

// iface is where to measure: in the middle, on the clients' side, so that both ways of the link lie behind it.
func (n *demoNetwork) iface() string { return n.topology.MiddleA }

// inMiddle runs f in the network namespace of the interface.
func (n *demoNetwork) inMiddle(f func() error) error { return n.topology.Middle.Run(f) }

const demoPort = 7777

// begin starts server and clients; fail is told what ends them before ctx does.
func (n *demoNetwork) begin(ctx context.Context, fail func(error)) {
	ctx, n.quiet = context.WithCancel(ctx)
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

// wind ends the demonstration after its time or with ctx: first the clients, then, when what is on its way has arrived,
// the measurement, so that no answer is missing in the last window.
func (n *demoNetwork) wind(ctx context.Context, truth *truth, end func()) {
	if n.traffic.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.traffic.duration)
		defer cancel()
	}
	<-ctx.Done()
	n.quiet()
	for deadline := time.Now().Add(2 * demoTailHigh); truth.waiting() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	end()
}

// close ends the traffic and removes the network.
func (n *demoNetwork) close() error {
	n.quiet()
	if n.listener != nil {
		n.listener.Close()
	}
	n.running.Wait()
	if err := n.topology.Close(); err != nil {
		return fmt.Errorf("demo: remove the network: %w", err)
	}
	return nil
}
