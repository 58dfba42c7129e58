// Package scene is a bottleneck on a host that forwards, with room for taps on both sides of it:
//
//	A ──▶ [in  device  out] ──▶ wire ──▶ [behind  device  on] ──▶ B
//
// The device sends what arrives at in through the queue of out (HTB); the wire leads back to it, and it sends what arrives at behind on to B. So one
// process in the device's namespace can watch the queue of out, while another one taps in and behind.
package scene

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/netns"
)

// Interfaces of the device.
const (
	In     = "xdpmon-in"
	Out    = "xdpmon-out"
	Behind = "xdpmon-behind"
	on     = "xdpmon-on"
)

// Addresses of the ends.
const (
	AddressA = "10.79.1.1"
	AddressB = "10.79.4.2"
)

// Options of a scene.
type Options struct {
	Rate   float64 // bits a second, of each transmit queue
	Limit  int     // packets that a transmit queue holds
	Queues int     // transmit queues of Out; 0: 1
	Kind   string  // what they are: pfifo (if it is empty), fq_codel or sfq, with their own limits, below an HTB class of the rate; cake has the rate itself
}

// Scene is the network. Close it.
type Scene struct {
	Options
	A, Device, Wire, B *netns.Namespace
	Out                int // number of the interface
}

// New makes a scene. It needs root.
func New(o Options) (*Scene, error) {
	o.Queues = max(1, o.Queues)
	s := &Scene{Options: o}
	if err := s.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a scene: %w", err), s.Close())
	}
	return s, nil
}

func (s *Scene) build() (err error) {
	for _, n := range []struct {
		at   **netns.Namespace
		name string
	}{{&s.A, "xdpmon-a"}, {&s.Device, "xdpmon-device"}, {&s.Wire, "xdpmon-wire"}, {&s.B, "xdpmon-b"}} {
		if *n.at, err = netns.NewNamespace(n.name); err != nil {
			return err
		}
		if err := forward(*n.at); err != nil {
			return err
		}
	}
	for _, w := range []wire{
		{s.A, "xdpmon-a0", AddressA, s.Device, In, "10.79.1.2", 1},
		{s.Device, Out, "10.79.2.1", s.Wire, "xdpmon-w0", "10.79.2.2", s.Queues},
		{s.Wire, "xdpmon-w1", "10.79.3.1", s.Device, Behind, "10.79.3.2", 1},
		{s.Device, on, "10.79.4.1", s.B, "xdpmon-b0", AddressB, 1},
	} {
		if err := w.make(); err != nil {
			return err
		}
	}
	if err := s.routes(); err != nil {
		return err
	}
	if s.Out, err = index(s.Device, Out); err != nil {
		return err
	}
	return s.queues()
}

// forward makes a namespace a router that is silent otherwise.
func forward(n *netns.Namespace) error {
	return n.Run(func() error {
		for name, value := range map[string]string{"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
			"ipv6/conf/default/disable_ipv6": "1", "ipv4/icmp_msgs_per_sec": "0", "ipv4/icmp_ratelimit": "100000"} {
			if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		return nil
	})
}

// wire is a veth pair: packets go from the first end to the second.
type wire struct {
	from             *netns.Namespace
	fromName, fromIP string
	to               *netns.Namespace
	toName, toIP     string
	queues           int
}

func (w wire) make() error {
	h, err := w.from.Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = w.fromName, w.queues, w.queues
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: w.toName, PeerNamespace: netlink.NsFd(w.to.Fd()), PeerNumTxQueues: uint32(w.queues), PeerNumRxQueues: uint32(w.queues)}
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("make %s: %w", w.fromName, err)
	}
	return errors.Join(w.from.Command("ip addr add %s/24 dev %s", w.fromIP, w.fromName), w.to.Command("ip addr add %s/24 dev %s", w.toIP, w.toName),
		w.from.Command("ip link set %s up", w.fromName), w.to.Command("ip link set %s up", w.toName))
}

func (s *Scene) routes() error {
	return errors.Join(
		s.A.Command("ip route add default via 10.79.1.2"),
		s.Device.Command("ip route add default via 10.79.2.2 dev %s table 100", Out),
		s.Device.Command("ip rule add iif %s lookup 100", In),
		s.Wire.Command("ip route add default via 10.79.3.2"))
}

// queues are an HTB class with a FIFO, or another kind, for each transmit queue.
func (s *Scene) queues() error {
	if s.Queues == 1 {
		return s.shape("root", 1)
	}
	if err := s.Device.Command("tc qdisc replace dev %s root handle ffff: mq", Out); err != nil {
		return err
	}
	for n := 1; n <= s.Queues; n++ {
		if err := s.shape(fmt.Sprintf("parent ffff:%x", n), n); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scene) shape(where string, handle int) error {
	if s.Kind == "cake" {
		return s.Device.Command("tc qdisc add dev %s %s handle %x: cake bandwidth %.0fbit", Out, where, handle, s.Rate)
	}
	leaf := s.Kind
	if leaf == "" {
		leaf = fmt.Sprintf("pfifo limit %d", s.Limit)
	}
	return errors.Join(
		s.Device.Command("tc qdisc add dev %s %s handle %x: htb default 10", Out, where, handle),
		s.Device.Command("tc class add dev %s parent %x: classid %x:10 htb rate %.0fbit burst 1600 cburst 1600 quantum 1514", Out, handle, handle, s.Rate),
		s.Device.Command("tc qdisc add dev %s parent %x:10 %s", Out, handle, leaf))
}

func index(n *netns.Namespace, name string) (int, error) {
	h, err := n.Netlink()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err != nil {
		return 0, err
	}
	return l.Attrs().Index, nil
}

// Close lets go of all.
func (s *Scene) Close() error {
	var errs []error
	for _, n := range []*netns.Namespace{s.A, s.Device, s.Wire, s.B} {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	return errors.Join(errs...)
}
