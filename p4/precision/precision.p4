// SPDX-License-Identifier: Apache-2.0
/* precision: the heaviest flows, by partial recirculation, on a switch.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 3. The eBPF form is
 * bpf/precision/precision.bpf.c with bpf/include/ways.h; this is the form for IPv4 with two ways and admission 9/8, for any
 * the key (keys.p4), with --set precision.family=4 and as many entries as the published prototype, --set precision.entries=65536.
 * The registers, which a test compares:
 *
 * stage  register         width    holds
 *   1    precision_k00    32 + 32  ways.p4: {source, destination} of the flow in way 0
 *   2    precision_k01    32 + 32  ways.p4: {ports, protocol and tag}
 *   3    precision_k10    32 + 32  ways.p4: way 1
 *   4    precision_k11    32 + 32  ways.p4
 *   6    precision_c0     32 of 64 ways.p4: its counter, minus the initial value
 *   8    precision_c1     32 of 64 ways.p4: way 1
 *
 * An admitted packet is forwarded, and its clone (second.p4) returns with the way and the value to be written. There
 * is no budget here: the initial value bounds the share of second passes. Stages are an order, not numbers of the chip: the
 * compiler places the tables. */
#ifndef XDPMON_PRECISION_P4
#define XDPMON_PRECISION_P4

#define WAYS(what) precision_##what
#define WAYS_CONTROL(what) Precision##what
#define WAYS_ENTRIES PRECISION_ENTRIES
#include "../include/ways.p4"

control Precision(inout headers_t hdr, inout question_t q, inout ingress_intrinsic_metadata_for_deparser_t dprsr) {
    role_t role;
    bit<1> bank = 0;
#if WAYS_WORDS == 2 || !KEY_ADDRESSES
    bit<32> tag = 0;
#endif
#if KEY_PORTS == 4 || KEY_PORTS == 8
    bit<32> ports = 0;
#endif
    way_slot_t slot_0 = 0;
    way_slot_t slot_1 = 0;
    bit<32> value; /* second pass: new value of the counter; first pass: its value if admitted */
    bit<32> coin = 0;
    bit<8> a0 = 0;
#if WAYS_WORDS == 2
    bit<8> b0 = 0;
#endif
    bit<8> a1 = 0;
#if WAYS_WORDS == 2
    bit<8> b1 = 0;
#endif
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
#if __TARGET_TOFINO__ == 2
    PrecisionK00(WAYS_BANK) low_k00;
    PrecisionK00(WAYS_BANK) high_k00;
#if WAYS_WORDS == 2
    PrecisionK01(WAYS_BANK) low_k01;
    PrecisionK01(WAYS_BANK) high_k01;
#endif
    PrecisionK10(WAYS_BANK) low_k10;
    PrecisionK10(WAYS_BANK) high_k10;
#if WAYS_WORDS == 2
    PrecisionK11(WAYS_BANK) low_k11;
    PrecisionK11(WAYS_BANK) high_k11;
#endif
#else
    PrecisionK00(WAYS_ENTRIES) k00;
#if WAYS_WORDS == 2
    PrecisionK01(WAYS_ENTRIES) k01;
#endif
    PrecisionK10(WAYS_ENTRIES) k10;
#if WAYS_WORDS == 2
    PrecisionK11(WAYS_ENTRIES) k11;
#endif
#endif
    PrecisionC0() counter_0;
    PrecisionC1() counter_1;
    PrecisionAdmission() admission;
    PrecisionOutcome() outcome;

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
#ifdef FLOW_KIND
            q.kind               : ternary;
#endif
            hdr.second.isValid() : exact;
        }
        actions = {
            none;
            first;
            second;
        }
        const entries = {
            (KEY_THERE, false): first();
            (KEY_THERE, true): second();
        }
        const default_action = none();
        size = 4;
    }

    action hash_0() { slot_0 = (way_slot_t)row_0.get(KEY_WORDS); }
    action hash_1() { slot_1 = (way_slot_t)row_1.get(KEY_WORDS); }
#if WAYS_WORDS == 2 || !KEY_ADDRESSES
    action make_tag() { tag = KEY_PROTOCOL ++ 24w1; }
#endif
#if KEY_PORTS == 4
    action leave_port() { ports[31:16] = q.ports[31:16]; }
#elif KEY_PORTS == 8
    action leave_port() { ports[15:0] = q.ports[15:0]; }
#endif
    action flip() { coin[30:0] = random.get(); }
    action compare() { ahead = c1 - c0; }

    action smaller_0() {
        next = c0 |+| PRECISION_NEXT;
        value = c0 + 1;
        way = (bit<8>)ROLE_TAKE_0;
    }

    action smaller_1() {
        next = c1 |+| PRECISION_NEXT;
        value = c1 + 1;
        way = (bit<8>)ROLE_TAKE_1;
    }

    action clone() {
        dprsr.mirror_type = SECOND_TYPE;
        q.carry.setValid();
        q.carry.value = value;
        q.carry.way = way;
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
        if (hdr.ipv4.isValid()) {
            hash_0();
            hash_1();
#if WAYS_WORDS == 2 || !KEY_ADDRESSES
            make_tag();
#endif
#if KEY_PORTS == 4 || KEY_PORTS == 8
            leave_port();
#endif
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
#if WAYS_WORDS == 2
#if __TARGET_TOFINO__ == 2
            if (bank == 0) {
                low_k01.apply(role, slot_0, KEY_WORD_1, b0);
            } else {
                high_k01.apply(role, slot_0, KEY_WORD_1, b0);
            }
#else
            k01.apply(role, bank ++ slot_0, KEY_WORD_1, b0);
#endif
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
#if WAYS_WORDS == 2
#if __TARGET_TOFINO__ == 2
            if (bank == 0) {
                low_k11.apply(role, slot_1, KEY_WORD_1, b1);
            } else {
                high_k11.apply(role, slot_1, KEY_WORD_1, b1);
            }
#else
            k11.apply(role, bank ++ slot_1, KEY_WORD_1, b1);
#endif
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
