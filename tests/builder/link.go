package builder

import (
	"fmt"

	"github.com/xdpmon/xdpmon/userspace/packet"
)

// link writes everything in front of the network header, whose EtherType it is given.
func (w *writer) link(kind uint16) error {
	s := w.spec
	if s.Link == packet.LinkRaw {
		if len(s.VLANs) > 0 || len(s.MPLS) > 0 || s.PPPoE {
			return fmt.Errorf("tags, labels or a session without an Ethernet header: %w", ErrSpec)
		}
		return nil
	}
	next := kind
	switch {
	case s.PPPoE && len(s.MPLS) > 0:
		return fmt.Errorf("both PPPoE and MPLS: %w", ErrSpec)
	case s.PPPoE:
		next = EtherPPPoE
	case len(s.MPLS) > 0:
		next = EtherMPLS
	}
	w.ethernet(s.DstMAC, s.SrcMAC, s.VLANs, next)
	if s.PPPoE {
		w.pppoe(kind)
	}
	w.mpls(s.MPLS)
	return nil
}

func (w *writer) ethernet(dst, src [6]byte, tags []VLAN, next uint16) {
	w.bytes(dst[:]...)
	w.bytes(src[:]...)
	for _, tag := range tags {
		if tag.TPID == 0 {
			tag.TPID = EtherVLAN
		}
		w.u16(tag.TPID)
		w.u16(uint16(tag.Priority)<<13 | tag.ID&0xfff)
	}
	w.u16(next)
}

func (w *writer) pppoe(kind uint16) {
	const session = 1
	protocol := uint16(0x0021)
	if kind == EtherIPv6 {
		protocol = 0x0057
	}
	w.bytes(0x11, 0)
	w.u16(session)
	pos := len(w.buf)
	w.u16(0)
	w.u16(protocol)
	w.fix(func() error {
		w.put16(pos, w.wireSince(pos+2))
		return nil
	})
}

func (w *writer) mpls(labels []uint32) {
	for i, label := range labels {
		entry := label<<12 | 64
		if i == len(labels)-1 {
			entry |= 0x100 // bottom of the stack
		}
		w.u32(entry)
	}
}
