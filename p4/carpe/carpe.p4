// SPDX-License-Identifier: Apache-2.0
/* carpe: a switch's part in finding flows that are heavy in the whole network but not at any single point.
 *
 * Harrison, Landau Feibish, Gupta, Teixeira, Muthukrishnan, Rexford, "Carpe Elephants: Seize the Global Heavy Hitters", SPIN 2020, section 4.
 * The eBPF form is bpf/carpe/carpe.bpf.c; this is the form with two ways that counts packets of 5-tuples over IPv4, --set carpe.family=4
 * with s a power of two. The registers, which a test compares:
 *
 * stage  register     width    holds
 *   1    carpe_d0     32 + 32  hold.p4: {signature, units missing from the bundle} of the flow in way 0
 *   2    carpe_d1     32 + 32  hold.p4: way 1
 *   4    carpe_heard  32       below: digest of a group that was reported to the control plane
 *
 * By stage of the chip: 0 hashes, coins, the group's prefixes, its parameters · 1 way 0; the group's hashes; the coin of a report minus its limit · 2 way 1 ·
 * 3 outcome of the packet; carpe_heard · 4 the digest.
 *
 * The control plane fills `groups` (source and destination prefix, longest first), frees entries that stay the same for a window, and
 * clears carpe_heard periodically. */
#ifndef XDPMON_CARPE_P4
#define XDPMON_CARPE_P4

const bit<8> REPORT_BUNDLE = 1;
const bit<8> REPORT_GROUP = 2;

#include "hold.p4"

/* Once per group, to the control plane. */
control CarpeHeard(in sample_t sample, in bit<32> left_0, in bit<32> left_1, in heard_slot_t slot, in bit<32> group, out bit<8> news) {
    Register<bit<32>, heard_slot_t>(CARPE_HEARD, 0) carpe_heard;

    RegisterAction<bit<32>, heard_slot_t, bit<8>>(carpe_heard) tell_once = {
        void apply(inout bit<32> v, out bit<8> told) {
            told = 0;
            if (v != group) {
                told = REPORT_GROUP;
            }
            v = group;
        }
    };

    action asked() { news = tell_once.execute(slot); }
    action not_asked() {}

    /* Parameters are requested by packets that may start a bundle, and by those that complete one. */
    table heard {
        key = {
            sample : ternary;
            left_0 : ternary;
            left_1 : ternary;
        }
        actions = {
            asked;
            not_asked;
        }
        const entries = {
            (0, _, _): asked();
            (_, CARPE_FLOOR, _): asked();
            (_, _, CARPE_FLOOR): asked();
        }
        const default_action = not_asked();
        size = 4;
    }

    apply {
        news = 0;
        heard.apply();
    }
}

control Carpe(inout headers_t hdr, inout question_t q, inout ingress_intrinsic_metadata_for_deparser_t dprsr) {
    sample_t sample = 0;
    bit<32> coin = 0; /* minus r in 2^31: negative if the bundle is to be reported */
    bit<32> chance = 0;
    bit<32> signature = 0;
    bit<32> begin = 0;
    carpe_slot_t slot_0 = 0;
    carpe_slot_t slot_1 = 0;
    bit<32> left_0 = 0;
    bit<32> left_1 = 0;
    bit<32> src = 0;
    bit<32> dst = 0;
    heard_slot_t place = 0;
    bit<32> group = 0;
    bit<8> bundle = 0;
    bit<8> news = 0;

    HASH_ROW(row_0, HASH_ROW_0);
    HASH_ROW(row_1, HASH_ROW_1);
    HASH_ROW(row_3, HASH_ROW_3);
    HASH_ROW(group_0, HASH_ROW_0);
    HASH_ROW(group_1, HASH_ROW_1);
    Random<sample_t>() sampling;
    Random<bit<31>>() reporting;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) outcomes;
    CarpeD0() d0;
    CarpeD1() d1;
    CarpeHeard() heard;

    action parameters(bit<32> first, bit<32> r, bit<32> tau) {
        begin = first;
        chance = r;
        q.report.units = tau;
    }

    table groups {
        key = {
            hdr.ipv4.src : ternary;
            hdr.ipv4.dst : ternary;
        }
        actions = {
            parameters;
        }
        default_action = parameters(CARPE_BEGIN, CARPE_CHANCE, CARPE_TAU);
        size = 4096;
    }

    action hash_0() { slot_0 = (carpe_slot_t)row_0.get(KEY_WORDS); }
    action hash_1() { slot_1 = (carpe_slot_t)row_1.get(KEY_WORDS); }
    action sign() { signature = row_3.get(KEY_WORDS); }
    action flip() { sample = sampling.get(); }
    action flip_again() { coin[30:0] = reporting.get(); }
    action compare() { coin = coin - chance; }
    action mask_src() { src = hdr.ipv4.src & CARPE_SRC; }
    action mask_dst() { dst = hdr.ipv4.dst & CARPE_DST; }
    action hash_place() { place = (heard_slot_t)group_0.get({ src, dst }); }
    action hash_group() { group = group_1.get({ src, dst }); }

    action report() {
        bundle = REPORT_BUNDLE;
        outcomes.count();
    }
    action kept_quiet() { outcomes.count(); } /* a complete bundle whose coin decides against a report */
    action collided() { outcomes.count(); }   /* it might have started a bundle, but found no free entry */
    action other() { outcomes.count(); }

    table bundles {
        key = {
            left_0      : ternary;
            left_1      : ternary;
            coin[31:31] : ternary;
            sample      : ternary;
        }
        actions = {
            report;
            kept_quiet;
            collided;
            other;
        }
        const entries = {
            (CARPE_FLOOR, _, 1, _): report();
            (CARPE_FLOOR, _, 0, _): kept_quiet();
            (_, CARPE_FLOOR, 1, _): report();
            (_, CARPE_FLOOR, 0, _): kept_quiet();
            (0, 0, _, 0): collided();
        }
        const default_action = other();
        counters = outcomes;
        size = 8;
    }

    action say() {
        dprsr.digest_type = 1;
        q.report.src = hdr.ipv4.src;
        q.report.dst = hdr.ipv4.dst;
        q.report.ports = q.ports;
        q.report.protocol = hdr.ipv4.protocol;
        q.report.what = bundle | news;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            groups.apply();
            hash_0();
            hash_1();
            sign();
            flip();
            flip_again();
            compare();
            mask_src();
            mask_dst();
            hash_place();
            hash_group();
            d0.apply(sample, slot_0, signature, begin, left_0);
            d1.apply(sample, left_0, slot_1, signature, begin, left_1);
            bundles.apply();
            heard.apply(sample, left_0, left_1, place, group, news);
            if (bundle != 0 || news != 0) {
                say();
            }
        }
    }
}

#endif
