// SPDX-License-Identifier: Apache-2.0
/* reorder: source prefixes whose TCP packets arrive out of order, on a switch.
 *
 * Zheng, Yu, Rexford, "Detecting TCP Packet Reordering in the Data Plane", section 3. The eBPF form, whose header has the layout of
 * a record, is bpf/reorder/reorder.bpf.c; this is the form with two ways and IPv6 prefixes of 32 bits. REORDER_METHOD selects at
 * compile time: 0 sampling, 1 precision, 2 hybrid; REORDER_DEFINITION 1, 2 or 3. Sizes are those of --set reorder.method=hybrid
 * --set reorder.buckets=3072 --set reorder.x=0.667 --set reorder.prefix6=32, 1,024 in each way and in the array. The registers, which
 * a test compares:
 *
 * stage  register              width    holds
 *   1    reorder_id0           32 + 32  way0.p4: {signature, size}
 *   2    reorder_id1           32 + 32  way1.p4
 *   2    reorder_prefix0       32 + 32  way0.p4: {tag, prefix}
 *   3    reorder_prefix1       32 + 32  way1.p4
 *   3    reorder_seq0          32 + 32  way0.p4: {out-of-order packets, number to compare with}
 *   4    reorder_seq1          32 + 32  way1.p4
 *   4    reorder_count0        32       way0.p4: packets
 *   5    reorder_count1        32       way1.p4
 *   7    reorder_id_array      32 + 32  array.p4: {signature, time}
 *   8    reorder_prefix_array  32 + 32  array.p4
 *   9    reorder_seq_array     32 + 32  array.p4
 *  10    reorder_count_array   32       array.p4
 *
 * A replaced record is reported as a digest {prefix, n, o} if it saw reordering (REORDER_ALL: always); above n are seven bits
 * of the flow's signature, as in the eBPF form's word, and one for IPv6. The control plane reads the rest at the end of a window, and resets a
 * bank: sizes of the ways to 1, all else to 0. A packet's clone (second.p4) replaces a record in a second pass; the
 * meter `budget` limits those, in packets per second that the control plane sets first (a tenth of the rate, for example). Stages are
 * an order, not numbers of the chip. */
#ifndef XDPMON_REORDER_P4
#define XDPMON_REORDER_P4

#define REORDER_TICK 10

#include "types.p4"
#if REORDER_METHOD != 0
#include "way0.p4"
#include "way1.p4"
#endif
#if REORDER_METHOD != 1
#include "array.p4"
#endif

/* Which records are reported: (role, closed, fate, n and o of the array's record, n and o of the way's). */
#if REORDER_METHOD == 0
#define REORDER_NONE (_, _, _, 0 &&& REORDER_COUNT, _): drop_it();
#define REORDER_IN_ORDER (_, _, _, _, 0): drop_it();
#define REORDER_GOES                                                                                           \
    (ROLE_FIRST, 0, FATE_STALE, _, _): report();                                                               \
    (ROLE_SEIZE, _, FATE_SEIZED, _, _): report();
#elif REORDER_METHOD == 1
#define REORDER_NONE (_, _, _, 0 &&& REORDER_COUNT, _): drop_it();
#define REORDER_IN_ORDER (_, _, _, _, 0): drop_it();
#define REORDER_GOES (ROLE_TAKE, _, _, _, _): report();
#else
#define REORDER_NONE (_, _, _, 0 &&& REORDER_COUNT, _, 0 &&& REORDER_COUNT, _): drop_it();
#define REORDER_IN_ORDER                                                                                       \
    (_, _, _, _, 0, _, 0): drop_it();                                                                          \
    (_, _, _, _, 0, 0 &&& REORDER_COUNT, _): drop_it();                                                        \
    (_, _, _, 0 &&& REORDER_COUNT, _, _, 0): drop_it();
#define REORDER_GOES                                                                                           \
    (ROLE_FIRST, 0, FATE_STALE, _, _, _, _): report();                                                         \
    (ROLE_SEIZE, _, FATE_SEIZED, _, _, _, _): report();                                                        \
    (ROLE_TAKE, _, _, _, _, _, _): report();
#endif
#if REORDER_ALL == 0
#define REORDER_LEAVING REORDER_NONE REORDER_IN_ORDER REORDER_GOES
#else
#define REORDER_LEAVING REORDER_NONE REORDER_GOES
#endif

control Reorder(inout headers_t hdr, inout question_t q, in bit<48> nanoseconds,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr) {
    role_t role;
    bit<1> bank = 0;
    bit<16> payload = 0;
    bit<32> wide = 0;  /* payload */
    bit<32> first = 0; /* number of the payload's first byte */
    bit<32> next = 0;  /* ... after its last */
    bit<32> now;
    bit<32> prefix = 0;
    bit<32> signature = 0;
    bit<32> a0 = 0; /* addresses, IPv4 as ::ffff:a.b.c.d */
    bit<32> a1 = 0;
    bit<32> a2 = 0;
    bit<32> a3 = 0;
    bit<32> b0 = 0;
    bit<32> b1 = 0;
    bit<32> b2 = 0;
    bit<32> b3 = 0;
    bit<32> p2 = 0; /* the prefix as it is hashed: 48 bits */
    bit<32> p3 = 0;
    bit<32> hash = 0;
    bit<32> tag = 0; /* of a count, and of digests: seven bits of the signature, one for IPv6 */
    bit<1> begins = 0; /* start of a connection, with data */
    bit<8> asks = 0;
    bit<8> colour = 0;

    HASH_ROW(row_0, HASH_ROW_0);
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) widths;
    ReorderPayload() lengths;
    Clock(REORDER_TICK) clock;
#if REORDER_METHOD != 0
    bit<32> hash_0 = 0;
    bit<32> hash_1 = 0;
    bit<32> size_0 = 0; /* 0: the flow is in way 0 */
    bit<32> size_1 = 0;
    bit<32> held_0 = 0;
    bit<32> held_1 = 0;
    bit<32> n_0 = 0;
    bit<32> n_1 = 0;
    bit<32> o_0 = 0;
    bit<32> o_1 = 0;
    bit<32> size = 0;
    bit<32> ahead = 0;
    bit<32> coin = 0;
    bit<8> way = ROLE_NONE;
    bit<32> power = 0;
    bit<32> other_0 = 0; /* 0: the prefix is in way 0 */
    bit<32> other_1 = 0;

    HASH_ROW(row_1, HASH_ROW_1);
    HASH_ROW(row_2, HASH_ROW_2);
    Random<bit<31>>() random;
    ReorderId0() id_0;
    ReorderId1() id_1;
    ReorderPrefix0() prefix_0;
    ReorderPrefix1() prefix_1;
    ReorderSeq0() seq_0;
    ReorderSeq1() seq_1;
    ReorderCount0() count_0;
    ReorderCount1() count_1;
    ReorderAdmission() admission;
#endif
    bit<8> closed = 0;
    fate_t fate = FATE_NONE;
#if REORDER_METHOD != 1
    HASH_ROW(row_3, HASH_ROW_3);
    ReorderIdArray() id_array;
    ReorderPrefixArray() prefix_array;
    ReorderSeqArray() seq_array;
    ReorderCountArray() count_array;
    ReorderExpiry() expiry;
#endif

    /* The bank that this packet counts into. To end a window the control plane sets the default action to the other bank. */
    action use_bank(bit<1> b) { bank = b; }

    table window {
        actions = { use_bank; }
        default_action = use_bank(0);
        size = 1;
    }

    action same_bank() { bank = hdr.second.bank; }
    action none() { role = ROLE_NONE; }
    action first_pass() { role = ROLE_FIRST; }
    action take_0() { role = ROLE_TAKE_0; }
    action take_1() { role = ROLE_TAKE_1; }
    action seize() { role = ROLE_SEIZE; }

    table passes {
        key = {
            hdr.tcp.isValid()    : ternary;
            hdr.second.isValid() : ternary;
            hdr.second.role      : ternary;
        }
        actions = {
            none;
            first_pass;
            take_0;
            take_1;
            seize;
        }
        const entries = {
            (true, false, _): first_pass();
            (true, true, ROLE_TAKE_0): take_0();
            (true, true, ROLE_TAKE_1): take_1();
            (true, true, ROLE_SEIZE): seize();
        }
        const default_action = none();
        size = 8;
    }

    action is_4() {
        a2 = 0xffff;
        a3 = hdr.ipv4.src;
        b2 = 0xffff;
        b3 = hdr.ipv4.dst;
        prefix = hdr.ipv4.src & REORDER_MASK;
        p3 = hdr.ipv4.src & REORDER_MASK;
    }

    action is_6() {
        a0 = hdr.ipv6.src0;
        a1 = hdr.ipv6.src1;
        a2 = hdr.ipv6.src2;
        a3 = hdr.ipv6.src3;
        b0 = hdr.ipv6.dst0;
        b1 = hdr.ipv6.dst1;
        b2 = hdr.ipv6.dst2;
        b3 = hdr.ipv6.dst3;
        prefix = hdr.ipv6.src0;
        p2 = hdr.ipv6.src0 >> 16;
        p3 = hdr.ipv6.src0 << 16;
        tag = REORDER_IPV6;
    }

    action is_none() {}

    table families {
        key = {
            hdr.ipv4.isValid() : exact;
            hdr.ipv6.isValid() : exact;
        }
        actions = {
            is_4;
            is_6;
            is_none;
        }
        const entries = {
            (true, false): is_4();
            (false, true): is_6();
        }
        const default_action = is_none();
        size = 4;
    }

    action sign() { signature = row_0.get(FLOW_FIELDS); }
    action mark() { tag[31:25] = signature[31:25]; }

    /* 16 bits to 32 through the hash unit: with a cast in the sum the compiler finds no containers for the number, the sum and the
     * length fields of both IP headers. Only definition 2 reads `next`. */
    DirectCounter<bit<64>>(CounterType_t.PACKETS) reorder_counts;

    action data() {
        wide = widths.get((bit<32>)payload);
        reorder_counts.count();
    }

    action begin_with_data() {
        wide = widths.get((bit<32>)payload);
        begins = 1;
        reorder_counts.count();
    }

    action second() {
        wide = widths.get((bit<32>)payload);
        reorder_counts.count();
    }

    action begin() {
        role = ROLE_BEGIN;
        first = first - 1;
        wide = REORDER_FRESH;
        reorder_counts.count();
    }

    action no_data() {
        role = ROLE_NONE;
        reorder_counts.count();
    }

    /* A SYN starts a connection; without data it has no other effect. */
    table kinds {
        key = {
            role          : ternary;
            payload       : ternary;
            hdr.tcp.flags : ternary;
        }
        actions = {
            data;
            begin_with_data;
            begin;
            no_data;
            second;
        }
        const entries = {
            (ROLE_NONE, _, _): no_data();
            (ROLE_FIRST, 0, 2 &&& 2): begin();
            (_, 0, _): no_data();
            (ROLE_FIRST, _, 2 &&& 2): begin_with_data();
            (ROLE_FIRST, _, _): data();
            (_, _, _): second();
        }
        const default_action = no_data();
        counters = reorder_counts;
        size = 8;
    }

    action expect() { next = first + wide; }

    action again_0() {
        dprsr.mirror_type = SECOND_TYPE;
        q.carry.setValid();
        q.carry.bank = bank;
        q.carry.role = ROLE_TAKE_0;
    }

    action again_1() {
        dprsr.mirror_type = SECOND_TYPE;
        q.carry.setValid();
        q.carry.bank = bank;
        q.carry.role = ROLE_TAKE_1;
    }

    action again_array() {
        dprsr.mirror_type = SECOND_TYPE;
        q.carry.setValid();
        q.carry.bank = bank;
        q.carry.role = ROLE_SEIZE;
    }

    action stay() {}

    /* Second passes allowed by the control plane, in packets per second. */
    Meter<bit<1>>(2, MeterType_t.PACKETS) budget;

    action spend() { colour = budget.execute(0); }

    table again {
        key = {
            asks   : exact;
            colour : exact;
        }
        actions = {
            again_0;
            again_1;
            again_array;
            stay;
        }
        const entries = {
            (ROLE_TAKE_0, METER_GREEN): again_0();
            (ROLE_TAKE_1, METER_GREEN): again_1();
            (ROLE_SEIZE, METER_GREEN): again_array();
        }
        const default_action = stay();
        size = 4;
    }

    action report() { dprsr.digest_type = 1; }
    action drop_it() {}

    /* Which replaced records are reported. */
    table leaving {
        key = {
            role   : ternary;
            closed : ternary;
            fate   : ternary;
#if REORDER_METHOD != 1
            q.report.n : ternary;
            q.report.o : ternary;
#endif
#if REORDER_METHOD != 0
            q.report.way_n : ternary;
            q.report.way_o : ternary;
#endif
        }
        actions = {
            report;
            drop_it;
        }
        const entries = {
            REORDER_LEAVING
        }
        const default_action = drop_it();
        size = 8;
    }

#if REORDER_METHOD != 0
    action place_0() { hash_0 = row_1.get(PREFIX_FIELDS); }
    action place_1() { hash_1 = row_2.get(PREFIX_FIELDS); }
    action flip() { coin[30:0] = random.get(); }

    action compare() {
        size = min(size_0, size_1);
        ahead = size_1 - size_0;
    }

    action renew_0() {
        asks = ROLE_TAKE_0;
        power = REORDER_RENEWED;
    }

    action renew_1() {
        asks = ROLE_TAKE_1;
        power = REORDER_RENEWED;
    }

    /* A flow's own record in a way, whose count is near its maximum. */
    table renewals {
        key = {
            role   : ternary;
            size_0 : ternary;
            size_1 : ternary;
            n_0    : ternary;
            n_1    : ternary;
        }
        actions = {
            renew_0;
            renew_1;
            stay;
        }
        const entries = {
            (ROLE_FIRST, 0, _, REORDER_FULL &&& REORDER_FULL, _): renew_0();
            (ROLE_FIRST, _, 0, _, REORDER_FULL &&& REORDER_FULL): renew_1();
        }
        const default_action = stay();
        size = 4;
    }

    action evict_0() {
        q.report.way_prefix = held_0;
        q.report.way_n = n_0;
        q.report.way_o = o_0;
    }

    action evict_1() {
        q.report.way_prefix = held_1;
        q.report.way_n = n_1;
        q.report.way_o = o_1;
    }
#endif
#if REORDER_METHOD == 2
    action differ() {
        other_0 = held_0 - prefix;
        other_1 = held_1 - prefix;
    }

    action shut() { closed = 2; }   /* the flow is in a way: the array is not used */
    action no_new() { closed = 1; } /* its prefix is, or the flow requests a way: only its own record continues */
    action open() {}

    table doors {
        key = {
            role    : ternary;
            size_0  : ternary;
            size_1  : ternary;
            other_0 : ternary;
            other_1 : ternary;
            power   : ternary;
        }
        actions = {
            shut;
            no_new;
            open;
        }
        const entries = {
            (ROLE_FIRST, 0, _, _, _, _): shut();
            (ROLE_FIRST, _, 0, _, _, _): shut();
            (ROLE_BEGIN, 0, _, _, _, _): shut();
            (ROLE_BEGIN, _, 0, _, _, _): shut();
            (ROLE_FIRST, _, _, 0, _, _): no_new();
            (ROLE_FIRST, _, _, _, 0, _): no_new();
            (ROLE_FIRST, _, _, _, _, 0): open();
            (ROLE_FIRST, _, _, _, _, _): no_new();
        }
        const default_action = open();
        size = 16;
    }

#endif
#if REORDER_METHOD != 1
    action place_array() { hash = row_3.get(PREFIX_FIELDS); }

#endif

    apply {
        if (hdr.second.isValid()) {
            same_bank();
        } else {
            window.apply();
        }
        clock.apply(nanoseconds, now);
        passes.apply();
        lengths.apply(hdr, payload, first);
        families.apply();
        kinds.apply();
        sign();
#if REORDER_METHOD != 0
        place_0();
        place_1();
        flip();
#endif
#if REORDER_METHOD != 1
        place_array();
#endif
        if (role != ROLE_NONE) {
            expect();
            mark();
#if REORDER_METHOD != 0
            id_0.apply(role, bank ++ hash_0[31:REORDER_WAY_LOW], signature, hdr.second.value, size_0);
            prefix_0.apply(role, bank ++ hash_0[31:REORDER_WAY_LOW], prefix, held_0);
            id_1.apply(role, size_0, bank ++ hash_1[31:REORDER_WAY_LOW], signature, hdr.second.value, size_1);
            seq_0.apply(role, begins, size_0, bank ++ hash_0[31:REORDER_WAY_LOW], first, next, o_0);
            prefix_1.apply(role, bank ++ hash_1[31:REORDER_WAY_LOW], prefix, held_1);
            count_0.apply(role, size_0, bank ++ hash_0[31:REORDER_WAY_LOW], tag, n_0);
            seq_1.apply(role, begins, size_0, size_1, bank ++ hash_1[31:REORDER_WAY_LOW], first, next, o_1);
            count_1.apply(role, size_0, size_1, bank ++ hash_1[31:REORDER_WAY_LOW], tag, n_1);
            if (role == ROLE_FIRST && size_0 != 0 && size_1 != 0) {
                compare();
                admission.apply(size, coin, power);
                if (ahead[31:31] == 1) {
                    way = ROLE_TAKE_1;
                } else {
                    way = ROLE_TAKE_0;
                }
            } else if (role == ROLE_TAKE_0) {
                evict_0();
            } else if (role == ROLE_TAKE_1) {
                evict_1();
            }
            if (power != 0) {
                asks = way;
            }
#endif
#if REORDER_METHOD == 2
            differ();
            doors.apply();
#endif
#if REORDER_METHOD != 0
            renewals.apply();
#endif
#if REORDER_METHOD != 1
            id_array.apply(role, closed, bank ++ hash[31:REORDER_ARRAY_LOW], signature, now, fate);
            prefix_array.apply(role, closed, fate, bank ++ hash[31:REORDER_ARRAY_LOW], prefix, q.report.prefix);
            seq_array.apply(role, begins, closed, fate, bank ++ hash[31:REORDER_ARRAY_LOW], first, next, q.report.o);
            count_array.apply(role, closed, fate, bank ++ hash[31:REORDER_ARRAY_LOW], tag, q.report.n);
            expiry.apply(role, closed, fate, q.report.n, q.report.o, asks);
#endif
            if (asks != 0) {
                spend();
                again.apply();
            }
#if REORDER_METHOD != 0
            q.carry.value = power;
#endif
            leaving.apply();
        }
    }
}

#endif
