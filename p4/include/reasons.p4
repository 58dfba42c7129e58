// SPDX-License-Identifier: Apache-2.0
/* Why a packet was not measured: the counters of enum parse_reason (bpf/include/parse.h) that this parser can distinguish, and
 * headers that a host would have parsed. A clone (second.p4) was counted as the packet.
 * Reading the parser's error also makes the compiler pass packets with an error: measuring drops nothing. */
#ifndef XDPMON_REASONS_P4
#define XDPMON_REASONS_P4

control Reasons(in headers_t hdr, in ingress_intrinsic_metadata_from_parser_t prsr) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) reasons;

    action parsed() { reasons.count(); }
    action truncated() { reasons.count(); }
    action not_ip() { reasons.count(); }
    action fragment() { reasons.count(); }
    action no_transport() { reasons.count(); }
    action unread() { reasons.count(); } /* IPv4 options, extension headers */

    table reason {
        key = {
            prsr.parser_err      : ternary;
            hdr.ipv4.isValid()   : ternary;
            hdr.ipv6.isValid()   : ternary;
            hdr.tcp.isValid()    : ternary;
            hdr.unread.isValid() : ternary;
            hdr.ipv4.offset      : ternary;
        }
        actions = {
            parsed;
            truncated;
            not_ip;
            fragment;
            no_transport;
            unread;
        }
        const entries = {
            (0, _, _, true, _, _): parsed();
            (0, _, _, _, true, _): unread();
            (0, true, _, _, _, 0): no_transport();
            (0, true, _, _, _, _): fragment();
            (0, _, true, _, _, _): no_transport();
            (0, _, _, _, _, _): not_ip();
        }
        const default_action = truncated();
        counters = reasons;
        size = 8;
    }

    apply {
#ifdef SECOND_PASS
        if (!hdr.second.isValid()) {
            reason.apply();
        }
#else
        reason.apply();
#endif
    }
}

#endif
