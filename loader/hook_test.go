package loader

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func nic() device {
	return device{Name: "eth0", Kind: "device", Bus: "pci", HWType: unix.ARPHRD_ETHER, MTU: 1500, NativeXDP: answer{State: Supported}}
}

func TestAutoHook(t *testing.T) {
	change := func(f func(*device)) device { d := nic(); f(&d); return d }
	for _, tc := range []struct {
		name string
		dev  device
		opts AttachOptions
		want Hook
		why  string
	}{
		{"network card", nic(), AttachOptions{}, HookXDP, "network card"},
		{"generic was asked for", change(func(d *device) { d.Bus, d.Kind = "", "veth" }), AttachOptions{Mode: ModeGeneric}, HookXDP, "mode generic"},
		{"veth", change(func(d *device) { d.Bus, d.Kind = "", "veth" }), AttachOptions{}, HookTC, "veth"},
		{"tap", change(func(d *device) { d.Bus, d.Kind = "", "tun" }), AttachOptions{}, HookTC, "tun"},
		{"tun", change(func(d *device) { d.Bus, d.Kind, d.HWType = "", "tun", unix.ARPHRD_NONE }), AttachOptions{}, HookTC, "not an Ethernet"},
		{"bridge port", change(func(d *device) { d.Master = "bridge" }), AttachOptions{}, HookTC, "port of a bridge"},
		{"virtio with merged packets", change(func(d *device) { d.Bus, d.Merges = "virtio", true }), AttachOptions{}, HookTC, "hypervisor"},
		{"virtio without", change(func(d *device) { d.Bus = "virtio" }), AttachOptions{}, HookXDP, "network card"},
		{"no native XDP", change(func(d *device) { d.NativeXDP.State = Unsupported }), AttachOptions{}, HookTC, "no native XDP"},
		{"no native XDP, fallback asked for", change(func(d *device) { d.NativeXDP.State = Unsupported }), AttachOptions{Mode: ModeAuto}, HookXDP, ""},
		{"not known", change(func(d *device) { d.NativeXDP.State = Unknown }), AttachOptions{}, HookXDP, ""},
		{"taken", change(func(d *device) { d.XDPMode = ModeNative }), AttachOptions{}, HookTC, "another XDP"},
	} {
		p, err := chooseHooks(&tc.dev, tc.opts.withDefaults())
		noError(t, err)
		if p.Ingress != tc.want || !strings.Contains(p.Why, tc.why) {
			t.Errorf("%s: %s because %q", tc.name, p.Ingress, p.Why)
		}
	}
}

func TestLinkTypes(t *testing.T) {
	for hw, want := range map[uint16]bool{unix.ARPHRD_ETHER: false, unix.ARPHRD_LOOPBACK: false, unix.ARPHRD_NONE: true, unix.ARPHRD_PPP: true, unix.ARPHRD_TUNNEL: true} {
		if got, err := l3Only(hw); err != nil || got != want {
			t.Errorf("link type %d: %t %v", hw, got, err)
		}
	}
	d := nic()
	d.HWType = unix.ARPHRD_INFINIBAND
	if _, err := chooseHooks(&d, AttachOptions{}.withDefaults()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("infiniband: %v", err)
	}
}

// The kernel's own devices: what inspect makes of them.
func TestInspect(t *testing.T) {
	if !isolated(t) {
		return
	}
	veth(t)
	sh(t, "ip link add xdpmon-k0 type bridge")
	sh(t, "ip link set %s master xdpmon-k0", near)
	d, err := inspect(near)
	noError(t, err)
	if d.Kind != "veth" || d.Master != "bridge" || d.PeerIndex == 0 || d.PeerNetNSID < 0 || d.Bus != "" || d.HWType != unix.ARPHRD_ETHER {
		t.Errorf("%+v", d)
	}
	lo, err := inspect("lo")
	noError(t, err)
	if lo.NativeXDP.State == Supported {
		t.Errorf("lo has no native XDP: %+v", lo.NativeXDP)
	}
	if d.NativeXDP.State == Unsupported {
		t.Errorf("veth has native XDP: %+v", d.NativeXDP)
	}
}

// A tun device hands over packets without a link header; the parser must be told.
func TestL3OnlyInterface(t *testing.T) {
	if !isolated(t) {
		return
	}
	tun := openTun(t, "xdpmon-t0")
	inst := loadChain(t)
	a, err := Attach(inst, "xdpmon-t0", AttachOptions{Direction: Both})
	noError(t, err)
	if !a.L3Only {
		t.Error("not recognised as an interface without link header")
	}
	for range 3 {
		_, err := unix.Write(tun, udpPacket())
		noError(t, err)
	}
	noError(t, sendUDP("10.88.0.2", 2))
	bank, err := inst.Control().Flip()
	noError(t, err)
	c, err := inst.Counts(bank)
	noError(t, err)
	if c.Seen != 5 || c.Parsed != 5 {
		t.Errorf("5 packets were on the interface: %d seen, %d parsed: %v", c.Seen, c.Parsed, c.Reasons)
	}
	noError(t, a.Close())
}

func openTun(t *testing.T, name string) int {
	t.Helper()
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, NonPersist: true, Queues: 1}
	noError(t, netlink.LinkAdd(tun))
	t.Cleanup(func() { tun.Fds[0].Close() })
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	sh(t, "ip addr add 10.88.0.1/24 dev %s", name)
	sh(t, "ip link set %s up", name)
	return int(tun.Fds[0].Fd())
}

// udpPacket is an IPv4 UDP datagram to port 9 from a neighbour that the kernel does not answer.
func udpPacket() []byte {
	p := []byte{0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 88, 0, 2, 10, 88, 0, 255, 0, 9, 0, 9, 0, 8, 0, 0}
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(p[i])<<8 | uint32(p[i+1])
	}
	sum = ^(sum>>16 + sum&0xffff)
	p[10], p[11] = byte(sum>>8), byte(sum)
	return p
}
