package features

import (
	"github.com/xdpmon/xdpmon/loader/attach"
	"github.com/xdpmon/xdpmon/loader/kernel"
)

// interfaceProbes are the probes of one interface.
func interfaceProbes(d *attach.Device) []probe {
	return []probe{
		{"xdp_native", "native XDP on this interface", "", false, "use --hook tc, or --mode generic", func() kernel.Answer { return d.NativeXDP }},
		{"xdp_free", "no other XDP program on this interface", "", false, "use --hook tc, which runs as well", func() kernel.Answer { return askXDPFree(d) }},
		{"link_type", "link type that the parser reads", "", true, "attach to the interface below it", func() kernel.Answer { return askLinkType(d) }},
	}
}

func askXDPFree(d *attach.Device) kernel.Answer {
	if d.XDPMode == "" {
		return kernel.Answer{State: kernel.Supported}
	}
	return kernel.Answer{State: kernel.Unsupported, Detail: attach.DescribeXDP(d)}
}

func askLinkType(d *attach.Device) kernel.Answer {
	l3, err := attach.L3Only(d.HWType)
	switch {
	case err != nil:
		return kernel.Answer{State: kernel.Unsupported, Detail: err.Error()}
	case l3:
		return kernel.Answer{State: kernel.Supported, Detail: "packets start with the IP header"}
	}
	return kernel.Answer{State: kernel.Supported, Detail: "Ethernet"}
}
