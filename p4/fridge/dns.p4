// SPDX-License-Identifier: Apache-2.0
/* dns: a query is the request, its answer the response; both contain the transaction id. The eBPF form is ask_application() of
 * bpf/include/match.h. The parser extracts a message only from or to port 53. */
#ifndef XDPMON_FRIDGE_DNS_P4
#define XDPMON_FRIDGE_DNS_P4

control FridgeAsk(in headers_t hdr, inout question_t q) {
    QUESTION_DIRECTIONS(dns)

    action request4() {
        forward4();
        q.role = ROLE_REQUEST;
        q.disc[15:0] = hdr.dns.id;
    }

    action request6() {
        forward6();
        q.role = ROLE_REQUEST;
        q.disc[15:0] = hdr.dns.id;
    }

    action response4() {
        reverse4();
        q.role = ROLE_RESPONSE;
        q.disc[15:0] = hdr.dns.id;
    }

    action response6() {
        reverse6();
        q.role = ROLE_RESPONSE;
        q.disc[15:0] = hdr.dns.id;
    }

    action none() {}

    table ask {
        key = {
            hdr.ipv4.isValid()   : ternary;
            hdr.ipv6.isValid()   : ternary;
            hdr.dns.sport        : ternary;
            hdr.dns.dport        : ternary;
            hdr.dns.flags[15:15] : ternary;
        }
        actions = {
            request4;
            request6;
            response4;
            response6;
            none;
        }
        const entries = {
            (true, false, _, 53, 0): request4();
            (false, true, _, 53, 0): request6();
            (true, false, 53, _, 1): response4();
            (false, true, 53, _, 1): response6();
        }
        const default_action = none();
        size = 4;
    }

    apply {
        if (hdr.dns.isValid()) {
            ask.apply();
        }
    }
}

#endif
