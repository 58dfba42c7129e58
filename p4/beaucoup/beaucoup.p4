// SPDX-License-Identifier: Apache-2.0
/* beaucoup: many distinct-count queries at once, on a switch.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 4. The eBPF form is
 * bpf/beaucoup/beaucoup.bpf.c. This is the form with 32 coupons and 26 queries over eleven attributes,
 * --set beaucoup.set=many; hashes and tables are generated. The entries of the tables of coupons and queries are the initial
 * ones: queries over the same attributes are added and removed at run time, by `xdpmon p4 rules beaucoup`. The registers,
 * which a test compares:
 *
 * stage  register          width     holds
 *   1    beaucoup_ends     32        collectors.p4: until when a collector collects
 *   2    beaucoup_keys     32        collectors.p4: checksum of query and key
 *   3    beaucoup_vectors  32 of 64  collectors.p4: its coupons
 *
 * A packet that completes a collector is copied to the CPU port: it contains the key's own fields, and the query is found
 * by its hashes. Stages are an order, not numbers of the chip: the compiler places the tables. */
#ifndef XDPMON_BEAUCOUP_P4
#define XDPMON_BEAUCOUP_P4

#include "collectors.p4"

#define BEAUCOUP_KEY                                                                                           \
    { whose.src0, whose.src1, whose.src2, whose.src3, whose.dst0, whose.dst1, whose.dst2, whose.dst3, whose.ports, whose.protocol, query, 16w0 }

control Beaucoup(in headers_t hdr, in question_t q, in ingress_intrinsic_metadata_t ig,
                 inout ingress_intrinsic_metadata_for_tm_t tm) {
    bit<1> coin = 0;
    bit<8> query = 0;
    bit<8> coupon = 0;
    bit<8> drawn = 0;
    bit<32> onehot = 0;
    beaucoup_key_t whose = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    bit<8> asked = 0;
    bit<8> before = 0;
    bit<8> left = 0;
    bit<32> window = 0;
    bit<32> now = 0;
    bit<32> end = 0;
    beaucoup_slot_t slot = 0;
    bit<32> check = 0;
    bit<8> fresh = 0;
    bit<8> own = 0;
    bit<32> old = 0;
    bit<32> known = 0;
    bit<4> ones_1 = 0;
    bit<4> ones_2 = 0;
    bit<4> ones_3 = 0;

    Random<bit<1>>() random;
    HASH_ROW(slots, HASH_ROW_1);
    HASH_ROW(checks, HASH_ROW_3);
    Clock(BEAUCOUP_TICK) clock;
    BeaucoupCoupons() coupons;
    BeaucoupQueries() queries;
    BeaucoupOnehot() bits;
    BeaucoupEnds() ends;
    BeaucoupKeys() keys;
    BeaucoupVectors() vectors;
    BeaucoupLeft() byte_0;
    BeaucoupOnes() byte_1;
    BeaucoupOnes() byte_2;
    BeaucoupOnes() byte_3;
    BeaucoupComplete() sums;

    action flip() { coin = random.get(); }
    /* A stateful ALU compares numbers: a window that would cross the wrap of the clock, once in 73 minutes, ends there. */
    action add_window() { end = now |+| window; }
    action hash_slot() { slot = (beaucoup_slot_t)slots.get(BEAUCOUP_KEY); }
    action hash_check() { check = checks.get(BEAUCOUP_KEY); }
    action mark() { known = old & onehot; }
    apply {
        if (hdr.ipv4.isValid() || hdr.ipv6.isValid()) {
            clock.apply(ig.ingress_mac_tstamp, now);
            flip();
            coupons.apply(hdr, q, ig.ingress_mac_tstamp, coin, query, coupon, drawn);
            if (drawn == 1) {
                queries.apply(hdr, q, query, whose, before, window, asked);
                bits.apply(coupon, onehot);
            }
            if (asked == 1) {
                add_window();
                hash_slot();
                hash_check();
                ends.apply(slot, now, end, fresh);
                keys.apply(slot, check, fresh, own);
                vectors.apply(slot, onehot, fresh, own, old);
                mark();
                byte_0.apply(old[7:0], before, left);
                byte_1.apply(old[15:8], ones_1);
                byte_2.apply(old[23:16], ones_2);
                byte_3.apply(old[31:24], ones_3);
                if (own == 1 && known == 0) {
                    sums.apply(left, ones_1, ones_2, ones_3, tm.copy_to_cpu);
                }
            }
        }
    }
}

#endif
