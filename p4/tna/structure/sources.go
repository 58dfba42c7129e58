package structure

import (
	"fmt"
	"strings"
)

// Sources without a word in the vector, or with several.
const (
	kindSource   = "kind"   // which headers there are: valid, family
	lengthSource = "length" // len, payload: on the switch calculated from the headers' own lengths
	nowSource    = "now"
	randomSource = "random"
	bankSource   = "bank"
	passSource   = "pass"
	carrySource  = "carry"
	portsSource  = "ports"
	queueSource  = "queue"
	flagsPrefix  = "tcp_flags "
	hashPrefix   = "hash "
	tablePrefix  = "table "
)

// hostNames are sources of the bytecode with another name here; "": left out.
var hostNames = map[string]string{
	"valid": kindSource, "family": kindSource, "len": lengthSource, "payload": lengthSource, "coin": randomSource,
	"sport": portsSource, "dport": portsSource, "enqueued": queueSource,
	"segs":    "", // a switch sees single packets
	"ep_src":  "", // made of the flow on first use, and of it alone
	"ep_dst":  "", // likewise
	"needs":   "", // what this chain requests from the parser
	"verdict": "", // of enforcers before this one: the switch has none
}

// headerNames are fields of the switch's headers.
var headerNames = map[string]string{
	"ipv4.src": "src", "ipv4.dst": "dst", "ipv4.protocol": "proto", "ipv6.next": "proto", "ipv4.id": "ipid", "ipv4.tos": "tos",
	"ipv4.total": lengthSource, "ipv4.ihl": lengthSource, "ipv6.payload": lengthSource, "tcp.words": lengthSource,
	"tcp.sport": portsSource, "tcp.dport": portsSource, "tcp.seq": "seq", "tcp.ack": "ack",
	"dns.sport": portsSource, "dns.dport": portsSource, "dns.id": "app_id", "dns.flags": kindSource, // a query or an answer: a bit of valid
}

// metadataNames are fields of intrinsic metadata, by type.
var metadataNames = map[string]string{
	"ingress_mac_tstamp": nowSource, "global_tstamp": nowSource, "ingress_port": "ifindex", "parser_err": kindSource,
	"deq_timedelta": queueSource, "enq_tstamp": queueSource, "enq_qdepth": queueSource, "deq_qdepth": queueSource, "pkt_length": lengthSource,
	"egress_port": "ifindex",
}

// hostSource is the name here of a source of the bytecode; "": left out.
func hostSource(name string) string {
	if to, ok := hostNames[name]; ok {
		return to
	}
	return name
}

// headerSource is the source of a header's field, by its path below the headers.
func headerSource(path string) string {
	if to, ok := headerNames[path]; ok {
		return to
	}
	header, field, _ := strings.Cut(path, ".")
	switch {
	case header == "second":
		return carrySource
	case header == "ipv6" && strings.HasPrefix(field, "src"):
		return "src"
	case header == "ipv6" && strings.HasPrefix(field, "dst"):
		return "dst"
	case strings.HasPrefix(header, "vlan"):
		return "vlan"
	}
	return "header " + path
}

func flagSource(bit int) string { return fmt.Sprint(flagsPrefix, bit) }
