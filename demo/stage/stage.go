// Package stage is the network on which incidents are staged, by `xdpmon demo` and by lab/incidents: clients, a host that forwards and that the operator watches, and servers, with a link
// emulator on both sides of it:
//
//	clients ──▶ near link ──▶ [in  device  out] ──▶ far link ──▶ servers
//
// Every address of the clients' and the servers' networks answers. What leaves the device towards the servers waits in an HTB class with a FIFO. A second
// wire leads from the servers to the clients past the device, for answers that take another path.
package stage

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/xdpmon/xdpmon/demo/emulator"
	"github.com/xdpmon/xdpmon/demo/netns"
)

// Interfaces of the namespaces.
const (
	Out         = "xdpmon-out" // where the operator measures
	in          = "xdpmon-in"
	ClientsPort = "xdpmon-c0"
	ServersPort = "xdpmon-s0"
	clientsPast = "xdpmon-c1"
	serversPast = "xdpmon-s1"
)

// Options of a stage.
type Options struct {
	Clients, Servers   netip.Prefix // IPv4 networks whose addresses all answer
	Clients6, Servers6 netip.Prefix
	Rate               float64 // of Out, bits a second
	Limit              int     // packets that Out's queue holds
	Seed               uint64
	Near, Far          Link
}

// Link is the two directions between a host and the device.
type Link struct{ ToServers, ToClients *Way }

// Stage is the network. Close it.
type Stage struct {
	Options
	Clients, Device, Servers *netns.Namespace
	middle                   *netns.Namespace
	links                    []*emulator.Link
}

// New makes a stage. It needs root.
func New(o Options) (*Stage, error) {
	s := &Stage{Options: o}
	if err := s.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a stage: %w", err), s.Close())
	}
	return s, nil
}

// wires are the veth pairs, each with the addresses of its ends where it has some.
func (s *Stage) wires() []wire {
	return []wire{
		{end{s.Clients, ClientsPort, "172.31.1.1/24", "fd31:1::1/64"}, end{s.middle, "xdpmon-l0", "", ""}},
		{end{s.middle, "xdpmon-l1", "", ""}, end{s.Device, in, "172.31.1.2/24", "fd31:1::2/64"}},
		{end{s.Device, Out, "172.31.2.1/24", "fd31:2::1/64"}, end{s.middle, "xdpmon-r0", "", ""}},
		{end{s.middle, "xdpmon-r1", "", ""}, end{s.Servers, ServersPort, "172.31.2.2/24", "fd31:2::2/64"}},
		{end{s.Servers, serversPast, "172.31.3.2/24", "fd31:3::2/64"}, end{s.Clients, clientsPast, "172.31.3.1/24", "fd31:3::1/64"}},
	}
}

func (s *Stage) build() (err error) {
	for _, n := range []struct {
		at   **netns.Namespace
		name string
	}{{&s.Clients, "xdpmon-clients"}, {&s.Device, "xdpmon-device"}, {&s.Servers, "xdpmon-servers"}, {&s.middle, "xdpmon-middle"}} {
		if *n.at, err = netns.NewNamespace(n.name); err != nil {
			return err
		}
	}
	if err := s.settings(); err != nil {
		return err
	}
	for _, w := range s.wires() {
		if err := w.make(); err != nil {
			return err
		}
	}
	if err := errors.Join(s.routes(), s.Queue(s.Rate, s.Limit)); err != nil {
		return err
	}
	return s.link()
}

// settings make the device forward, and keep all other hosts from sending unsolicited packets.
func (s *Stage) settings() error {
	silent := map[string]string{"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0", "ipv6/conf/default/accept_dad": "0", "ipv6/conf/all/accept_dad": "0",
		"ipv6/conf/default/router_solicitations": "0", "ipv4/tcp_no_metrics_save": "1", "ipv4/tcp_syncookies": "0",
		"ipv4/tcp_max_syn_backlog": "4096", "core/somaxconn": "4096"}
	errs := []error{s.middle.Sysctl(map[string]string{"ipv6/conf/default/disable_ipv6": "1", "ipv6/conf/all/disable_ipv6": "1"})}
	for _, n := range []*netns.Namespace{s.Clients, s.Device, s.Servers} {
		errs = append(errs, n.Sysctl(silent))
	}
	errs = append(errs, s.Device.Sysctl(map[string]string{"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1"}))
	return errors.Join(errs...)
}

func (s *Stage) routes() error {
	var errs []error
	run := func(n *netns.Namespace, format string, args ...any) {
		errs = append(errs, n.Command(format, args...))
	}
	run(s.Clients, "ip route add default via 172.31.1.2")
	run(s.Clients, "ip -6 route add default via fd31:1::2")
	run(s.Clients, "ip route add local %v dev lo", s.Options.Clients)
	run(s.Clients, "ip -6 route add local %v dev lo", s.Clients6)
	run(s.Servers, "ip route add default via 172.31.2.1")
	run(s.Servers, "ip -6 route add default via fd31:2::1")
	run(s.Servers, "ip route add local %v dev lo", s.Options.Servers)
	run(s.Servers, "ip -6 route add local %v dev lo", s.Servers6)
	run(s.Device, "ip route add %v via 172.31.2.2", s.Options.Servers)
	run(s.Device, "ip -6 route add %v via fd31:2::2", s.Servers6)
	run(s.Device, "ip route add default via 172.31.1.1") // spoofed addresses of floods are on the clients' side
	run(s.Device, "ip -6 route add default via fd31:1::1")
	return errors.Join(errs...)
}

// Past routes the servers' answers past the device.
func (s *Stage) Past() error {
	return errors.Join(s.Servers.Command("ip route add %v via 172.31.3.1 dev %s", s.Options.Clients, serversPast),
		s.Servers.Command("ip -6 route add %v via fd31:3::1 dev %s", s.Clients6, serversPast))
}

// Queue changes the rate of Out and the limit of its queue.
func (s *Stage) Queue(rate float64, limit int) error {
	return errors.Join(
		s.Device.Command("tc qdisc replace dev %s root handle 1: htb default 10", Out),
		s.Device.Command("tc class replace dev %s parent 1: classid 1:10 htb rate %.0fbit burst 3200 cburst 3200 quantum 1514", Out, rate),
		s.Device.Command("tc qdisc replace dev %s parent 1:10 handle 10: pfifo limit %d", Out, limit))
}

func (s *Stage) link() error {
	for n, l := range []Link{s.Near, s.Far} {
		a, b := "xdpmon-l0", "xdpmon-l1"
		if n == 1 {
			a, b = "xdpmon-r0", "xdpmon-r1"
		}
		link, err := emulator.Start(emulator.End{Namespace: s.middle, Interface: a}, emulator.End{Namespace: s.middle, Interface: b},
			emulator.Options{Seed: s.Seed + uint64(n), AtoB: l.ToServers.direction(), BtoA: l.ToClients.direction()})
		if err != nil {
			return err
		}
		s.links = append(s.links, link)
	}
	return nil
}

// Missed is the number of packets that the emulators themselves lost: a run with many is not valid.
func (s *Stage) Missed() (n uint64) {
	for _, l := range s.links {
		ab, ba := l.Counts()
		n += ab.Missed + ba.Missed + ab.Failed + ba.Failed + ab.Overflowed + ba.Overflowed
	}
	return n
}

// Late is the longest time that a packet left an emulator after it was due, ns.
func (s *Stage) Late() (most int64) {
	for _, l := range s.links {
		ab, ba := l.Counts()
		most = max(most, int64(ab.MaxLate), int64(ba.MaxLate))
	}
	return most
}

// Close releases all namespaces.
func (s *Stage) Close() error {
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.Close())
	}
	for _, n := range []*netns.Namespace{s.Clients, s.Device, s.Servers, s.middle} {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	return errors.Join(errs...)
}

// end is one end of a wire.
type end struct {
	at               *netns.Namespace
	name, ipv4, ipv6 string
}

type wire [2]end

func (w wire) make() error {
	if err := netns.Veth(w[0].at, w[0].name, w[1].at, w[1].name, 1500); err != nil {
		return err
	}
	for _, e := range w {
		if err := e.up(); err != nil {
			return err
		}
	}
	return errors.Join(netns.AwaitUp(w[0].at, w[0].name), netns.AwaitUp(w[1].at, w[1].name))
}

// up makes packets single, as the emulator needs them, and sets the addresses.
func (e end) up() error {
	if err := e.at.Run(func() error { return emulator.SingleSegments(e.name) }); err != nil {
		return err
	}
	var errs []error
	if e.ipv4 != "" {
		errs = append(errs, e.at.Command("ip addr add %s dev %s", e.ipv4, e.name), e.at.Command("ip -6 addr add %s dev %s nodad", e.ipv6, e.name),
			e.at.Command("ip link set lo up"))
	}
	return errors.Join(append(errs, e.at.Command("ip link set %s up", e.name))...)
}

// MAC is the hardware address of an interface.
func MAC(n *netns.Namespace, name string) (mac [6]byte, err error) {
	h, err := n.Netlink()
	if err != nil {
		return mac, err
	}
	defer h.Close()
	var l netlink.Link
	if l, err = h.LinkByName(name); err != nil {
		return mac, fmt.Errorf("find %s in %s: %w", name, n.Name, err)
	}
	copy(mac[:], l.Attrs().HardwareAddr)
	return mac, nil
}

// NextHop is the hardware address of the device as seen from the clients, and from the servers.
func (s *Stage) NextHop() (fromClients, fromServers [6]byte, err error) {
	fromClients, err1 := MAC(s.Device, in)
	fromServers, err2 := MAC(s.Device, Out)
	return fromClients, fromServers, errors.Join(err1, err2)
}
