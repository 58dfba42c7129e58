// SPDX-License-Identifier: Apache-2.0
/* Headers that the parser extracts (bpf/include/parse.h parses the same). Fields that are not used separately are
 * combined, which leaves the compiler more choice to place them. */
#ifndef XDPMON_HEADERS_P4
#define XDPMON_HEADERS_P4

#define VLAN_TAGS 3
#define MPLS_LABELS 4

const bit<16> ETH_IPV4 = 0x0800;
const bit<16> ETH_IPV6 = 0x86dd;
const bit<16> ETH_VLAN = 0x8100;
const bit<16> ETH_QINQ = 0x88a8;
const bit<16> ETH_QINQ_OLD = 0x9100;
const bit<16> ETH_PPPOE = 0x8864;
const bit<16> ETH_MPLS = 0x8847;
const bit<16> ETH_MPLS_UP = 0x8848;
const bit<16> PPP_IPV4 = 0x0021;
const bit<16> PPP_IPV6 = 0x0057;
const bit<8> IPP_TCP = 6;
const bit<8> IPP_UDP = 17;
const bit<8> IPP_AH = 51;
const bit<32> PORT_DNS = 53;
/* IPv6 extension headers: RFC 8200, 4302, 6275, 7401, 5533 */
const bit<8> IPP_HOPOPTS = 0;
const bit<8> IPP_ROUTING = 43;
const bit<8> IPP_FRAGMENT = 44;
const bit<8> IPP_DSTOPTS = 60;
const bit<8> IPP_MOBILITY = 135;
const bit<8> IPP_HIP = 139;
const bit<8> IPP_SHIM6 = 140;

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_h {
    bit<16> tci;
    bit<16> type;
}

header pppoe_h {
    bit<8>  vertype;
    bit<8>  code;
    bit<16> session;
    bit<16> length;
    bit<16> protocol;
}

header mpls_h {
    bit<23> label;
    bit<1>  bottom;
    bit<8>  ttl;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> check;
    bit<32> src;
    bit<32> dst;
}

header ipv6_h {
    bit<4>  version;
    bit<28> class_flow;
    bit<16> payload;
    bit<8>  next;
    bit<8>  hops;
    bit<32> src0;
    bit<32> src1;
    bit<32> src2;
    bit<32> src3;
    bit<32> dst0;
    bit<32> dst1;
    bit<32> dst2;
    bit<32> dst3;
}

header tcp_h {
    bit<16> sport;
    bit<16> dport;
    bit<32> seq;
    bit<32> ack;
    bit<4>  words; /* length of the header in 32-bit words */
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> check;
    bit<16> urgent;
}

/* First byte of an IP header that is not parsed: IPv4 with options, IPv6 with extension headers. */
header unread_h {
    bit<8> first;
}

#ifdef DNS
/* UDP and the beginning of a DNS message. */
header dns_h {
    bit<16> sport;
    bit<16> dport;
    bit<16> length;
    bit<16> check;
    bit<16> id;
    bit<16> flags;
}
#endif

struct headers_t {
#ifdef BRIDGED
    bridged_h           bridged; /* from ingress to egress; never leaves the switch */
#endif
#ifdef SECOND_PASS
    second_pass_h       second; /* in front of a clone; never leaves the switch */
#endif
    ethernet_h          ethernet;
    vlan_h[VLAN_TAGS]   vlan;
    pppoe_h             pppoe;
    mpls_h[MPLS_LABELS] mpls;
    unread_h            unread;
    ipv4_h              ipv4;
    ipv6_h              ipv6;
    tcp_h               tcp;
#ifdef DNS
    dns_h               dns;
#endif
}

#endif
