package report

import (
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report/known"
)

// The key distinguishes instances, the interface is one or none, and a guest is named with its kind if the name alone is ambiguous.
func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		is         Identity
		key, iface string
	}{
		{Identity{Instance: "eth0", Interfaces: []string{"eth0"}}, "eth0", "eth0"},
		{Identity{Instance: "uplinks", Interfaces: []string{"eth0", "eth1"}}, "uplinks", ""},
		{Identity{Instance: "tenants", Each: "vnet0", Interfaces: []string{"vnet0"}}, "tenants/vnet0", "vnet0"},
		{Identity{Instance: "tenants", Each: "vnet0"}, "tenants/vnet0", "vnet0"}, // its interface is missing at the moment
		{Identity{Instance: "edge", Vantage: "leaves"}, "edge/leaves", ""},
		{Identity{Instance: "a.pcap"}, "a.pcap", ""},
	} {
		if c.is.Key() != c.key || c.is.Interface() != c.iface {
			t.Errorf("%+v: key %q, interface %q", c.is, c.is.Key(), c.is.Interface())
		}
	}
	for guest, want := range map[Guest]string{{}: "", {Kind: known.GuestDomain, Name: "web"}: "web", {Kind: known.GuestPod, Name: "1b4e"}: "pod 1b4e", {Kind: known.GuestContainer, Name: "0123"}: "container 0123",
		{Kind: known.GuestLXC, Name: "web"}: "lxc web", {Kind: known.GuestNamespace, Name: "blue"}: "blue"} {
		if guest.String() != want {
			t.Errorf("%+v is %q", guest, guest)
		}
	}
}
