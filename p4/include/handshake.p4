// SPDX-License-Identifier: Apache-2.0
/* tcp-handshake: a SYN is the request, a SYN-ACK the response, and the bare ACK after it ends the handshake. All three contain the same question
 * (client, server, the client's first sequence number + 1), so one record yields both legs and their sum.
 *
 * SYN and SYN-ACK are identified by these two bits alone, since ECN handshakes set further flags. A segment is bare
 * if `IP payload = TCP header`, of which a table can contain all eleven solutions.
 * The eBPF form is ask_handshake() in bpf/fridge/fridge.bpf.c. */
#ifndef XDPMON_HANDSHAKE_P4
#define XDPMON_HANDSHAKE_P4

#define TCP_SYN_ONLY 0x02 &&& 0x12
#define TCP_SYN_ACK 0x12 &&& 0x12
#define TCP_ACK_ONLY 0x10 &&& 0x17 /* neither SYN nor FIN nor RST */

/* A bare ACK with a TCP header of `words` words. */
#define BARE(words)                                                                                            \
    (true, false, TCP_ACK_ONLY, words, 20 + 4 * words, _): final4();                                           \
    (false, true, TCP_ACK_ONLY, words, _, 4 * words): final6();

control Handshake(in headers_t hdr, inout question_t q) {
    action forward4() {
        q.a2 = 0xffff;
        q.a3 = hdr.ipv4.src;
        q.b2 = 0xffff;
        q.b3 = hdr.ipv4.dst;
        q.aport = hdr.tcp.sport;
        q.bport = hdr.tcp.dport;
    }

    action reverse4() {
        q.a2 = 0xffff;
        q.a3 = hdr.ipv4.dst;
        q.b2 = 0xffff;
        q.b3 = hdr.ipv4.src;
        q.aport = hdr.tcp.dport;
        q.bport = hdr.tcp.sport;
    }

    action forward6() {
        q.a0 = hdr.ipv6.src0;
        q.a1 = hdr.ipv6.src1;
        q.a2 = hdr.ipv6.src2;
        q.a3 = hdr.ipv6.src3;
        q.b0 = hdr.ipv6.dst0;
        q.b1 = hdr.ipv6.dst1;
        q.b2 = hdr.ipv6.dst2;
        q.b3 = hdr.ipv6.dst3;
        q.aport = hdr.tcp.sport;
        q.bport = hdr.tcp.dport;
    }

    action reverse6() {
        q.a0 = hdr.ipv6.dst0;
        q.a1 = hdr.ipv6.dst1;
        q.a2 = hdr.ipv6.dst2;
        q.a3 = hdr.ipv6.dst3;
        q.b0 = hdr.ipv6.src0;
        q.b1 = hdr.ipv6.src1;
        q.b2 = hdr.ipv6.src2;
        q.b3 = hdr.ipv6.src3;
        q.aport = hdr.tcp.dport;
        q.bport = hdr.tcp.sport;
    }

    action request4() {
        forward4();
        q.role = ROLE_REQUEST;
        q.disc = hdr.tcp.seq + 1;
    }

    action request6() {
        forward6();
        q.role = ROLE_REQUEST;
        q.disc = hdr.tcp.seq + 1;
    }

    action response4() {
        reverse4();
        q.role = ROLE_RESPONSE;
        q.disc = hdr.tcp.ack;
    }

    action response6() {
        reverse6();
        q.role = ROLE_RESPONSE;
        q.disc = hdr.tcp.ack;
    }

    action final4() {
        forward4();
        q.role = ROLE_FINAL;
        q.disc = hdr.tcp.seq;
    }

    action final6() {
        forward6();
        q.role = ROLE_FINAL;
        q.disc = hdr.tcp.seq;
    }

    action none() {}

    table ask {
        key = {
            hdr.ipv4.isValid() : ternary;
            hdr.ipv6.isValid() : ternary;
            hdr.tcp.flags      : ternary;
            hdr.tcp.words      : ternary;
            hdr.ipv4.total     : ternary;
            hdr.ipv6.payload   : ternary;
        }
        actions = {
            request4;
            request6;
            response4;
            response6;
            final4;
            final6;
            none;
        }
        const entries = {
            (true, false, TCP_SYN_ONLY, _, _, _): request4();
            (false, true, TCP_SYN_ONLY, _, _, _): request6();
            (true, false, TCP_SYN_ACK, _, _, _): response4();
            (false, true, TCP_SYN_ACK, _, _, _): response6();
            BARE(5)
            BARE(6)
            BARE(7)
            BARE(8)
            BARE(9)
            BARE(10)
            BARE(11)
            BARE(12)
            BARE(13)
            BARE(14)
            BARE(15)
        }
        const default_action = none();
        size = 26;
    }

    apply {
        if (hdr.tcp.isValid()) {
            ask.apply();
        }
    }
}

#endif
