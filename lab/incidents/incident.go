package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/demo/stage"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// incident is something that can go wrong. draw chooses by a world's generator where and how badly, before the network is made.
type incident struct {
	name string
	draw func(w *world) *staged
}

// staged is an incident of one seed.
type staged struct {
	what string // in words, with what was drawn
	// start begins it. ctx ends with the run.
	start func(ctx context.Context)
	// expect must be found, in the order of harm where there are several; also may be: consequences that are in the traffic as truly.
	expect, also []want
	// A capture of the interface begins behind the queue: captured is what must be found in it where that is something else, and hidden says so if it is
	// nothing; capturedAlso may be found there, too.
	captured, capturedAlso []want
	hidden                 bool
	// proof says what tools that nobody here wrote miss of it in the traffic; nil: it is there.
	proof func(f *facts) error
	// argued is what else tshark shows in the traffic of a capture, beside what was staged: it may be found there.
	argued func(f *facts) []want
	args   []string // more arguments of xdpmon check
	// always: it is there from the start, and not in two windows after anything.
	always bool
}

// inCapture is what must be found in a capture.
func (s *staged) inCapture() []want {
	switch {
	case s.hidden:
		return nil
	case s.captured != nil:
		return s.captured
	}
	return s.expect
}

// want is a kind, and what its subject must be.
type want struct {
	kind    string
	subject subject
}

func (w want) String() string { return w.kind + " " + w.subject.what }

// subject says which names are right.
type subject struct {
	what  string
	right func(name string) bool
}

// network is a prefix, or a shorter one that holds it and is still a network of one place.
func network(p netip.Prefix) subject {
	least := 24
	if !p.Addr().Is4() {
		least = 48
	}
	return subject{p.String(), func(name string) bool {
		q, err := netip.ParsePrefix(name)
		return err == nil && q.Bits() >= least && q.Bits() <= p.Bits() && q.Contains(p.Addr())
	}}
}

// exactly is one name.
func exactly(name string) subject { return subject{name, func(n string) bool { return n == name }} }

// hostOf is a host, or the network that holds it where the answer has no hosts.
func hostOf(a netip.Addr) subject {
	p := network(one(a))
	return subject{a.String() + " or its network", func(name string) bool { return name == a.String() || p.right(name) }}
}

// sender is a host, or a flow that it sends.
func sender(a netip.Addr) subject {
	return subject{"a flow of " + a.String(), func(name string) bool { return name == a.String() || strings.HasPrefix(name, a.String()+":") }}
}

// service is a port of a host, or the host.
func service(a netip.AddrPort) subject {
	return subject{a.String(), func(name string) bool { return name == a.String() || name == a.Addr().String() }}
}

// anything is right.
var anything = subject{"anything", func(string) bool { return true }}

// here is the interface, or the capture of it.
var here = subject{stage.Out, func(name string) bool { return name == stage.Out || strings.HasSuffix(name, ".pcap") }}

// Faults of a direction hit packets by address; of TCP, of a kind.
func hosts(p netip.Prefix, end func(*packet.Packet) netip.AddrPort) func(*packet.Packet) bool {
	return func(q *packet.Packet) bool { return p.Contains(end(q).Addr()) }
}

func tcpData(match func(*packet.Packet) bool) func(*packet.Packet) bool {
	return func(q *packet.Packet) bool { return q.Has(packet.TCP) && q.Payload > 0 && match(q) }
}

func pureAck(match func(*packet.Packet) bool) func(*packet.Packet) bool {
	return func(q *packet.Packet) bool {
		return q.Has(packet.TCP) && q.Payload == 0 && q.TCPFlags&(packet.SYN|packet.ACK|packet.FIN|packet.RST) == packet.ACK && match(q)
	}
}

func synAck(match func(*packet.Packet) bool) func(*packet.Packet) bool {
	return func(q *packet.Packet) bool {
		return q.Has(packet.TCP) && q.TCPFlags&(packet.SYN|packet.ACK) == packet.SYN|packet.ACK && match(q)
	}
}

// set begins faults of several directions.
func set(ways ...fault) func(context.Context) {
	return func(context.Context) {
		for _, f := range ways {
			f.on.Set(f.Fault)
		}
	}
}

type fault struct {
	on *stage.Way
	stage.Fault
}

// between draws a time.
func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.r.Float64()*float64(high-low))
}

func (w *world) share(low, high float64) float64 { return low + w.r.Float64()*(high-low) }

// atLeast is a proof that a number is large enough.
func atLeast(what string, got, least float64) error {
	if got < least {
		return fmt.Errorf("%s: %.3g, and at least %.3g was staged", what, got, least)
	}
	return nil
}

func atMost(what string, got, most float64) error {
	if got > most {
		return fmt.Errorf("%s: %.3g, and at most %.3g is staged", what, got, most)
	}
	return nil
}
