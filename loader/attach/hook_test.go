package attach

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/tests/isolated"
)

func nic() Device {
	return Device{Name: "eth0", Kind: "device", Bus: "pci", HWType: unix.ARPHRD_ETHER, MTU: 1500, NativeXDP: kernel.Answer{State: kernel.Supported}}
}

func TestAutoHook(t *testing.T) {
	change := func(f func(*Device)) Device { d := nic(); f(&d); return d }
	for _, tc := range []struct {
		name string
		dev  Device
		opts Options
		want Hook
		why  string
	}{
		{"network card", nic(), Options{}, HookXDP, "network card"},
		{"generic is set", change(func(d *Device) { d.Bus, d.Kind = "", "veth" }), Options{Mode: ModeGeneric}, HookXDP, "mode generic"},
		{"veth", change(func(d *Device) { d.Bus, d.Kind = "", "veth" }), Options{}, HookTC, "veth"},
		{"tap", change(func(d *Device) { d.Bus, d.Kind = "", "tun" }), Options{}, HookTC, "tun"},
		{"tun", change(func(d *Device) { d.Bus, d.Kind, d.HWType = "", "tun", unix.ARPHRD_NONE }), Options{}, HookTC, "not an Ethernet"},
		{"bridge port", change(func(d *Device) { d.Master = "bridge" }), Options{}, HookTC, "port of a bridge"},
		{"virtio with merged packets", change(func(d *Device) { d.Bus, d.Merges = "virtio", true }), Options{}, HookTC, "hypervisor"},
		{"virtio without", change(func(d *Device) { d.Bus = "virtio" }), Options{}, HookXDP, "network card"},
		{"no native XDP", change(func(d *Device) { d.NativeXDP.State = kernel.Unsupported }), Options{}, HookTC, "no native XDP"},
		{"no native XDP, fallback allowed", change(func(d *Device) { d.NativeXDP.State = kernel.Unsupported }), Options{Mode: ModeAuto}, HookXDP, ""},
		{"not known", change(func(d *Device) { d.NativeXDP.State = kernel.Unknown }), Options{}, HookXDP, ""},
		{"taken", change(func(d *Device) { d.XDPMode = ModeNative }), Options{}, HookTC, "another XDP"},
	} {
		p, err := ChooseHooks(&tc.dev, tc.opts.WithDefaults())
		lab.NoError(t, err)
		if p.Ingress != tc.want || !strings.Contains(p.Why, tc.why) {
			t.Errorf("%s: %s because %q", tc.name, p.Ingress, p.Why)
		}
	}
}

func TestLinkTypes(t *testing.T) {
	for hw, want := range map[uint16]bool{unix.ARPHRD_ETHER: false, unix.ARPHRD_LOOPBACK: false, unix.ARPHRD_NONE: true, unix.ARPHRD_PPP: true, unix.ARPHRD_TUNNEL: true} {
		if got, err := L3Only(hw); err != nil || got != want {
			t.Errorf("link type %d: %t %v", hw, got, err)
		}
	}
	d := nic()
	d.HWType = unix.ARPHRD_INFINIBAND
	if _, err := ChooseHooks(&d, Options{}.WithDefaults()); !errors.Is(err, kernel.ErrUnsupported) {
		t.Errorf("infiniband: %v", err)
	}
}

// Inspect of the kernel's own devices.
func TestInspect(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	lab.Veth(t)
	lab.Sh(t, "ip link add xdpmon-k0 type bridge")
	lab.Sh(t, "ip link set %s master xdpmon-k0", lab.Near)
	d, err := Inspect(lab.Near)
	lab.NoError(t, err)
	if d.Kind != "veth" || d.Master != "bridge" || d.PeerIndex == 0 || d.PeerNetNSID < 0 || d.Bus != "" || d.HWType != unix.ARPHRD_ETHER {
		t.Errorf("%+v", d)
	}
	lo, err := Inspect("lo")
	lab.NoError(t, err)
	if lo.NativeXDP.State == kernel.Supported {
		t.Errorf("lo has no native XDP: %+v", lo.NativeXDP)
	}
	if d.NativeXDP.State == kernel.Unsupported {
		t.Errorf("veth has native XDP: %+v", d.NativeXDP)
	}
}

// Packets of a tun device have no link header; the parser must be configured for that.
func TestL3OnlyInterface(t *testing.T) {
	if !lab.Isolated(t) {
		return
	}
	tun := openTun(t, "xdpmon-t0")
	inst := lab.LoadChain(t)
	a, err := Attach(inst, "xdpmon-t0", Options{Direction: Both})
	lab.NoError(t, err)
	if !a.L3Only {
		t.Error("not recognised as an interface without link header")
	}
	for range 3 {
		_, err := unix.Write(tun, udpPacket())
		lab.NoError(t, err)
	}
	lab.NoError(t, lab.SendUDP("10.88.0.2", 2))
	bank, err := inst.Control().Flip()
	lab.NoError(t, err)
	c, err := inst.Counts(bank)
	lab.NoError(t, err)
	if c.Seen != 5 || c.Parsed != 5 {
		t.Errorf("5 packets were on the interface: %d seen, %d parsed: %v", c.Seen, c.Parsed, c.Reasons)
	}
	lab.NoError(t, a.Close())
}

func openTun(t *testing.T, name string) int {
	t.Helper()
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, NonPersist: true, Queues: 1}
	lab.NoError(t, netlink.LinkAdd(tun))
	t.Cleanup(func() { tun.Fds[0].Close() })
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	lab.Sh(t, "ip addr add 10.88.0.1/24 dev %s", name)
	lab.Sh(t, "ip link set %s up", name)
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
