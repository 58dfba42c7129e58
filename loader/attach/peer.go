package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/xdpmon/xdpmon/loader/namespace"
	"golang.org/x/sys/unix"
)

// offloadState holds the offloads that attaching may change: those of a device and, for a veth, those of its other end,
// which usually is in another network namespace (a container's).
type offloadState struct {
	own, peer Offloads
	peerName  string
	problem   string // why the peer could not be read
}

// offloadsAt reads the offloads that a placement may change: XDP changes offloads, TC does not.
func offloadsAt(d *Device, p Placement) offloadState {
	if p.Ingress != HookXDP {
		return offloadState{}
	}
	return readOffloads(d)
}

func readOffloads(d *Device) offloadState {
	var s offloadState
	s.own, _ = OffloadsOf(d.Name)
	if d.PeerIndex == 0 {
		return s
	}
	err := inNamespace(d.PeerNetNSID, func() error { return s.readPeer(d.PeerIndex) })
	if err != nil {
		s.problem = fmt.Sprintf("; the offloads of its peer were not compared: %v", err)
	}
	return s
}

func (s *offloadState) readPeer(index int) error {
	peer, err := netlink.LinkByIndex(index) // package net would list all interfaces
	if err != nil {
		return err
	}
	s.peerName = peer.Attrs().Name
	s.peer, err = OffloadsOf(s.peerName)
	return err
}

// changes lists what differs between two readings of the same device.
func (s offloadState) changes(after offloadState, name string) []OffloadChange {
	found := s.own.diff(name, after.own)
	return append(found, s.peer.diff("peer "+s.peerName, after.peer)...)
}

// errNoNamespace: the namespace of a veth's other end could not be found from this process.
var errNoNamespace = errors.New("its network namespace is not visible from this process")

// inNamespace runs fn in the network namespace that has the given id in this one (-1: here).
func inNamespace(nsid int, fn func() error) error {
	if nsid < 0 {
		return fn()
	}
	ns, err := findNamespace(nsid)
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Run(fn)
}

// findNamespace looks for a namespace among the named ones, those of running processes, and those to which processes hold
// open descriptors.
func findNamespace(nsid int) (namespace.Handle, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return namespace.Handle{}, fmt.Errorf("open netlink: %w", err)
	}
	defer handle.Close()
	seen := map[string]bool{}
	for _, pattern := range []string{"/run/netns/*", "/run/docker/netns/*", "/proc/[0-9]*/ns/net", "/proc/[0-9]*/fd/*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if !isNewNamespace(path, seen) {
				continue
			}
			if ns, ok := openIfID(handle, path, nsid); ok {
				return ns, nil
			}
		}
	}
	return namespace.Handle{}, errNoNamespace
}

// isNewNamespace compares the target of a link below /proc, net:[…]; other files are mounts of a namespace.
func isNewNamespace(path string, seen map[string]bool) bool {
	name, err := os.Readlink(path)
	if err != nil {
		return !strings.HasPrefix(path, "/proc/")
	}
	known := seen[name]
	seen[name] = true
	return !known && strings.HasPrefix(name, "net:[")
}

func openIfID(handle *netlink.Handle, path string, nsid int) (ns namespace.Handle, ok bool) {
	ns, err := namespace.Open(path)
	if err != nil {
		return ns, false
	}
	if id, err := handle.GetNetNsIdByFd(ns.FD()); err != nil || id != nsid {
		ns.Close()
		return ns, false
	}
	return ns, true
}
