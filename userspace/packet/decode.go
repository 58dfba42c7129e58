package packet

import "sync"

// The bounds of the walk, those of bpf/include/parse.h.
const (
	MaxTags       = 3 // 802.1Q and 802.1ad
	MaxLabels     = 8 // MPLS
	MaxExtensions = 8 // IPv6 extension headers
	MaxTCPOptions = 20
	MaxOffset     = 1984 // bytes in front of a header
)

// DecodeOptions are the zero value for the outermost headers with everything that there is to read in them.
type DecodeOptions struct {
	// Decap follows one level of VXLAN, GENEVE, GRE, IPIP or 6in4; the inner headers become the packet.
	Decap bool
}

var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// Decode reads a frame into p, overwriting all of it. It never fails: fields that could not be read are not Valid, and the reason
// is returned. Lengths are from the IP header, never from the captured length.
func Decode(f *Frame, opts DecodeOptions, p *Packet) Reason {
	d := decoders.Get().(*Decoder)
	reason := d.Decode(f, opts, p)
	decoders.Put(d)
	return reason
}

// Decoder is Decode for a loop: it keeps the walk between packets. The zero value is ready; it is not safe for
// concurrent use. Headers are read in place: a library's tables of protocols would be 7 MB of a resident agent.
type Decoder struct {
	data  []byte // captured bytes from the cursor on; may be empty while off advances
	off   int    // bytes in front of the cursor
	wire  int    // bytes of the whole packet on the wire
	l4len int    // transport bytes by the IP header
	total int    // bytes of the IP packet by its header, 0 while unknown
}

// Decode is the function of the same name.
func (d *Decoder) Decode(f *Frame, opts DecodeOptions, p *Packet) Reason {
	*p = Packet{Time: f.Time, Interface: f.Interface, Segs: 1, Len: uint32(f.Len), Enqueued: f.Enqueued, Queue: f.Queue}
	if f.Direction == Egress {
		p.Valid |= IsEgress
	}
	d.data, d.off, d.wire, d.total = f.Data, 0, f.Len, 0
	family, reason := d.link(f.Link, p)
	if reason != Parsed {
		return reason
	}
	front := d.off
	reason = d.ip(family, p)
	if d.total != 0 {
		p.Len = uint32(front + d.total)
	}
	if opts.Decap {
		reason = d.decap(p, reason)
	}
	return reason
}

// advance moves the cursor, possibly beyond the captured bytes: the next header is then truncated.
func (d *Decoder) advance(n int) {
	d.off += n
	d.data = d.data[min(n, len(d.data)):]
}

// far reports whether the cursor is beyond the offset up to which headers are parsed.
func (d *Decoder) far() bool { return d.off > MaxOffset }
