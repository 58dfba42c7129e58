// SPDX-License-Identifier: Apache-2.0
/* hhh: hierarchical heavy hitters by a random prefix, on a switch (Chen, "Designing Compact Data Structures for Network Measurement and Control", section 3.4).
 *
 * Each packet draws one of the four byte levels of its IPv4 source and counts the prefix in a PRECISION of two ways; by
 * parameters (tables.p4) of its destination, of both, or one of eight levels of four bits. The eBPF form is bpf/hhh/hhh.bpf.c with bpf/include/ways.h; this one is --set hhh.family=4 --set hhh.ways=2
 * --set hhh.entries=65536. The registers, which a test compares:
 *
 * stage  register   width    holds
 *   1    hhh_k00    32 + 32  ways.p4: {prefix, 1} in way 0
 *   2    hhh_k01    32 + 32  ways.p4: {0, level and tag}
 *   3    hhh_k10    32 + 32  ways.p4: way 1
 *   4    hhh_k11    32 + 32  ways.p4
 *   6    hhh_c0     32 of 64 ways.p4: its counter, minus the initial value
 *   8    hhh_c1     32 of 64 ways.p4: way 1
 *
 * The clone of an admitted packet contains way, level and value; see p4/precision/precision.p4. The
 * root is counted by ways.p4, without the packets that are no_key. */
#ifndef XDPMON_HHH_P4
#define XDPMON_HHH_P4

/* Word 0 of a key. */
#if HHH_FIELDS == 3
#define KEY_WORD_0 prefix, prefix_1
#elif HHH_FIELDS == 2
#define KEY_WORD_0 32w0, prefix
#else
#define KEY_WORD_0 prefix, 32w1
#endif

#define WAYS(what) hhh_##what
#define WAYS_CONTROL(what) Hhh##what
#define WAYS_ENTRIES HHH_ENTRIES
#define WAYS_WORDS 2
#include "../include/ways.p4"

control Hhh(inout headers_t hdr, inout question_t q, inout ingress_intrinsic_metadata_for_deparser_t dprsr) {
    role_t role;
    bit<1> bank = 0;
    bit<32> prefix = 0;
#if HHH_FIELDS == 3
    bit<32> prefix_1 = 0;
    bit<32> tag = 1;
    drawn_t drawn_1 = 0;
#else
    bit<32> tag = 0;
#endif
    drawn_t drawn = 0;
    way_slot_t slot_0 = 0;
    way_slot_t slot_1 = 0;
    bit<32> value; /* second pass: new value of the counter; first pass: its value if admitted */
    bit<32> coin = 0;
    bit<8> a0 = 0;
    bit<8> b0 = 0;
    bit<8> a1 = 0;
    bit<8> b1 = 0;
    bit<32> c0 = 0;
    bit<32> c1 = 0;
    bit<8> in_0 = 0;
    bit<8> in_1 = 0;
    bit<32> ahead = 0; /* negative: way 1 has the smaller counter */
    bit<32> next = 0;
    bit<8> way = 0;
    bit<32> left = 0; /* negative: admitted */

    HASH_ROW(row_0, HASH_ROW_0);
    HASH_ROW(row_1, HASH_ROW_1);
    Random<bit<31>>() random;
    Random<drawn_t>() draw;
#if HHH_FIELDS == 3
    Random<drawn_t>() draw_1;
    HhhSource() level;
    HhhDestination() level_1;
#else
    HhhLevel() level;
#endif
#if __TARGET_TOFINO__ == 2
    HhhK00(WAYS_BANK) low_k00;
    HhhK00(WAYS_BANK) high_k00;
    HhhK01(WAYS_BANK) low_k01;
    HhhK01(WAYS_BANK) high_k01;
    HhhK10(WAYS_BANK) low_k10;
    HhhK10(WAYS_BANK) high_k10;
    HhhK11(WAYS_BANK) low_k11;
    HhhK11(WAYS_BANK) high_k11;
#else
    HhhK00(WAYS_ENTRIES) k00;
    HhhK01(WAYS_ENTRIES) k01;
    HhhK10(WAYS_ENTRIES) k10;
    HhhK11(WAYS_ENTRIES) k11;
#endif
    HhhC0() counter_0;
    HhhC1() counter_1;
    HhhAdmission() admission;
    HhhOutcome() outcome;

    /* The bank that this packet counts into. To end a window the control plane sets the default action to the other bank. */
    action use_bank(bit<1> b) { bank = b; }

    table window {
        actions = { use_bank; }
        default_action = use_bank(0);
        size = 1;
    }

    action none() {
        role = ROLE_NONE;
        value = 0;
    }

    action first() {
        role = ROLE_LOOK;
        value = 0;
    }

    action second() {
        role = hdr.second.way;
        value = hdr.second.value;
    }

    action same_bank() { bank = hdr.second.bank; }

    table passes {
        key = {
            hdr.ipv4.isValid()   : exact;
            hdr.second.isValid() : exact;
        }
        actions = {
            none;
            first;
            second;
        }
        const entries = {
            (true, false): first();
            (true, true): second();
        }
        const default_action = none();
        size = 4;
    }

    action hash_0() { slot_0 = (way_slot_t)row_0.get(KEY_WORDS); }
    action hash_1() { slot_1 = (way_slot_t)row_1.get(KEY_WORDS); }
    action draw_level() { drawn = draw.get(); }
#if HHH_FIELDS == 3
    action draw_other() { drawn_1 = draw_1.get(); }
#endif
    action flip() { coin[30:0] = random.get(); }
    action compare() { ahead = c1 - c0; }

    action smaller_0() {
        next = c0 |+| HHH_NEXT;
        value = c0 + 1;
        way = (bit<8>)ROLE_TAKE_0;
    }

    action smaller_1() {
        next = c1 |+| HHH_NEXT;
        value = c1 + 1;
        way = (bit<8>)ROLE_TAKE_1;
    }

    action clone() {
        dprsr.mirror_type = SECOND_TYPE;
        q.carry.setValid();
        q.carry.value = value;
        q.carry.way = way;
#if HHH_FIELDS == 2
        q.carry.level = tag[23:16];
#else
        q.carry.level = tag[15:8];
#endif
#if HHH_FIELDS == 3
        q.carry.other = tag[23:16];
#endif
        q.carry.pad = 0;
        q.carry.bank = bank;
    }

    apply {
        if (hdr.second.isValid()) {
            same_bank();
        } else {
            window.apply();
        }
        passes.apply();
#if HHH_FIELDS == 3
        draw_other(); /* as the eBPF form: the destination's level first */
#endif
        draw_level();
        if (hdr.ipv4.isValid()) {
            level.apply(hdr, drawn, prefix, tag);
#if HHH_FIELDS == 3
            level_1.apply(hdr, drawn_1, prefix_1, tag);
#endif
            hash_0();
            hash_1();
            flip();
#if __TARGET_TOFINO__ == 2
            if (bank == 0) {
                low_k00.apply(role, slot_0, KEY_WORD_0, a0);
            } else {
                high_k00.apply(role, slot_0, KEY_WORD_0, a0);
            }
#else
            k00.apply(role, bank ++ slot_0, KEY_WORD_0, a0);
#endif
#if __TARGET_TOFINO__ == 2
            if (bank == 0) {
                low_k01.apply(role, slot_0, 32w0, tag, b0);
            } else {
                high_k01.apply(role, slot_0, 32w0, tag, b0);
            }
#else
            k01.apply(role, bank ++ slot_0, 32w0, tag, b0);
#endif
#if __TARGET_TOFINO__ == 2
            if (bank == 0) {
                low_k10.apply(role, slot_1, KEY_WORD_0, a1);
            } else {
                high_k10.apply(role, slot_1, KEY_WORD_0, a1);
            }
#else
            k10.apply(role, bank ++ slot_1, KEY_WORD_0, a1);
#endif
#if __TARGET_TOFINO__ == 2
            if (bank == 0) {
                low_k11.apply(role, slot_1, 32w0, tag, b1);
            } else {
                high_k11.apply(role, slot_1, 32w0, tag, b1);
            }
#else
            k11.apply(role, bank ++ slot_1, 32w0, tag, b1);
#endif
            counter_0.apply(role, WAYS_FOUND(a0, b0), bank ++ slot_0, value, c0, in_0);
            counter_1.apply(role, WAYS_FOUND(a0, b0), WAYS_FOUND(a1, b1), bank ++ slot_1, value, c1, in_1);
            if (role == ROLE_LOOK && in_0 == 0 && in_1 == 0) {
                compare();
                if (ahead[31:31] == 1) {
                    smaller_1();
                } else {
                    smaller_0();
                }
                admission.apply(next, coin, left);
                if (left[31:31] == 1) {
                    clone();
                }
            }
        }
        outcome.apply(role, in_0, in_1, left);
    }
}

#endif
