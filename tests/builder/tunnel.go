package builder

import (
	"fmt"
)

const (
	portVXLAN  = 4789
	portGENEVE = 6081
)

// outer writes a tunnel's headers up to the inner IP header.
func (w *writer) outer(o *Outer) error {
	proto, err := o.proto(w.spec)
	if err != nil {
		return err
	}
	if err := w.network(&IP{Src: o.Src, Dst: o.Dst}, proto); err != nil {
		return err
	}
	inner := etherType(w.spec.IP.Src.Is4())
	carried := inner
	if o.Bridged {
		carried = EtherBridged
	}
	switch o.Kind {
	case GRE:
		w.gre(o, carried)
	case VXLAN:
		w.udp(o.SrcPort, portVXLAN, false)
		w.u32(0x08000000)
		w.u32(o.VNI << 8)
	case GENEVE:
		w.udp(o.SrcPort, portGENEVE, false)
		w.bytes(byte((len(o.Options)+3)/4), 0)
		w.u16(carried)
		w.u32(o.VNI << 8)
		w.padded(o.Options, 4)
	}
	if o.Bridged || o.Kind == VXLAN {
		w.ethernet(w.spec.DstMAC, w.spec.SrcMAC, o.InnerVLANs, inner)
	}
	return nil
}

// proto is the number by which the outer header names the tunnel.
func (o *Outer) proto(s *Spec) (uint8, error) {
	switch o.Kind {
	case GRE:
		return ProtoGRE, nil
	case VXLAN, GENEVE:
		return ProtoUDP, nil
	case IPIP:
		if s.IP.Src.Is4() {
			return ProtoIPIP, nil
		}
		return ProtoIPv6, nil
	}
	return 0, fmt.Errorf("tunnel of kind %d: %w", o.Kind, ErrSpec)
}

func (w *writer) gre(o *Outer, carried uint16) {
	var flags uint16
	options := 0
	for _, field := range [3]struct {
		set bool
		bit uint16
	}{{o.GRESum, 0x8000}, {o.GREKey, 0x2000}, {o.GRESeq, 0x1000}} {
		if field.set {
			flags |= field.bit
			options++
		}
	}
	w.u16(flags)
	w.u16(carried)
	w.zeros(4 * options)
}
