package packet

// Reason is the reason why the walk over a packet's headers ended: enum parse_reason of bpf/include/parse.h.
type Reason uint8

const (
	Parsed         Reason = iota
	Truncated             // a header ends beyond the captured bytes
	NotIP                 // ARP, LLDP, ...
	BadIP                 // version, header length or total length cannot be
	ExtensionChain        // more than MaxExtensions extension headers
	LaterFragment         // not the first fragment: addresses only
	NoTransport           // neither TCP, UDP nor ICMP echo: addresses only
	BadTransport          // a transport header that cannot be: addresses only
	Reasons
)

var reasonNames = [Reasons]string{
	"parsed", "truncated", "not_ip", "bad_ip", "extension_chain", "fragment", "no_transport", "bad_transport",
}

func (r Reason) String() string {
	if r >= Reasons {
		return "unknown"
	}
	return reasonNames[r]
}
