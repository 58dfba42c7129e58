package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/kernel"
)

// The netdev family of generic netlink: include/uapi/linux/netdev.h.
const (
	netdevDevGet      = 1
	netdevIfindex     = 1
	netdevXDPFeatures = 3

	netdevXDPBasic = 1 << 0
	netdevXDPRxSG  = 1 << 5
)

// nativeXDP reads the features that the driver declares, without changing the interface. Kernels below 6.3 do not report them.
func nativeXDP(ifindex int) kernel.Answer {
	bits, err := xdpFeatures(ifindex)
	switch {
	case errors.Is(err, unix.ENOENT):
		return kernel.Answer{State: kernel.Unknown, Detail: "kernels below 6.3 do not report it; only attaching shows it"}
	case err != nil:
		return kernel.Answer{State: kernel.Unknown, Detail: err.Error()}
	case bits&netdevXDPBasic == 0:
		return kernel.Answer{State: kernel.Unsupported, Detail: "its driver declares none"}
	case bits&netdevXDPRxSG == 0:
		return kernel.Answer{State: kernel.Supported, Detail: "packets in one buffer only: the MTU must fit a page"}
	}
	return kernel.Answer{State: kernel.Supported, Detail: "packets in several buffers too"}
}

// xdpFeatures returns the bits of NETDEV_A_DEV_XDP_FEATURES.
func xdpFeatures(ifindex int) (uint64, error) {
	family, err := netlink.GenlFamilyGet("netdev")
	if err != nil {
		return 0, err
	}
	req := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	req.AddData(genlHeader{netdevDevGet, uint8(family.Version)})
	req.AddData(nl.NewRtAttr(netdevIfindex, nl.Uint32Attr(uint32(ifindex))))
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return 0, fmt.Errorf("read XDP features: %w", err)
	}
	for _, m := range msgs {
		if bits, ok := attr64(m, netdevXDPFeatures); ok {
			return bits, nil
		}
	}
	return 0, errors.New("read XDP features: the reply has no such attribute")
}

// genlHeader is command, version and 16 reserved bits. Kernels refuse a request whose reserved bits are not zero, and
// nl.Genlmsg sends whatever follows it in memory.
type genlHeader [nl.SizeofGenlmsg]byte

func (genlHeader) Len() int { return nl.SizeofGenlmsg }

func (h genlHeader) Serialize() []byte { return h[:] }

func attr64(msg []byte, kind uint16) (uint64, bool) {
	attrs, err := nl.ParseRouteAttr(msg[nl.SizeofGenlmsg:])
	if err != nil {
		return 0, false
	}
	i := slices.IndexFunc(attrs, func(a syscall.NetlinkRouteAttr) bool { return a.Attr.Type == kind && len(a.Value) >= 8 })
	if i < 0 {
		return 0, false
	}
	return binary.NativeEndian.Uint64(attrs[i].Value), true
}
