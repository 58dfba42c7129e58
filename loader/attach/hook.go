package attach

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/loader/kernel"
)

// Placement is where the programs of one interface go, and why.
type Placement struct {
	Ingress Hook // empty: not attached
	Egress  Hook
	Mode    Mode // of XDP
	Why     string
}

// ChooseHooks decides by the options and the kind of interface. It changes nothing.
func ChooseHooks(d *Device, o Options) (Placement, error) {
	p := Placement{Mode: o.Mode}
	if o.Direction != Ingress {
		p.Egress = HookTC
	}
	if o.Direction == Egress {
		p.Why = "only TC sees egress"
		return p, nil
	}
	p.Ingress, p.Why = o.Hook, "chosen by --hook"
	if o.Hook == HookAuto {
		p.Ingress, p.Why = AutoHook(d, o)
	}
	return p, checkPlacement(d, p)
}

// AutoHook is the rule of --hook auto. On a NIC native XDP is the cheapest hook there is. On virtual
// interfaces it makes the kernel segment aggregates that would otherwise stay one packet, and a bulk TCP connection over
// veth loses two thirds of its throughput; TC costs it nothing measurable.
func AutoHook(d *Device, o Options) (Hook, string) {
	if o.Mode == ModeGeneric {
		return HookXDP, "mode generic is set, and only XDP has modes"
	}
	if why := whyNotXDP(d, o.Mode); why != "" {
		return HookTC, why
	}
	return HookXDP, "a network card, where native XDP costs least"
}

// whyNotXDP returns the first reason against native XDP on an interface, or nothing.
func whyNotXDP(d *Device, m Mode) string {
	switch {
	case d.HWType != arphrdEther:
		return "not an Ethernet device"
	case d.Bus == "":
		return fmt.Sprintf("a virtual interface (%s), where native XDP makes the kernel split merged packets and slows bulk TCP down", d.Kind)
	case isSwitch(d.Master):
		return fmt.Sprintf("a port of a %s, whose packets are merged and forwarded", d.Master)
	case isParavirtual(d.Bus) && d.Merges:
		return "the hypervisor delivers merged packets, which native XDP would disable"
	case d.XDPMode != "":
		return "another XDP program is attached already"
	case d.NativeXDP.State == kernel.Unsupported && m == ModeNative:
		return "its driver has no native XDP"
	}
	return ""
}

const arphrdEther = 1

func isSwitch(master string) bool {
	return slices.Contains([]string{"bridge", "openvswitch"}, master)
}

func isParavirtual(bus string) bool {
	return slices.Contains([]string{"virtio", "xen", "vmbus"}, bus)
}

// checkPlacement refuses placements that cannot work, before anything is changed.
func checkPlacement(d *Device, p Placement) error {
	if _, err := L3Only(d.HWType); err != nil {
		return fmt.Errorf("attach to %s: %w", d.Name, err)
	}
	if p.Ingress == HookXDP && d.XDPMode != "" {
		return fmt.Errorf("attach XDP to %s: %w: %s; use --hook tc, which runs as well, or remove that program first",
			d.Name, ErrBusy, DescribeXDP(d))
	}
	return nil
}

func hookName(h Hook) string {
	switch h {
	case HookXDP:
		return "XDP"
	case HookSent:
		return "start of transmission"
	}
	return "TC"
}
