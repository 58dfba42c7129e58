package allow

import (
	"math"

	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// TracePoints are those that programs may run at, with the arguments that they may look at.
var TracePoints = map[string][]field{
	"net_dev_start_xmit": { // a packet leaves its queue
		{"skb", 0, 8, value.InBuffer, "the packet"}, {"dev", 8, 8, value.InDevice, "the interface that it leaves by"},
	},
	"kfree_skb": { // a packet is dropped; the second argument is an address in the kernel's code
		{"skb", 0, 8, value.InBuffer, "the packet"}, {"reason", 16, 8, number, "why it is dropped"},
		{"rx_sk", 24, 8, value.InSocket, "the socket that it was for"},
	},
}

// KernelField is an entry of the list of what may be read of the kernel's memory at a trace point. Programs name fields, and the loader
// finds them in the running kernel (CO-RE): what is not named is not known.
type KernelField struct {
	In    value.Source // where the field is
	Leads value.Source // what it points to
	Why   string
}

// KernelFields is the list of fields that may be loaded.
var KernelFields = map[string]KernelField{
	"sk_buff.dev":                  {value.InBuffer, value.InDevice, "the interface that the packet is at"},
	"sk_buff.len":                  {value.InBuffer, number, ofPacket},
	"sk_buff.data_len":             {value.InBuffer, number, ofPacket},
	"sk_buff.tstamp":               {value.InBuffer, number, "when it may leave at the earliest (pacing)"},
	"sk_buff.mark":                 {value.InBuffer, number, ofPacket},
	"sk_buff.queue_mapping":        {value.InBuffer, number, "its transmit queue"},
	"sk_buff.vlan_proto":           {value.InBuffer, number, "the tag that the device is to put in front of it"},
	"sk_buff.vlan_tci":             {value.InBuffer, number, "the tag that the device is to put in front of it"},
	"sk_buff.data":                 {value.InBuffer, value.InBytes, ofBuffer},
	"sk_buff.head":                 {value.InBuffer, value.InHead, "where the number of its segments is found"},
	"sk_buff.end":                  {value.InBuffer, number, "where the number of its segments is found"},
	"net_device.ifindex":           {value.InDevice, number, "the interface"},
	"net_device.nd_net.net":        {value.InDevice, value.InNet, "the interface's namespace"},
	"net.net_cookie":               {value.InNet, number, "its number, which never changes"},
	"sk_buff.skb_iif":              {value.InBuffer, number, "the interface that the packet arrived at"},
	"sock.__sk_common.skc_net.net": {value.InSocket, value.InNet, "the socket's namespace"},
}

// KernelPlace is an entry of the list of what may be copied, and not loaded: a field of memory that has no type where it is found.
type KernelPlace struct {
	In, Offset, At value.Source
	Bytes          int // that may be copied; 0: it only leads on
	Why            string
}

// KernelPlaces is that list.
var KernelPlaces = map[string]KernelPlace{
	"sk_buff.cb":               {value.InBuffer, value.OffsetBlock, value.InBlock, 0, "the packet's own words, while it waits"},
	"qdisc_skb_cb.data[8]":     {value.InBlock, value.OffsetWords, value.InWords, 12, "what TC egress has written there: a bridged header"},
	"qdisc_skb_cb.pkt_len":     {value.InBlock, value.OffsetLength, value.InLength, 4, "its length on the wire"},
	"skb_shared_info.gso_size": {value.InHead, value.OffsetSegmentSize, value.InSegmentSize, 2, "payload bytes of a segment of an aggregate"},
	"skb_shared_info.gso_segs": {value.InHead, value.OffsetSegmentCount, value.InSegmentCount, 2, "its segments"},
}

// KernelFieldOf is the entry of a field that is loaded from somewhere.
func KernelFieldOf(in value.Source, name string) (KernelField, bool) {
	f, ok := KernelFields[name]
	return f, ok && f.In == in
}

// KernelOffset is the number that an instruction is patched with for a field.
func KernelOffset(name string) value.Source { return KernelPlaces[name].Offset }

// KernelSum is the kind of memory at the sum of a pointer and a number or offset; operands in either order.
func KernelSum(a, b value.Source) value.Source {
	if a == number {
		a, b = b, a
	}
	if b == number && (a == value.InHead || a == value.InBytes) {
		return a
	}
	for _, p := range KernelPlaces {
		if a == p.In && b == p.Offset || b == p.In && a == p.Offset {
			return p.At
		}
	}
	return number
}

// KernelBytes is the number of bytes that may be copied from memory of a kind. Of the packet's bytes, any number: the program must check that they are
// inside the packet.
func KernelBytes(from value.Source) int {
	if from == value.InBytes {
		return math.MaxInt32
	}
	for _, p := range KernelPlaces {
		if p.At == from {
			return p.Bytes
		}
	}
	return 0
}
