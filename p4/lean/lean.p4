// SPDX-License-Identifier: Apache-2.0
/* lean: which flows suffer most, from latency, loss, reordering or retransmission, on a switch.
 *
 * Liu, Zhou, Rottenstreich, Braverman, Rexford, "Memory-Efficient Performance Monitoring on Programmable Switches with Lean
 * Algorithms", sections 3 to 5. The eBPF form is bpf/lean/lean.bpf.c, with a header per statistic that describes its
 * tables; this is the form for IPv4. -D LEAN_STATS=MASK compiles some of the statistics: latency 1, loss 2, ooo 4,
 * retrans 8. Loss is detected by the IPv4 identification, --set lean.loss.id=ipid. The registers, which a test compares:
 *
 * stage  register        width          holds
 *   0    lean_twin       16 + 16 of 32  order.p4: {digest, time} of a flow's last data packet
 *   0    lean_ooo_way0   16 + 16 of 32  order.p4: {signature, time} of a recent flow
 *   0    lean_ret_way0   32 + 32        retrans.p4: {signature, time} of a flow with many packets
 *   1    lean_lat_fr     32             latency.p4: {signature 11, 1, time 20} of a segment
 *   1    lean_loss_owner 16 + 16 of 32  loss.p4: {signature, credit} of a flow
 *   1    lean_ooo_way1   16 + 16 of 32  order.p4
 *   1    lean_ret_way1   32 + 32        retrans.p4
 *   2    lean_loss_last  16 + 16 of 32  loss.p4: {good, last identifier}
 *   2    lean_ret_time   16             retrans.p4: T
 *   2    lean_ret_max    32             retrans.p4: M
 *   3    lean_ooo_max    32 + 32        order.p4: {maximum, its time}
 *   3    lean_ret_cuts   32 + 32        retrans.p4: {C, P}
 *   5    lean_lat_0      32             tables.p4: row 0 of the sketch
 *   5    lean_loss_0     32             tables.p4: row 0 of the sketch
 *   5    lean_ooo_0      32             tables.p4: row 0 of the sketch
 *   5    lean_ret_0      32             tables.p4: row 0 of the sketch
 *   6    lean_lat_1      32             tables.p4: row 1 of the sketch
 *   6    lean_loss_1     32             tables.p4: row 1 of the sketch
 *   6    lean_ooo_1      32             tables.p4: row 1 of the sketch
 *   6    lean_ret_1      32             tables.p4: row 1 of the sketch
 *   7    lean_lat_2      32             tables.p4: row 2 of the sketch
 *   7    lean_loss_2     32             tables.p4: row 2 of the sketch
 *   7    lean_ooo_2      32             tables.p4: row 2 of the sketch
 *   7    lean_ret_2      32             tables.p4: row 2 of the sketch
 *   8    lean_lat_3      32             tables.p4: row 3 of the sketch
 *   8    lean_loss_3     32             tables.p4: row 3 of the sketch
 *   8    lean_ooo_3      32             tables.p4: row 3 of the sketch
 *   8    lean_ret_3      32             tables.p4: row 3 of the sketch
 *   9    lean_lat_4      32             tables.p4: row 4 of the sketch
 *   9    lean_loss_4     32             tables.p4: row 4 of the sketch
 *   9    lean_ooo_4      32             tables.p4: row 4 of the sketch
 *   9    lean_ret_4      32             tables.p4: row 4 of the sketch
 *  10    lean_lat_b_0    32             tables.p4: array 0 of the filter
 *  10    lean_loss_b_0   32             tables.p4: array 0 of the filter
 *  10    lean_ooo_b_0    32             tables.p4: array 0 of the filter
 *  10    lean_ret_b_0    32             tables.p4: array 0 of the filter
 *  11    lean_lat_b_1    32             tables.p4: array 1 of the filter
 *  11    lean_loss_b_1   32             tables.p4: array 1 of the filter
 *  11    lean_ooo_b_1    32             tables.p4: array 1 of the filter
 *  11    lean_ret_b_1    32             tables.p4: array 1 of the filter
 *
 * With keys from bits (lean.keys=bits, one statistic) no flow is reported: in the filter's place, in stage 10, is lean_bits, sub-buckets of 32 bits, one a
 * bit of the key, in tables.p4.
 *
 * A flow is reported by a digest with its key if three of the first four rows reach the limit and one of its two bits was
 * not set; the fifth row is for the control plane, which reads the sketch at the end of a window, and resets a bank to 0.
 * The control plane also sets the limits, the share of segments that latency samples, and the weights of their delays: `xdpmon p4 rules
 * lean` writes all of it. Until then every flow is reported, as on a host while few are, and one segment in 32 is sampled:
 * --set lean.p=1/32. Stages are an order, not numbers of the chip: the compiler places the tables. */
#ifndef XDPMON_LEAN_P4
#define XDPMON_LEAN_P4

#include "latency.p4"
#include "loss.p4"
#include "order.p4"
#include "retrans.p4"

#define LEAN_BARE(words) (_, _, _, words, 20 + 4 * words): no_data();
#define LEAN_NO_PAYLOAD                                                                                        \
    LEAN_BARE(5) LEAN_BARE(6) LEAN_BARE(7) LEAN_BARE(8) LEAN_BARE(9) LEAN_BARE(10) LEAN_BARE(11) LEAN_BARE(12)  \
    LEAN_BARE(13) LEAN_BARE(14) LEAN_BARE(15)
#define LEAN_ORDER 12 /* statistics of order */
/* What a row reports: nothing where keys come from bits, without reports. */
#ifdef LEAN_BITS
#define LEAN_REACHED(row)
#else
#define LEAN_REACHED(row) , row
#endif

control Lean(in headers_t hdr, inout question_t q, in bit<48> nanoseconds, inout ingress_intrinsic_metadata_for_deparser_t dprsr) {
    bit<1> bank = 0;
    kind_t kind;
    bit<32> total; /* of the IP packet */
    bit<32> base; /* the segment's number less both headers */
    bit<32> base_1; /* and one more */
    bit<16> tick;  /* 2^16 ns */
    bit<32> hash_0;
    bit<32> hash_1;
    bit<32> hash_2;
    bit<32> hash_3;
#ifdef LEAN_BITS
    bit_number_t number_of_bit;
    bit<1> sign;
#else
    bit<32> mask_0;
    bit<32> mask_1;
#endif

    HASH_ROW(row_0, HASH_ROW_0);
    HASH_ROW(row_1, HASH_ROW_1);
    HASH_ROW(row_2, HASH_ROW_2);
    HASH_ROW(row_3, HASH_ROW_3);
    LeanLengths() lengths;
#ifdef LEAN_BITS
    LeanKey() key_bit;
#else
    LeanMask() first_mask;
    LeanMask() second_mask;
#endif

#if LEAN_STATS & 1
    ask_t ask;
    bit<32> a; /* sender of the segment */
    bit<32> b;
    bit<32> ports;
    bit<32> disc;
    bit<32> id;
    bit<16> slot; /* as digest below: one unit of hashes */
    bit<32> lat_now; /* {1, time 20} in 2^13 ns */
    bit<32> delay;
    bit<32> lat_value;
    bit<32> back_0;
    bit<32> back_1;
    bit<32> back_2;
    bit<32> back_3;
#ifndef LEAN_BITS
    bit<32> back_mask_0;
    bit<32> back_mask_1;
#endif
#ifndef LEAN_BITS
    row_t lat_row_0;
    row_t lat_row_1;
    row_t lat_row_2;
    row_t lat_row_3;
    bit<32> lat_known_0;
    bit<32> lat_known_1;
#endif

    HASH_ROW(row_id, HASH_ROW_0);
    HASH_ROW(row_slot, HASH_ROW_1);
    HASH_ROW(row_back_0, HASH_ROW_0);
    HASH_ROW(row_back_1, HASH_ROW_1);
    HASH_ROW(row_back_2, HASH_ROW_2);
    HASH_ROW(row_back_3, HASH_ROW_3);
    LeanAsk() asks;
    LeanLatClock() lat_clock;
#ifndef LEAN_BITS
    LeanMask() third_mask;
    LeanMask() fourth_mask;
#endif
    LeanLatRecords() lat_records;
    LeanValue() lat_values;
    LeanLat0() lat_0;
    LeanLat1() lat_1;
    LeanLat2() lat_2;
    LeanLat3() lat_3;
    LeanLat4() lat_4;
#ifdef LEAN_BITS
    LeanBits() bits;
#else
    LeanLatFilter0() lat_filter_0;
    LeanLatFilter1() lat_filter_1;
#endif
#endif

#if LEAN_STATS & 2
    bit<1> numbered;
    fate_t loss_fate;
    bit<16> last;
    bit<16> step;
    bit<32> loss_value;
#ifndef LEAN_BITS
    row_t loss_row_0;
    row_t loss_row_1;
    row_t loss_row_2;
    row_t loss_row_3;
    bit<32> loss_known_0;
    bit<32> loss_known_1;
#endif

    LeanLossOwn() loss_own;
    LeanLossLast() loss_last;
    LeanStep() loss_step;
    LeanLoss0() loss_0;
    LeanLoss1() loss_1;
    LeanLoss2() loss_2;
    LeanLoss3() loss_3;
    LeanLoss4() loss_4;
#ifdef LEAN_BITS
    LeanBits() bits;
#else
    LeanLossFilter0() loss_filter_0;
    LeanLossFilter1() loss_filter_1;
#endif
#endif

#if LEAN_STATS & LEAN_ORDER
    bit<1> data;
    bit<32> end;
    bit<16> digest; /* 32 bits would take two of a stage's six units of hashes */
    copy_t copy;

    HASH_ROW(row_digest, HASH_ROW_3);
    LeanTwin() twin;
#endif

#if LEAN_STATS & 4
    bit<32> ooo_now; /* 2^8 ns */
    fate_t ooo_fate;
    ooo_index_t ooo_index;
    found_t ooo_found;
#ifndef LEAN_BITS
    row_t ooo_row_0;
    row_t ooo_row_1;
    row_t ooo_row_2;
    row_t ooo_row_3;
    bit<32> ooo_known_0;
    bit<32> ooo_known_1;
#endif

    LeanOooWay0() ooo_way0;
    LeanOooWay1() ooo_way1;
    LeanOooMax() ooo_max;
    LeanOoo0() ooo_0;
    LeanOoo1() ooo_1;
    LeanOoo2() ooo_2;
    LeanOoo3() ooo_3;
    LeanOoo4() ooo_4;
#ifdef LEAN_BITS
    LeanBits() bits;
#else
    LeanOooFilter0() ooo_filter_0;
    LeanOooFilter1() ooo_filter_1;
#endif
#endif

#if LEAN_STATS & 8
    bit<32> ret_now; /* 2^16 ns */
    fate_t ret_fate;
    ret_index_t ret_index;
    turn_t ret_turn;
    bit<32> ret_max;
    found_t ret_found;
    bit<32> ret_below; /* how far below M the packet starts, if all is old */
#ifndef LEAN_BITS
    row_t ret_row_0;
    row_t ret_row_1;
    row_t ret_row_2;
    row_t ret_row_3;
    bit<32> ret_known_0;
    bit<32> ret_known_1;
#endif

    LeanRetWay0() ret_way0;
    LeanRetWay1() ret_way1;
    LeanRetTime() ret_time;
    LeanRetMax() ret_maximum;
    LeanRetCuts() ret_cuts;
    LeanRet0() ret_0;
    LeanRet1() ret_1;
    LeanRet2() ret_2;
    LeanRet3() ret_3;
    LeanRet4() ret_4;
#ifdef LEAN_BITS
    LeanBits() bits;
#else
    LeanRetFilter0() ret_filter_0;
    LeanRetFilter1() ret_filter_1;
#endif
#endif

    /* The bank that this packet counts into. To end a window the control plane sets the default action to the other bank. */
    action use_bank(bit<1> b) { bank = b; }

    table window {
        actions = { use_bank; }
        default_action = use_bank(0);
        size = 1;
    }

    action extend() { total = (bit<32>)hdr.ipv4.total; }
    action place_0() { hash_0 = row_0.get(FLOW_FIELDS); }
    action place_1() { hash_1 = row_1.get(FLOW_FIELDS); }
    action place_2() { hash_2 = row_2.get(FLOW_FIELDS); }
    action place_3() { hash_3 = row_3.get(FLOW_FIELDS); }
#if LEAN_STATS & LEAN_ORDER
    action number() { end = base + total; }
    action digest_packet() { digest = row_digest.get(COPY_FIELDS)[15:0]; }
    action has_data() { data = 1; }
    action no_data() { data = 0; }

    /* A data packet: with payload, neither SYN nor RST. */
    table segments {
        key = {
            hdr.ipv4.isValid() : ternary;
            hdr.tcp.isValid()  : ternary;
            hdr.tcp.flags      : ternary;
            hdr.tcp.words      : ternary;
            hdr.ipv4.total     : ternary;
        }
        actions = {
            has_data;
            no_data;
        }
        const entries = {
            (_, _, 0x02 &&& 0x02, _, _): no_data();
            (_, _, 0x04 &&& 0x04, _, _): no_data();
            LEAN_NO_PAYLOAD
            (true, true, _, _, _): has_data();
        }
        const default_action = no_data();
        size = 16;
    }
#endif
#if LEAN_STATS & 1
    action hash_id() { id = row_id.get(SEGMENT_FIELDS); }
    action hash_slot() { slot = row_slot.get(SEGMENT_FIELDS)[15:0]; }
    action place_back_0() { back_0 = row_back_0.get(BACK_FIELDS); }
    action place_back_1() { back_1 = row_back_1.get(BACK_FIELDS); }
    action place_back_2() { back_2 = row_back_2.get(BACK_FIELDS); }
    action place_back_3() { back_3 = row_back_3.get(BACK_FIELDS); }
#endif
#if LEAN_STATS & 2
    action advance() { step = hdr.ipv4.id - last; }
    action has_number() { numbered = 1; }
    action no_number() { numbered = 0; }

    /* Not a fragment, and not ICMP. */
    table identified {
        key = {
            hdr.ipv4.isValid() : exact;
            hdr.ipv4.flags     : ternary;
            hdr.ipv4.offset    : ternary;
            hdr.ipv4.protocol  : ternary;
        }
        actions = {
            has_number;
            no_number;
        }
        const entries = {
            (true, _, _, 1): no_number();
            (true, 0 &&& 1, 0, _): has_number();
        }
        const default_action = no_number();
        size = 2;
    }
#endif

#ifndef LEAN_BITS
    action report(bit<8> stats) {
        dprsr.digest_type = 1;
        q.report.stats = stats;
    }

    action stay() {}

    /* A flow is reported if one of its two bits was not set. */
    LEAN_AT(11) table reports {
        key = {
#if LEAN_STATS & 1
            lat_known_0 : ternary;
            lat_known_1 : ternary;
#endif
#if LEAN_STATS & 2
            loss_known_0 : ternary;
            loss_known_1 : ternary;
#endif
#if LEAN_STATS & 4
            ooo_known_0 : ternary;
            ooo_known_1 : ternary;
#endif
#if LEAN_STATS & 8
            ret_known_0 : ternary;
            ret_known_1 : ternary;
#endif
        }
        actions = {
            report;
            stay;
        }
        const entries = {
            LEAN_REPORTS
        }
        const default_action = stay();
        size = 128;
    }
#endif

    apply {
        window.apply();
        tick = nanoseconds[31:16];
#ifndef LEAN_BITS
        q.report.src = hdr.ipv4.src;
        q.report.dst = hdr.ipv4.dst;
        q.report.ports = q.ports;
        q.report.protocol = hdr.ipv4.protocol;
#endif
        extend();
        lengths.apply(hdr, kind, base, base_1);
        place_0();
        place_3();
        place_1();
        place_2();
#ifndef LEAN_BITS
        first_mask.apply(hash_2[20:16], mask_0);
        second_mask.apply(hash_3[4:0], mask_1);
#elif LEAN_STATS != 1
        key_bit.apply(hdr.ipv4.src, hdr.ipv4.dst, q.ports[31:16], q.ports[15:0], hdr.ipv4.protocol, hash_3[31:16], number_of_bit, sign);
#endif
#if LEAN_STATS & 1
        lat_clock.apply(nanoseconds, lat_now);
        place_back_0();
        place_back_1();
        place_back_2();
        place_back_3();
#ifdef LEAN_BITS
        key_bit.apply(hdr.ipv4.dst, hdr.ipv4.src, q.ports[15:0], q.ports[31:16], hdr.ipv4.protocol, back_3[31:16], number_of_bit, sign);
#else
        third_mask.apply(back_2[20:16], back_mask_0);
        fourth_mask.apply(back_3[4:0], back_mask_1);
#endif
        asks.apply(hdr, q.ports, kind, base, base_1, total, ask, a, b, ports, disc);
        hash_id();
        hash_slot();
#endif
#if LEAN_STATS & 2
        identified.apply();
#endif
#if LEAN_STATS & LEAN_ORDER
        segments.apply();
        digest_packet();
        number();
#endif
#if LEAN_STATS & 4
        ooo_now = nanoseconds[39:8];
#endif
#if LEAN_STATS & 8
        ret_now = nanoseconds[47:16];
#endif
#if LEAN_STATS & LEAN_ORDER
        twin.apply(data, hash_1[22:16], digest, tick, copy);
#endif
#if LEAN_STATS & 4
        ooo_way0.apply(data, hash_0[8:0], hash_3[15:0], tick, ooo_fate);
#endif
#if LEAN_STATS & 8
        ret_way0.apply(data, nanoseconds[11:8], hash_0[9:0], hash_3, ret_now, ret_fate);
#endif
#if LEAN_STATS & 1
        lat_records.apply(ask, id[15:0], slot[10:0], id[31:21] ++ lat_now[20:0], delay);
        lat_values.apply(delay, lat_value);
#endif
#if LEAN_STATS & 2
        loss_own.apply(numbered, hash_0[11:0], hash_3[15:0], loss_fate);
#endif
#if LEAN_STATS & 4
        ooo_way1.apply(hash_0[8:0], hash_1[8:0], hash_3[15:0], tick, ooo_fate, ooo_index);
#endif
#if LEAN_STATS & 8
        ret_way1.apply(nanoseconds[11:8], hash_0[9:0], hash_1[8:0], hash_3, ret_now, ret_fate, ret_index);
#endif
#if LEAN_STATS & 2
        loss_last.apply(loss_fate, hash_0[11:0], hdr.ipv4.id, last);
        advance();
        loss_step.apply(step, last, loss_value);
#endif
#if LEAN_STATS & 8
        ret_time.apply(ret_fate, ret_index, tick, ret_turn);
        ret_maximum.apply(ret_fate, ret_index, end, ret_max);
#endif
#if LEAN_STATS & 4
        ooo_max.apply(ooo_fate, copy, ooo_index, end, ooo_now, ooo_found);
#endif
#if LEAN_STATS & 8
        ret_cuts.apply(ret_fate, ret_turn, copy, kind, ret_index, hdr.tcp.seq, ret_max, ret_found, ret_below);
#endif
#if LEAN_STATS & 1
        lat_0.apply(lat_value, back_0[15:15], bank ++ back_0[LEAN_LAT_COLUMN:0] LEAN_REACHED(lat_row_0));
#endif
#if LEAN_STATS & 2
        loss_0.apply(loss_value, hash_0[15:15], bank ++ hash_0[LEAN_LOSS_COLUMN:0] LEAN_REACHED(loss_row_0));
#endif
#if LEAN_STATS & 4
        ooo_0.apply(ooo_found, hash_0[15:15], bank ++ hash_0[LEAN_OOO_COLUMN:0] LEAN_REACHED(ooo_row_0));
#endif
#if LEAN_STATS & 8
        ret_0.apply(ret_found, ret_below, hash_0[15:15], bank ++ hash_0[LEAN_RET_COLUMN:0] LEAN_REACHED(ret_row_0));
#endif
#if LEAN_STATS & 1
        lat_1.apply(lat_value, back_0[31:31], bank ++ back_0[LEAN_LAT_COLUMN + 16:16] LEAN_REACHED(lat_row_1));
#endif
#if LEAN_STATS & 2
        loss_1.apply(loss_value, hash_0[31:31], bank ++ hash_0[LEAN_LOSS_COLUMN + 16:16] LEAN_REACHED(loss_row_1));
#endif
#if LEAN_STATS & 4
        ooo_1.apply(ooo_found, hash_0[31:31], bank ++ hash_0[LEAN_OOO_COLUMN + 16:16] LEAN_REACHED(ooo_row_1));
#endif
#if LEAN_STATS & 8
        ret_1.apply(ret_found, ret_below, hash_0[31:31], bank ++ hash_0[LEAN_RET_COLUMN + 16:16] LEAN_REACHED(ret_row_1));
#endif
#if LEAN_STATS & 1
        lat_2.apply(lat_value, back_1[15:15], bank ++ back_1[LEAN_LAT_COLUMN:0] LEAN_REACHED(lat_row_2));
#endif
#if LEAN_STATS & 2
        loss_2.apply(loss_value, hash_1[15:15], bank ++ hash_1[LEAN_LOSS_COLUMN:0] LEAN_REACHED(loss_row_2));
#endif
#if LEAN_STATS & 4
        ooo_2.apply(ooo_found, hash_1[15:15], bank ++ hash_1[LEAN_OOO_COLUMN:0] LEAN_REACHED(ooo_row_2));
#endif
#if LEAN_STATS & 8
        ret_2.apply(ret_found, ret_below, hash_1[15:15], bank ++ hash_1[LEAN_RET_COLUMN:0] LEAN_REACHED(ret_row_2));
#endif
#if LEAN_STATS & 1
        lat_3.apply(lat_value, back_1[31:31], bank ++ back_1[LEAN_LAT_COLUMN + 16:16] LEAN_REACHED(lat_row_3));
#endif
#if LEAN_STATS & 2
        loss_3.apply(loss_value, hash_1[31:31], bank ++ hash_1[LEAN_LOSS_COLUMN + 16:16] LEAN_REACHED(loss_row_3));
#endif
#if LEAN_STATS & 4
        ooo_3.apply(ooo_found, hash_1[31:31], bank ++ hash_1[LEAN_OOO_COLUMN + 16:16] LEAN_REACHED(ooo_row_3));
#endif
#if LEAN_STATS & 8
        ret_3.apply(ret_found, ret_below, hash_1[31:31], bank ++ hash_1[LEAN_RET_COLUMN + 16:16] LEAN_REACHED(ret_row_3));
#endif
#if LEAN_STATS & 1
        lat_4.apply(lat_value, back_2[15:15], bank ++ back_2[LEAN_LAT_COLUMN:0]);
#endif
#if LEAN_STATS & 2
        loss_4.apply(loss_value, hash_2[15:15], bank ++ hash_2[LEAN_LOSS_COLUMN:0]);
#endif
#if LEAN_STATS & 4
        ooo_4.apply(ooo_found, hash_2[15:15], bank ++ hash_2[LEAN_OOO_COLUMN:0]);
#endif
#if LEAN_STATS & 8
        ret_4.apply(ret_found, ret_below, hash_2[15:15], bank ++ hash_2[LEAN_RET_COLUMN:0]);
#endif
#ifdef LEAN_BITS
#if LEAN_STATS == 1
        bits.apply(lat_value, sign, bank ++ back_2[LEAN_BUCKET:16] ++ number_of_bit);
#elif LEAN_STATS == 2
        bits.apply(loss_value, sign, bank ++ hash_2[LEAN_BUCKET:16] ++ number_of_bit);
#elif LEAN_STATS == 4
        bits.apply(ooo_found, sign, bank ++ hash_2[LEAN_BUCKET:16] ++ number_of_bit);
#else
        bits.apply(ret_found, ret_below, sign, bank ++ hash_2[LEAN_BUCKET:16] ++ number_of_bit);
#endif
#else
#if LEAN_STATS & 1
        lat_filter_0.apply(lat_row_0, lat_row_1, lat_row_2, lat_row_3, bank ++ back_2[30:21], back_mask_0, lat_known_0);
#endif
#if LEAN_STATS & 2
        loss_filter_0.apply(loss_row_0, loss_row_1, loss_row_2, loss_row_3, bank ++ hash_2[28:21], mask_0, loss_known_0);
#endif
#if LEAN_STATS & 4
        ooo_filter_0.apply(ooo_row_0, ooo_row_1, ooo_row_2, ooo_row_3, bank ++ hash_2[28:21], mask_0, ooo_known_0);
#endif
#if LEAN_STATS & 8
        ret_filter_0.apply(ret_row_0, ret_row_1, ret_row_2, ret_row_3, bank ++ hash_2[26:21], mask_0, ret_known_0);
#endif
#if LEAN_STATS & 1
        lat_filter_1.apply(lat_row_0, lat_row_1, lat_row_2, lat_row_3, bank ++ back_3[14:5], back_mask_1, lat_known_1);
#endif
#if LEAN_STATS & 2
        loss_filter_1.apply(loss_row_0, loss_row_1, loss_row_2, loss_row_3, bank ++ hash_3[12:5], mask_1, loss_known_1);
#endif
#if LEAN_STATS & 4
        ooo_filter_1.apply(ooo_row_0, ooo_row_1, ooo_row_2, ooo_row_3, bank ++ hash_3[12:5], mask_1, ooo_known_1);
#endif
#if LEAN_STATS & 8
        ret_filter_1.apply(ret_row_0, ret_row_1, ret_row_2, ret_row_3, bank ++ hash_3[10:5], mask_1, ret_known_1);
#endif
        reports.apply();
#endif
    }
}

#endif
