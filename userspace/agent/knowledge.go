package agent

import (
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/links"
	"github.com/xdpmon/xdpmon/userspace/agent/config"
	naming "github.com/xdpmon/xdpmon/userspace/names"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// knowledge holds the sources of names for addresses and ports.
type knowledge struct {
	names  *naming.Names
	listen *naming.Listener // nil: names are not learned from live traffic
}

// knowing opens the sources that a configuration asks for. Listeners of the running one are kept; opening a new socket needs a privilege that
// the agent has only at its start.
func (a *Agent) knowing(c config.Names, running knowledge) (next knowledge, err error) {
	warn := func(format string, args ...any) { a.log.Warn(fmt.Sprintf(format, args...)) }
	next.names, err = naming.New(naming.Options{Services: c.Services, DNS: c.DNS, Files: c.Databases, Warn: warn, Learned: running.names})
	if err != nil || !c.DNS {
		return next, err
	}
	if next.listen = running.listen; next.listen == nil {
		if next.listen, err = naming.Listen(next.names); err != nil {
			next.names.Close()
			return knowledge{}, fmt.Errorf("names.dns: %w", err)
		}
	}
	return next, nil
}

// know puts the sources that knowing has opened into use.
func (a *Agent) know(next knowledge) {
	next.listen.Feed(next.names)
	a.mu.Lock()
	before := a.known
	a.known = next
	a.mu.Unlock()
	if before.listen != next.listen {
		before.listen.Close()
	}
	before.names.Close()
}

// mostGuests is the most addresses of guests that are stored.
const mostGuests = 4096

// readable checks that the databases of a configuration can be read.
func readable(c config.Names) error {
	n, err := naming.New(naming.Options{Files: c.Databases})
	n.Close()
	return err
}

// forget closes sources that knowing has opened and know does not use.
func (a *Agent) forget(next knowledge) {
	if next.listen != a.known.listen {
		next.listen.Close()
	}
	next.names.Close()
}

// updateGuests updates the addresses of guests.
func (a *Agent) updateGuests(links []Link) { a.known.names.SetGuests(addresses(guestsOf(links))) }

// guestsOf are the guests of interfaces by their index.
func guestsOf(links []Link) map[int]report.Guest {
	guests := map[int]report.Guest{}
	for _, l := range links {
		if l.Guest.Name != "" {
			guests[l.Index] = l.Guest
		}
	}
	return guests
}

// Guests are the addresses of this host's guests now (domains of libvirt, pods, containers, network namespaces), for verbs that run without an agent. A source that cannot be
// read names nobody.
func Guests() (map[netip.Addr]report.Guest, error) {
	r, err := links.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	list, err := (&watcher{links: r}).list()
	if err != nil {
		return nil, err
	}
	newNamer(config.Names{Libvirt: true, Namespaces: true}, slog.New(slog.DiscardHandler)).name(list)
	return addresses(guestsOf(list)), nil
}

// learnOn learns names from DNS answers that arrive on the measured interfaces.
func (a *Agent) learnOn(wanted map[string]desired) {
	var indexes []int
	for _, d := range wanted {
		for _, l := range d.ifaces {
			indexes = append(indexes, l.Index)
		}
	}
	a.known.listen.On(indexes...)
}

// addresses are the guests' addresses that the kernel knows: neighbours on a guest's interface, neighbours on a bridge whose hardware address the
// bridge has learned on it, and routes of a single address to it. Listing needs no privilege.
func addresses(guests map[int]report.Guest) map[netip.Addr]report.Guest {
	found := map[netip.Addr]report.Guest{}
	if len(guests) == 0 {
		return found
	}
	ports := map[string]report.Guest{} // by hardware address
	if list, err := netlink.NeighList(0, unix.AF_BRIDGE); err == nil {
		for _, n := range list {
			if g, ok := guests[n.LinkIndex]; ok && n.State&netlink.NUD_PERMANENT == 0 {
				ports[n.HardwareAddr.String()] = g
			}
		}
	}
	add := func(ip []byte, g report.Guest) {
		if a, ok := netip.AddrFromSlice(ip); ok && g.Name != "" && len(found) < mostGuests && !a.IsLinkLocalUnicast() {
			found[a.Unmap()] = g
		}
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		if list, err := netlink.NeighList(0, family); err == nil {
			for _, n := range list {
				g, ok := guests[n.LinkIndex]
				if !ok {
					g = ports[n.HardwareAddr.String()]
				}
				add(n.IP, g)
			}
		}
		if list, err := netlink.RouteList(nil, family); err == nil {
			for _, r := range list {
				if g, ok := guests[r.LinkIndex]; ok && r.Dst != nil && r.Gw == nil {
					if ones, bits := r.Dst.Mask.Size(); ones == bits {
						add(r.Dst.IP, g)
					}
				}
			}
		}
	}
	return found
}
