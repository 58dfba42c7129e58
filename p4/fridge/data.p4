// SPDX-License-Identifier: Apache-2.0
/* tcp-data: a segment with payload is the request, and a SYN; a segment without that has the ACK of its last byte is the response. SYN and FIN
 * take a number each. The eBPF form is ask_data() of bpf/include/match.h with fridge.side=any. */
#ifndef XDPMON_FRIDGE_DATA_P4
#define XDPMON_FRIDGE_DATA_P4

/* Lengths with a TCP header of `words` words and `numbers` of SYN and FIN. */
#define FRIDGE_NUMBERS(words, flags, numbers)                                                                  \
    (true, false, words, flags): lengths4(65516 - 4 * words, numbers);                                         \
    (false, true, words, flags): lengths6(65536 - 4 * words, numbers);
#define FRIDGE_WORDS(words)                                                                                    \
    FRIDGE_NUMBERS(words, 0, 0)                                                                                \
    FRIDGE_NUMBERS(words, 1, 1)                                                                                \
    FRIDGE_NUMBERS(words, 2, 1)                                                                                \
    FRIDGE_NUMBERS(words, 3, 2)

control FridgeAsk(in headers_t hdr, inout question_t q) {
    bit<16> payload = 0;
    bit<32> first = 0; /* number of the payload's first byte */

    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) widths;

    /* less is 2^16 minus the bytes of headers after the IP header, and of IPv4 its 20. */
    action lengths4(bit<16> less, bit<32> numbers) {
        payload = hdr.ipv4.total + less;
        first = hdr.tcp.seq + numbers;
    }

    action lengths6(bit<16> less, bit<32> numbers) {
        payload = hdr.ipv6.payload + less;
        first = hdr.tcp.seq + numbers;
    }

    action no_lengths() {}

    table lengths {
        key = {
            hdr.ipv4.isValid() : exact;
            hdr.ipv6.isValid() : exact;
            hdr.tcp.words      : exact;
            hdr.tcp.flags[1:0] : exact;
        }
        actions = {
            lengths4;
            lengths6;
            no_lengths;
        }
        const entries = {
            FRIDGE_WORDS(5)
            FRIDGE_WORDS(6)
            FRIDGE_WORDS(7)
            FRIDGE_WORDS(8)
            FRIDGE_WORDS(9)
            FRIDGE_WORDS(10)
            FRIDGE_WORDS(11)
            FRIDGE_WORDS(12)
            FRIDGE_WORDS(13)
            FRIDGE_WORDS(14)
            FRIDGE_WORDS(15)
        }
        const default_action = no_lengths();
        size = 88;
    }

    QUESTION_DIRECTIONS(tcp)

    action request4() {
        forward4();
        q.role = ROLE_REQUEST;
        q.disc = first + widths.get((bit<32>)payload);
    }

    action request6() {
        forward6();
        q.role = ROLE_REQUEST;
        q.disc = first + widths.get((bit<32>)payload);
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

    action none() {}

    table ask {
        key = {
            hdr.ipv4.isValid() : ternary;
            hdr.ipv6.isValid() : ternary;
            payload            : ternary;
            hdr.tcp.flags      : ternary;
        }
        actions = {
            request4;
            request6;
            response4;
            response6;
            none;
        }
        const entries = {
            (_, _, _, 0x04 &&& 0x04): none();
            (true, false, 0, 0x02 &&& 0x12): request4();
            (false, true, 0, 0x02 &&& 0x12): request6();
            (true, false, 0, 0x10 &&& 0x10): response4();
            (false, true, 0, 0x10 &&& 0x10): response6();
            (_, _, 0, _): none();
            (true, false, _, _): request4();
            (false, true, _, _): request6();
        }
        const default_action = none();
        size = 8;
    }

    apply {
        if (hdr.tcp.isValid()) {
            lengths.apply();
            ask.apply();
        }
    }
}

/* Windows that a receiver has closed: its ACKs that advertise 0, as shuts() of bpf/fridge/fridge.bpf.c. */
control FridgeShut(in headers_t hdr, in role_t role) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) fridge_windows;

    action closed() { fridge_windows.count(); }
    action others() { fridge_windows.count(); }

    table windows {
        key = {
            role           : ternary;
            hdr.tcp.flags  : ternary;
            hdr.tcp.window : ternary;
        }
        actions = {
            closed;
            others;
        }
        const entries = {
            (ROLE_RESPONSE, 0x10 &&& 0x17, 0): closed();
        }
        const default_action = others();
        counters = fridge_windows;
        size = 1;
    }

    apply {
        windows.apply();
    }
}

#endif
