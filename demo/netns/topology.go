package netns

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/xdpmon/xdpmon/demo/emulator"
)

// Middle is the connection between the two hosts.
type Middle uint8

const (
	// Direct is one veth pair.
	Direct Middle = iota
	// Bridge is a bridge in a namespace of its own.
	Bridge
	// Emulator is a link emulator in a namespace of its own. Packets are single (no GSO, GRO) and complete.
	Emulator
)

// Options describe a topology. The zero value is two hosts with a veth between them.
type Options struct {
	Middle Middle
	// Link configures the emulator: A to B is from host A to host B.
	Link emulator.Options
	MTU  int // 1500
	// SingleSegments switches segmentation and checksum offloads off on both hosts, as Emulator always does.
	SingleSegments bool
}

// Host is a namespace with one interface that leads to the other host.
type Host struct {
	*Namespace
	Interface string
	Index     int // of the interface
	MAC       [6]byte
	IPv4      netip.Addr // in 10.77.0.0/24
	IPv6      netip.Addr // in fd77::/64
}

// Topology is two hosts and their connection. Close it.
type Topology struct {
	A, B *Host
	// Middle is the namespace of the bridge or the emulator, nil for Direct. Its interfaces MiddleA and MiddleB lead
	// to the hosts.
	Middle           *Namespace
	MiddleA, MiddleB string
	Link             *emulator.Link // nil unless Emulator
}

// The names of namespaces and interfaces; an interface's has at most 15 characters.
const (
	prefix      = "xdpmon-"
	interfaceA  = "xdpmon-a0"
	interfaceB  = "xdpmon-b0"
	middleA     = "xdpmon-ma"
	middleB     = "xdpmon-mb"
	bridgeName  = "xdpmon-br"
	defaultMTU  = 1500
	smallestMTU = 1280 // of IPv6
)

// New makes a topology. It needs root.
func New(opts Options) (*Topology, error) {
	if opts.MTU == 0 {
		opts.MTU = defaultMTU
	}
	if opts.MTU < smallestMTU || opts.MTU > 65535 {
		return nil, fmt.Errorf("make test network: MTU %d is not between %d and 65535", opts.MTU, smallestMTU)
	}
	t := &Topology{}
	if err := t.build(&opts); err != nil {
		return nil, errors.Join(fmt.Errorf("make test network: %w", err), t.Close())
	}
	return t, nil
}

func (t *Topology) build(opts *Options) (err error) {
	if t.A, err = t.newHost("a", interfaceA, 1); err != nil {
		return err
	}
	if t.B, err = t.newHost("b", interfaceB, 2); err != nil {
		return err
	}
	if err := t.join(opts); err != nil {
		return err
	}
	for _, pair := range [][2]*Host{{t.A, t.B}, {t.B, t.A}} {
		if err := pair[0].configure(pair[1], opts); err != nil {
			return fmt.Errorf("configure %s in %s: %w", pair[0].Interface, pair[0].Name, err)
		}
	}
	if err := t.awaitUp(); err != nil {
		return err
	}
	if opts.Middle == Emulator {
		t.Link, err = emulator.Start(emulator.End{Namespace: t.Middle, Interface: t.MiddleA},
			emulator.End{Namespace: t.Middle, Interface: t.MiddleB}, opts.Link)
	}
	return err
}

func (t *Topology) newHost(part, iface string, number byte) (*Host, error) {
	ns, err := NewNamespace(prefix + part)
	if err != nil {
		return nil, err
	}
	return &Host{
		Namespace: ns, Interface: iface, MAC: [6]byte{2, 0, 0, 0, 0x77, number},
		IPv4: netip.AddrFrom4([4]byte{10, 77, 0, number}),
		IPv6: netip.AddrFrom16([16]byte{0xfd, 0x77, 15: number}),
	}, nil
}

// join makes the interfaces and their connection.
func (t *Topology) join(opts *Options) (err error) {
	if opts.Middle == Direct {
		return Veth(t.A.Namespace, interfaceA, t.B.Namespace, interfaceB, opts.MTU)
	}
	t.MiddleA, t.MiddleB = middleA, middleB
	if t.Middle, err = NewNamespace(prefix + "m"); err != nil {
		return err
	}
	if err := silence(t.Middle); err != nil {
		return err
	}
	if err := Veth(t.A.Namespace, interfaceA, t.Middle, middleA, opts.MTU); err != nil {
		return err
	}
	if err := Veth(t.B.Namespace, interfaceB, t.Middle, middleB, opts.MTU); err != nil {
		return err
	}
	if opts.Middle == Bridge {
		return makeBridge(t.Middle, opts.MTU, middleA, middleB)
	}
	return nil
}

// awaitUp waits for the kernel's background work after an interface was set up; a packet that is sent earlier
// is dropped silently, and TCP retries after a second.
func (t *Topology) awaitUp() error {
	for _, host := range []*Host{t.A, t.B} {
		if err := AwaitUp(host.Namespace, host.Interface); err != nil {
			return err
		}
	}
	if t.Middle == nil {
		return nil
	}
	return AwaitUp(t.Middle, t.MiddleA, t.MiddleB)
}

// Close stops the link and releases the namespaces. It can be called twice.
func (t *Topology) Close() error {
	var errs []error
	if t.Link != nil {
		errs = append(errs, t.Link.Close())
	}
	for _, host := range []*Host{t.A, t.B} {
		if host != nil {
			errs = append(errs, host.Close())
		}
	}
	if t.Middle != nil {
		errs = append(errs, t.Middle.Close())
	}
	return errors.Join(errs...)
}
