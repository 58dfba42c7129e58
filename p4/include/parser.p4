// SPDX-License-Identifier: Apache-2.0
/* The ingress parser that every twin shares: Ethernet, up to three VLAN tags, PPPoE, up to four MPLS labels, IPv4, IPv6,
 * TCP. Headers after the one where parsing stops stay invalid; the packet is counted (reasons.p4) and forwarded unmeasured.
 *
 * Narrower than bpf/include/parse.h: an IPv4 header with options or an authentication header, and an IPv6 header with extension
 * headers, stop parsing before it (extracted headers occupy containers until the deparser). No algorithm sees
 * its addresses: it would count them with ports that they do not have. Fragments other than the first stop it after
 * the IP header, as there. */
#ifndef XDPMON_PARSER_P4
#define XDPMON_PARSER_P4

#define IP_OR_LABELS                                                                                           \
    ETH_IPV4: ipv4;                                                                                            \
    ETH_IPV6: ipv6;                                                                                            \
    ETH_PPPOE: pppoe;                                                                                          \
    ETH_MPLS: mpls_0;                                                                                          \
    ETH_MPLS_UP: mpls_0;                                                                                       \
    default: accept;

#define TAG(state)                                                                                             \
    ETH_VLAN: state;                                                                                           \
    ETH_QINQ: state;                                                                                           \
    ETH_QINQ_OLD: state;

parser IngressParser(packet_in pkt, out headers_t hdr, out question_t q, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        q = QUESTION_NONE;
#ifdef SECOND_PASS
        transition select(ig.ingress_port) {
            SECOND_PORT: second;
            default: ethernet;
        }
    }

    /* second.p4 */
    state second {
        pkt.extract(hdr.second);
#endif
        transition ethernet;
    }

    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TAG(vlan_0)
            IP_OR_LABELS
        }
    }

    /* Unrolled: one tag or label too many must stop parsing, not overflow a header stack. */
    state vlan_0 {
        pkt.extract(hdr.vlan[0]);
        transition select(hdr.vlan[0].type) {
            TAG(vlan_1)
            IP_OR_LABELS
        }
    }

    state vlan_1 {
        pkt.extract(hdr.vlan[1]);
        transition select(hdr.vlan[1].type) {
            TAG(vlan_2)
            IP_OR_LABELS
        }
    }

    state vlan_2 {
        pkt.extract(hdr.vlan[2]);
        transition select(hdr.vlan[2].type) {
            IP_OR_LABELS
        }
    }

    state pppoe {
        pkt.extract(hdr.pppoe);
        transition select(hdr.pppoe.vertype, hdr.pppoe.code, hdr.pppoe.protocol) {
            (0x11, 0, PPP_IPV4): ipv4;
            (0x11, 0, PPP_IPV6): ipv6;
            default: accept;
        }
    }

    state mpls_0 {
        pkt.extract(hdr.mpls[0]);
        transition select(hdr.mpls[0].bottom) {
            0: mpls_1;
            1: nibble;
        }
    }

    state mpls_1 {
        pkt.extract(hdr.mpls[1]);
        transition select(hdr.mpls[1].bottom) {
            0: mpls_2;
            1: nibble;
        }
    }

    state mpls_2 {
        pkt.extract(hdr.mpls[2]);
        transition select(hdr.mpls[2].bottom) {
            0: mpls_3;
            1: nibble;
        }
    }

    state mpls_3 {
        pkt.extract(hdr.mpls[3]);
        transition select(hdr.mpls[3].bottom) {
            0: accept;
            1: nibble;
        }
    }

    /* The payload of the last label identifies itself. */
    state nibble {
        transition select(pkt.lookahead<bit<4>>()) {
            4: ipv4;
            6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        transition select(pkt.lookahead<ipv4_h>().version, pkt.lookahead<ipv4_h>().ihl, pkt.lookahead<ipv4_h>().protocol) {
            (4, 5, IPP_AH): unread;
            (4, 5, _): plain4;
            (4, 6 &&& 0b1110, _): unread;
            (4, 8 &&& 0b1000, _): unread;
            default: accept;
        }
    }

    state plain4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.offset, hdr.ipv4.protocol) {
            (0, IPP_TCP): tcp_length;
#ifdef FLOW_PORTS
            (0, IPP_UDP): udp;
#endif
#ifdef DNS
            (0, IPP_UDP): message4;
#endif
            default: accept;
        }
    }

    state ipv6 {
        transition select(pkt.lookahead<ipv6_h>().version, pkt.lookahead<ipv6_h>().next) {
            (6, IPP_HOPOPTS): unread;
            (6, IPP_ROUTING): unread;
            (6, IPP_FRAGMENT): unread;
            (6, IPP_AH): unread;
            (6, IPP_DSTOPTS): unread;
            (6, IPP_MOBILITY): unread;
            (6, IPP_HIP): unread;
            (6, IPP_SHIM6): unread;
            (6, _): plain6;
            default: accept;
        }
    }

    state plain6 {
        pkt.extract(hdr.ipv6);
        transition select(hdr.ipv6.next) {
            IPP_TCP: tcp_length;
#ifdef FLOW_PORTS
            IPP_UDP: udp;
#endif
#ifdef DNS
            IPP_UDP: message6;
#endif
            default: accept;
        }
    }

    state unread {
        pkt.extract(hdr.unread);
        transition accept;
    }

#ifdef FLOW_PORTS
    /* Both ports of UDP and TCP, for keys. */
    state udp {
        q.ports = pkt.lookahead<bit<32>>();
#ifdef FLOW_KIND
        q.kind = 1;
#endif
        transition accept;
    }
#endif

#ifdef DNS
    /* UDP with fewer bytes than a DNS header has is no message: 40 of IPv4, 20 after an IPv6 header. */
    state message4 {
        transition select(hdr.ipv4.total) {
            0 &&& 0xffe0: accept;
            32 &&& 0xfff8: accept;
            default: message;
        }
    }

    state message6 {
        transition select(hdr.ipv6.payload) {
            0 &&& 0xfff0: accept;
            16 &&& 0xfffc: accept;
            default: message;
        }
    }

    state message {
        transition select(pkt.lookahead<bit<32>>()) {
            PORT_DNS &&& 0xffff: dns;
            PORT_DNS << 16 &&& 0xffff0000: dns;
            default: accept;
        }
    }

    state dns {
        pkt.extract(hdr.dns);
        transition accept;
    }
#endif

    /* Fewer than five words are no TCP header. */
    state tcp_length {
        transition select(pkt.lookahead<tcp_h>().words) {
            0 &&& 0b1100: accept;
            4: accept;
            default: tcp;
        }
    }

    state tcp {
#ifdef FLOW_PORTS
        q.ports = pkt.lookahead<bit<32>>();
#endif
#ifdef FLOW_KIND
        q.kind = 3;
#endif
        pkt.extract(hdr.tcp);
        transition accept;
    }
}

#endif
