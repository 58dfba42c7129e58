package attach

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/kernel"
)

// ErrNoInterface is wrapped when an interface does not exist in this network namespace.
var ErrNoInterface = errors.New("no such interface")

// Device holds the properties of an interface that decide how to attach to it, read once before anything is changed.
type Device struct {
	Name   string
	Index  int
	Kind   string // as in `ip -d link`: veth, tun, bridge, ...; "device" for drivers without a kind
	Bus    string // bus of the parent device; empty for virtual interfaces
	Master string // kind of the master interface; empty without one
	HWType uint16 // ARPHRD_*
	MTU    int
	Flags  uint32 // IFF_*

	TxQueues int
	GSOMax   uint32 // bytes of an aggregate of segments; 0: not known

	PeerIndex   int // of a veth: index of the other end, in namespace PeerNetNSID
	PeerNetNSID int // -1: this namespace

	XDPMode   Mode   // mode of the XDP program that is attached; empty without one
	XDPProg   uint32 // its id; 0 where several modes are in use at a time
	NativeXDP kernel.Answer
	Merges    bool // the device merges packets (LRO, hardware GRO), which native XDP disables
}

// Inspect reads an interface; nothing is changed.
func Inspect(name string) (*Device, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil, linkError(name, err)
	}
	d := &Device{Name: name, Kind: l.Type(), PeerNetNSID: -1}
	d.fromAttrs(l.Attrs())
	if d.HWType, err = hardwareType(name); err != nil {
		return nil, fmt.Errorf("read the link type of %s: %w", name, err)
	}
	d.Master = masterKind(l.Attrs().MasterIndex)
	if d.Kind == "veth" {
		d.PeerIndex, d.PeerNetNSID = l.Attrs().ParentIndex, l.Attrs().NetNsID
	}
	d.NativeXDP = nativeXDP(d.Index)
	d.Merges = mergesInHardware(name)
	return d, nil
}

// DeviceOf returns an interface as far as a listing describes it: enough to look for programs on it.
func DeviceOf(l netlink.Link) *Device {
	d := &Device{Name: l.Attrs().Name}
	d.fromAttrs(l.Attrs())
	return d
}

func (d *Device) fromAttrs(a *netlink.LinkAttrs) {
	d.Index, d.MTU, d.Bus, d.Flags, d.TxQueues, d.GSOMax = a.Index, a.MTU, a.ParentDevBus, a.RawFlags, a.NumTxQueues, a.GSOMaxSize
	if a.ParentDev != "" && d.Bus == "" {
		d.Bus = "unnamed"
	}
	if a.Xdp != nil && a.Xdp.Attached {
		d.XDPMode, d.XDPProg = xdpMode(a.Xdp.AttachMode), a.Xdp.ProgId
	}
}

func linkError(name string, err error) error {
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return fmt.Errorf("interface %s: %w in this network namespace; `ip link` lists those that exist", name, ErrNoInterface)
	}
	return fmt.Errorf("look up interface %s: %w", name, err)
}

func masterKind(index int) string {
	if index == 0 {
		return ""
	}
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return "unknown"
	}
	return l.Type()
}

// xdpMode translates IFLA_XDP_ATTACHED.
func xdpMode(attached uint32) Mode {
	switch attached {
	case nlXDPNative:
		return ModeNative
	case nlXDPGeneric:
		return ModeGeneric
	case nlXDPOffload:
		return "offload"
	case nlXDPMulti:
		return "several"
	}
	return ""
}

// XDP_ATTACHED_* of if_link.h.
const (
	nlXDPNative  = 1
	nlXDPGeneric = 2
	nlXDPOffload = 3
	nlXDPMulti   = 4
)

// hardwareType returns ARPHRD_* of an interface.
func hardwareType(name string) (uint16, error) {
	var t uint16
	err := withIfreq(name, func(fd int, req *unix.Ifreq) error {
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, req); err != nil {
			return err
		}
		t = req.Uint16()
		return nil
	})
	return t, err
}

// withIfreq runs fn with a socket of the calling thread's network namespace.
func withIfreq(name string, fn func(fd int, req *unix.Ifreq) error) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	return fn(fd, req)
}

// L3Only reports whether packets of this link type start with the IP header. Link types that are neither
// that nor Ethernet are refused: the parser would read addresses where there are none.
func L3Only(hwType uint16) (bool, error) {
	switch hwType {
	case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
		return false, nil
	case unix.ARPHRD_NONE, unix.ARPHRD_PPP, unix.ARPHRD_RAWIP, unix.ARPHRD_TUNNEL, unix.ARPHRD_TUNNEL6,
		unix.ARPHRD_SIT, unix.ARPHRD_IPGRE, unix.ARPHRD_IP6GRE, unix.ARPHRD_SLIP, unix.ARPHRD_VOID:
		return true, nil
	}
	return false, fmt.Errorf("%w: link type %d (ARPHRD_*) is neither Ethernet nor plain IP", kernel.ErrUnsupported, hwType)
}
