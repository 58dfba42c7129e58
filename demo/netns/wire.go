package netns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/demo/emulator"
)

// Veth makes a veth pair directly in its two namespaces, so that no end is ever in another namespace.
func Veth(a *Namespace, nameA string, b *Namespace, nameB string, mtu int) error {
	handle, err := a.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(b.Fd()), PeerMTU: uint32(mtu)}
	if err := handle.LinkAdd(veth); err != nil {
		return fmt.Errorf("make veth %s to %s: %w", nameA, nameB, err)
	}
	return up(b, nameB)
}

func up(n *Namespace, names ...string) error {
	handle, err := n.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	for _, name := range names {
		link, err := handle.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s in %s: %w", name, n.Name, err)
		}
		if err := handle.LinkSetUp(link); err != nil {
			return fmt.Errorf("bring %s in %s up: %w", name, n.Name, err)
		}
	}
	return nil
}

// AwaitUp waits until interfaces are operational, which is known a moment after they are up.
func AwaitUp(n *Namespace, names ...string) error {
	handle, err := n.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	deadline := time.Now().Add(10 * time.Second)
	for _, name := range names {
		for {
			link, err := handle.LinkByName(name)
			if err != nil {
				return fmt.Errorf("find %s in %s: %w", name, n.Name, err)
			}
			state := link.Attrs().OperState
			if state == netlink.OperUp {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("wait for %s in %s: it is still %v", name, n.Name, state)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

func makeBridge(n *Namespace, mtu int, ports ...string) error {
	handle, err := n.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = bridgeName, mtu
	if err := handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("make bridge in %s: %w", n.Name, err)
	}
	bridge, err := handle.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find bridge in %s: %w", n.Name, err)
	}
	for _, port := range ports {
		link, err := handle.LinkByName(port)
		if err != nil {
			return fmt.Errorf("find %s in %s: %w", port, n.Name, err)
		}
		if err := handle.LinkSetMaster(link, bridge); err != nil {
			return fmt.Errorf("add %s to bridge in %s: %w", port, n.Name, err)
		}
	}
	return up(n, bridgeName)
}

// silence keeps a namespace from sending anything of its own: no IPv6, so no router or listener messages.
func silence(n *Namespace) error {
	return n.Sysctl(map[string]string{
		"ipv6/conf/all/disable_ipv6":     "1",
		"ipv6/conf/default/disable_ipv6": "1",
	})
}

// Sysctl writes settings below /proc/sys/net, which shows every thread its own namespace.
func (n *Namespace) Sysctl(values map[string]string) error {
	return n.Run(func() error {
		for name, value := range values {
			err := os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0)
			if err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("set %s in %s: %w", name, n.Name, err)
			}
		}
		return nil
	})
}

// configure gives a host its addresses and the other host as a permanent neighbour, so that the first packet of a
// connection is the connection's, and losing a neighbour request does not cost a second.
func (h *Host) configure(other *Host, opts *Options) error {
	handle, err := h.Netlink()
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := h.Sysctl(map[string]string{"ipv6/conf/" + h.Interface + "/router_solicitations": "0"}); err != nil {
		return err
	}
	link, err := handle.LinkByName(h.Interface)
	if err != nil {
		return err
	}
	h.Index = link.Attrs().Index
	if err := handle.LinkSetHardwareAddr(link, h.MAC[:]); err != nil {
		return fmt.Errorf("set hardware address: %w", err)
	}
	if err := h.addresses(handle, link, other); err != nil {
		return err
	}
	if opts.Middle == Emulator || opts.SingleSegments {
		if err := h.Run(func() error { return emulator.SingleSegments(h.Interface) }); err != nil {
			return err
		}
	}
	return up(h.Namespace, "lo", h.Interface)
}

func (h *Host) addresses(handle *netlink.Handle, link netlink.Link, other *Host) error {
	for _, end := range []struct {
		own, other netip.Addr
		bits       int
	}{{h.IPv4, other.IPv4, 24}, {h.IPv6, other.IPv6, 64}} {
		mask := net.CIDRMask(end.bits, end.own.BitLen())
		address := &netlink.Addr{IPNet: &net.IPNet{IP: end.own.AsSlice(), Mask: mask}, Flags: unix.IFA_F_NODAD}
		if err := handle.AddrAdd(link, address); err != nil {
			return fmt.Errorf("add address %s: %w", end.own, err)
		}
		neighbour := &netlink.Neigh{
			LinkIndex: h.Index, State: netlink.NUD_PERMANENT, IP: end.other.AsSlice(), HardwareAddr: other.MAC[:],
		}
		if err := handle.NeighSet(neighbour); err != nil {
			return fmt.Errorf("set neighbour %s: %w", end.other, err)
		}
	}
	return nil
}
