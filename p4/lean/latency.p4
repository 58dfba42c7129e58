// SPDX-License-Identifier: Apache-2.0
/* Latency: the delay between a segment and the ACK of its last byte, through a small fridge (bpf/lean/latency.h). */
#ifndef XDPMON_LEAN_LATENCY_P4
#define XDPMON_LEAN_LATENCY_P4

#define LEAN_OLD 524288          /* LAT_OLD: a record's largest age, in ticks of 2^13 ns */
#define LEAN_LAT_TICK 13         /* LAT_TICK */

typedef bit<8> ask_t;
const ask_t ASK_NONE = 0;
const ask_t ASK_SEGMENT = 1;     /* expects an ACK */
const ask_t ASK_ACK = 2;         /* may be one */

/* The role of a packet, and the fields that segment and ACK share: the flow in the segment's direction, and the number that is
 * expected: ask_data() of bpf/include/match.h. */
control LeanAsk(in headers_t hdr, in bit<32> there, in kind_t kind, in bit<32> base, in bit<32> base_1, in bit<32> total, out ask_t ask, out bit<32> a, out bit<32> b,
                out bit<32> ports, out bit<32> disc) {
    action segment() {
        ask = ASK_SEGMENT;
        a = hdr.ipv4.src;
        b = hdr.ipv4.dst;
        ports = there;
        disc = base + total;
    }

    /* A SYN or FIN also takes a number. */
    action segment_1() {
        ask = ASK_SEGMENT;
        a = hdr.ipv4.src;
        b = hdr.ipv4.dst;
        ports = there;
        disc = base_1 + total;
    }

    action ack() {
        ask = ASK_ACK;
        a = hdr.ipv4.dst;
        b = hdr.ipv4.src;
        ports[31:16] = hdr.tcp.dport;
        ports[15:0] = hdr.tcp.sport;
        disc = hdr.tcp.ack;
    }

    action none() {
        ask = ASK_NONE;
        a = 0;
        b = 0;
        ports = 0;
        disc = 0;
    }

    table asks {
        key = {
            kind          : ternary;
            hdr.tcp.flags : ternary;
        }
        actions = {
            segment;
            segment_1;
            ack;
            none;
        }
        const entries = {
            (KIND_NONE, _): none();
            (_, 4 &&& 4): none();
            (KIND_BARE, 0x10 &&& 0x10): ack();
            (_, 0x02 &&& 0x02): segment_1();
            (KIND_BARE, _): none();
            (_, 0x01 &&& 0x01): segment_1();
            (_, _): segment();
        }
        const default_action = none();
        size = 8;
    }

    apply {
        asks.apply();
    }
}

/* The time, with a high bit that no empty record has: without it one signature in 4,096 would match empty records, and
 * the clock would be taken for their age. The hash unit sets it in the same operation. */
control LeanLatClock(in bit<48> nanoseconds, out bit<32> ticks) {
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) shift;

    apply {
        ticks = shift.get(12w1 ++ nanoseconds[LEAN_LAT_TICK + 19:LEAN_LAT_TICK]);
    }
}

/* Stage 1: {signature 11, 1, time 20} of a segment. An ACK clears it and reads its age. The share of sampled segments
 * is in the two entries; sampled and other segments are counted, which gives the rate that weights depend on. */
control LeanLatRecords(in ask_t ask, in bit<16> luck, in lat_slot_t slot, in bit<32> mine, out bit<32> delay) {
    Register<bit<32>, lat_slot_t>(LEAN_LAT_SLOTS, 0) lean_lat_fr;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) lean_lat_counts;

    RegisterAction<bit<32>, lat_slot_t, bit<32>>(lean_lat_fr) insert_lat_fr = {
        void apply(inout bit<32> v) {
            if (mine < v || mine - v > LEAN_OLD) {
                v = mine;
            }
        }
    };

    RegisterAction<bit<32>, lat_slot_t, bit<32>>(lean_lat_fr) take_lat_fr = {
        void apply(inout bit<32> v, out bit<32> age) {
            age = 0;
            if (mine >= v && mine - v <= LEAN_OLD) {
                age = mine - v;
                v = 0;
            }
        }
    };

    action insert() {
        lean_lat_counts.count();
        insert_lat_fr.execute(slot);
        delay = 0;
    }

    action take() {
        lean_lat_counts.count();
        delay = take_lat_fr.execute(slot);
    }

    action skip() {
        lean_lat_counts.count();
        delay = 0;
    }

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
        entries = {
            (ASK_SEGMENT, 0 &&& LEAN_LUCK): insert();
            (ASK_ACK, 0 &&& LEAN_LUCK): take();
        }
        const default_action = skip();
        counters = lean_lat_counts;
        size = 4;
    }

    apply {
        records.apply();
    }
}

#endif
