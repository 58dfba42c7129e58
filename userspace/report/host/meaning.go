package host

import (
	"strings"

	"github.com/xdpmon/xdpmon/loader/drops"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Reason is a reason for which the kernel drops packets.
type Reason struct {
	Reason  string `json:"reason"`
	Meaning string `json:"meaning,omitempty"`
}

// ReasonList are the running kernel's reasons.
type ReasonList []Reason

// Reasons returns the running kernel's reasons, in its order.
func Reasons() (list ReasonList, err error) {
	names, err := drops.Reasons()
	for _, name := range names {
		if !strings.HasPrefix(name, "REASON_") && name != "NOT_DROPPED_YET" && name != "CONSUMED" && name != "MAX" {
			list = append(list, Reason{name, Meaning(name)})
		}
	}
	return list, err
}

// Lines is a line for each reason.
func (l ReasonList) Lines() []string {
	rows := [][]string{{"REASON", "MEANING"}}
	for _, r := range l {
		rows = append(rows, []string{r.Reason, r.Meaning})
	}
	return report.Align(rows)
}

// Meaning explains a reason for which the kernel drops packets, with where to look next; "" for one that is not explained here.
func Meaning(reason string) string { return meanings[reason] }

var meanings = map[string]string{
	"NOT_SPECIFIED":            "the kernel does not give a reason here",
	"NO_SOCKET":                "nobody listens at this address and port: ss -lntu",
	"SOCKET_CLOSE":             "the socket was being closed",
	"SOCKET_FILTER":            "a filter attached to the socket (SO_ATTACH_FILTER, BPF)",
	"SOCKET_RCVBUFF":           "the receiver does not read fast enough: its buffer is full (ss -m; net.core.rmem_max)",
	"SOCKET_BACKLOG":           "the receiver holds its socket for too long: its backlog is full",
	"PKT_TOO_SMALL":            "shorter than its headers claim",
	"PKT_TOO_BIG":              "larger than the MTU of the way on, and must not be fragmented",
	"TCP_CSUM":                 "wrong TCP checksum: damaged on the way, or an offload that does not work",
	"UDP_CSUM":                 "wrong UDP checksum: damaged on the way, or an offload that does not work",
	"ICMP_CSUM":                "wrong ICMP checksum: damaged on the way",
	"IP_CSUM":                  "wrong IPv4 header checksum: damaged on the way",
	"CSUM":                     "wrong checksum: damaged on the way, or an offload that does not work",
	"NETFILTER_DROP":           "a firewall rule: nft list ruleset, iptables -L -v",
	"OTHERHOST":                "for another MAC address: flooded by a switch, or promiscuous mode is on",
	"IP_INHDR":                 "malformed IP header",
	"IP_RPFILTER":              "the reverse-path filter: the route back is another interface (net.ipv4.conf.*.rp_filter)",
	"UNICAST_IN_L2_MULTICAST":  "unicast address in a link-layer broadcast",
	"XFRM_POLICY":              "the IPsec policy does not allow it: ip xfrm policy",
	"IP_NOPROTO":               "no handler for this IP protocol",
	"PROTO_MEM":                "the protocol's memory limit is reached (net.ipv4.tcp_mem, udp_mem)",
	"TCP_MD5NOTFOUND":          "the TCP MD5 signature is missing",
	"TCP_MD5UNEXPECTED":        "a TCP MD5 signature that was not agreed",
	"TCP_MD5FAILURE":           "wrong TCP MD5 signature",
	"TCP_FLAGS":                "invalid combination of TCP flags",
	"TCP_ABORT_ON_DATA":        "data for a connection that this host has already closed: it is reset",
	"TCP_ZEROWINDOW":           "data into a window of zero: the receiver does not read, and the sender probes",
	"TCP_OLD_DATA":             "data that had arrived already: a needless retransmission",
	"TCP_OVERWINDOW":           "data beyond the window",
	"TCP_OFOMERGE":             "data out of order that had arrived already",
	"TCP_RFC7323_PAWS":         "old TCP timestamp (PAWS): late duplicate, or a NAT that mixes hosts",
	"TCP_RFC7323_PAWS_ACK":     "old TCP timestamp (PAWS) on an ACK",
	"TCP_RFC7323_TW_PAWS":      "old TCP timestamp (PAWS) for a connection in TIME-WAIT",
	"TCP_LISTEN_OVERFLOW":      "the accept queue is full: the server does not accept fast enough (ss -lnt; net.core.somaxconn)",
	"TCP_OLD_SEQUENCE":         "sequence number before the window: late duplicate",
	"TCP_INVALID_SEQUENCE":     "sequence number outside the window",
	"TCP_INVALID_END_SEQUENCE": "the end of the data lies outside the window",
	"TCP_INVALID_ACK_SEQUENCE": "acknowledges what was never sent",
	"TCP_RESET":                "a reset that ended its connection",
	"TCP_INVALID_SYN":          "a SYN within an open connection",
	"TCP_CLOSE":                "its connection is closed",
	"TCP_OLD_ACK":              "an ACK older than the last one: reordering",
	"TCP_TOO_OLD_ACK":          "an ACK far older than the last one",
	"TCP_ACK_UNSENT_DATA":      "acknowledges data that was not sent",
	"TCP_OFO_QUEUE_PRUNE":      "data out of order thrown away: the receive buffer is full",
	"TCP_OFO_DROP":             "no memory for data out of order: the receive buffer is full",
	"TCP_MINTTL":               "TTL below what the socket demands",
	"IP_OUTNOROUTES":           "no route to the destination: ip route get ADDRESS",
	"IP_INNOROUTES":            "no route on: ip route get ADDRESS from ADDRESS iif IFACE",
	"IP_INADDRERRORS":          "its destination is not this host's, and forwarding is off (net.ipv4.ip_forward)",
	"IP_LOCAL_SOURCE":          "arrives from outside with an address of this host",
	"IP_INVALID_SOURCE":        "invalid source address",
	"IP_INVALID_DEST":          "invalid destination address",
	"IP_LOCALNET":              "a loopback address from outside",
	"BPF_CGROUP_EGRESS":        "a BPF program of the sender's control group",
	"IPV6DISABLED":             "IPv6 is disabled on the interface",
	"NEIGH_CREATEFAIL":         "no entry for the neighbour could be made: the table is full (net.ipv4.neigh.default.gc_thresh3)",
	"NEIGH_FAILED":             "the neighbour does not answer ARP or neighbour discovery: ip neigh",
	"NEIGH_QUEUEFULL":          "too many packets wait for the neighbour's answer",
	"NEIGH_DEAD":               "the neighbour's entry was removed",
	"TC_EGRESS":                "a program or filter at TC egress: a limit of xdpmon (ahab, conquest), or tc filter show",
	"TC_INGRESS":               "a program or filter at TC ingress: a limit of xdpmon (ahab, conquest), or tc filter show",
	"XDP":                      "an XDP program in generic mode: ip link show",
	"SECURITY_HOOK":            "a security module (SELinux, AppArmor, BPF LSM)",
	"QDISC_DROP":               "the queue of the interface is full, or its policy dropped the packet: tc -s qdisc",
	"QDISC_OVERLIMIT":          "the queue of the interface is at its limit: tc -s qdisc",
	"QDISC_CONGESTED":          "the queue's congestion control (CoDel and others) shortened the queue: tc -s qdisc",
	"CAKE_FLOOD":               "cake dropped a flow that does not slow down",
	"FQ_BAND_LIMIT":            "a priority band of fq is full",
	"FQ_HORIZON_LIMIT":         "its departure time is beyond fq's horizon",
	"FQ_FLOW_LIMIT":            "the flow has too many packets in fq (flow_limit)",
	"QUEUE_PURGE":              "the queue was emptied: the interface went down, or its qdisc was replaced",
	"CPU_BACKLOG":              "the CPU's receive backlog is full: this CPU is too busy (net.core.netdev_max_backlog)",
	"UNHANDLED_PROTO":          "no handler for this Ethernet protocol",
	"GSO_SEG":                  "segmentation of an aggregate failed",
	"UCOPY_FAULT":              "copying from or to the program failed",
	"DEV_HDR":                  "its driver header is invalid",
	"DEV_READY":                "the device is not ready, or down",
	"FULL_RING":                "the ring of the device is full: the guest does not read fast enough",
	"NOMEM":                    "no memory",
	"HDR_TRUNC":                "its headers are cut off",
	"TAP_FILTER":               "the filter of a tun or tap device",
	"TAP_TXFILTER":             "the transmit filter of a tun or tap device",
	"INVALID_PROTO":            "invalid protocol field",
	"DUP_FRAG":                 "a duplicate fragment",
	"FRAG_REASM_TIMEOUT":       "other fragments of its packet did not arrive in time: loss on the way",
	"FRAG_TOO_FAR":             "too many other packets between its fragments",
	"IPV6_BAD_EXTHDR":          "invalid IPv6 extension header",
	"VXLAN_INVALID_HDR":        "invalid VXLAN header",
	"VXLAN_VNI_NOT_FOUND":      "no VXLAN interface has its network identifier",
	"NO_TX_TARGET":             "the device knows no port or peer for it",
	"LOCAL_MAC":                "arrives from outside with a MAC address of this host",
	"BRIDGE_INGRESS_STP_STATE": "the bridge port is blocked by spanning tree",
	"PACKET_SOCK_ERROR":        "a packet socket (a sniffer) could not take it",
	"PFMEMALLOC":               "memory reserved for emergencies, and its socket may not use it",
	"RECURSION_LIMIT":          "it passes through too many stacked devices",
	"SUBSYSTEM":                "a reason of a subsystem (Wi-Fi, Open vSwitch), which numbers its own",
}
