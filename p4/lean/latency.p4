// SPDX-License-Identifier: Apache-2.0
/* Latency: the delay between a segment and the ACK of its last byte, through a small fridge (bpf/lean/latency.h). */
#ifndef XDPMON_LEAN_LATENCY_P4
#define XDPMON_LEAN_LATENCY_P4

#define LEAN_OLD 65536           /* LAT_OLD: a record's largest age, in ticks of 2^16 ns */

typedef bit<8> ask_t;
const ask_t ASK_NONE = 0;
const ask_t ASK_SEGMENT = 1;     /* expects an ACK */
const ask_t ASK_ACK = 2;         /* may be one */

/* What a packet asks or answers, and the fields that both have: the flow the way the segment goes, and the number that is
 * expected: ask_data() of bpf/include/match.h. */
control LeanAsk(in headers_t hdr, in bit<32> there, in bit<16> payload, in bit<16> payload_1, inout ask_t ask, inout bit<32> a, inout bit<32> b,
                inout bit<32> ports, inout bit<32> disc) {
    action segment() {
        ask = ASK_SEGMENT;
        a = hdr.ipv4.src;
        b = hdr.ipv4.dst;
        ports = there;
        disc = hdr.tcp.seq + (bit<32>)payload;
    }

    /* A SYN or FIN takes a number, too. */
    action segment_1() {
        ask = ASK_SEGMENT;
        a = hdr.ipv4.src;
        b = hdr.ipv4.dst;
        ports = there;
        disc = hdr.tcp.seq + (bit<32>)payload_1;
    }

    action ack() {
        ask = ASK_ACK;
        a = hdr.ipv4.dst;
        b = hdr.ipv4.src;
        ports[31:16] = hdr.tcp.dport;
        ports[15:0] = hdr.tcp.sport;
        disc = hdr.tcp.ack;
    }

    action none() {}

    table asks {
        key = {
            hdr.tcp.isValid() : exact;
            hdr.tcp.flags     : ternary;
            payload           : ternary;
        }
        actions = {
            segment;
            segment_1;
            ack;
            none;
        }
        const entries = {
            (true, 4 &&& 4, _): none();
            (true, 0x10 &&& 0x10, 0): ack();
            (true, 0x02 &&& 0x02, _): segment_1();
            (true, _, 0): none();
            (true, 0x01 &&& 0x01, _): segment_1();
            (true, _, _): segment();
        }
        const default_action = none();
        size = 8;
    }

    apply {
        asks.apply();
    }
}

/* Stage 1: {signature 15, time 17} of a segment. An ACK takes it out and learns its age. */
control LeanLatRecords(in ask_t ask, in bit<16> luck, in lat_slot_t slot, in bit<32> mine, inout bit<32> delay) {
    Register<bit<32>, lat_slot_t>(LEAN_LAT_SLOTS, 0) lean_lat_fr;

    RegisterAction<bit<32>, lat_slot_t, bit<32>>(lean_lat_fr) insert_lat_fr = {
        void apply(inout bit<32> v) {
            if (mine - v > LEAN_OLD) {
                v = mine;
            }
        }
    };

    RegisterAction<bit<32>, lat_slot_t, bit<32>>(lean_lat_fr) take_lat_fr = {
        void apply(inout bit<32> v, out bit<32> age) {
            age = 0;
            if (mine - v <= LEAN_OLD) {
                age = mine - v;
                v = 0;
            }
        }
    };

    action insert() { insert_lat_fr.execute(slot); }
    action take() { delay = take_lat_fr.execute(slot); }
    action skip() {}

    table records {
        key = {
            ask  : exact;
            luck : ternary;
        }
        actions = {
            insert;
            take;
            skip;
        }
        const entries = {
            (ASK_SEGMENT, 0 &&& LEAN_LUCK): insert();
            (ASK_ACK, 0 &&& LEAN_LUCK): take();
        }
        const default_action = skip();
        size = 2;
    }

    apply {
        records.apply();
    }
}

#endif
