// SPDX-License-Identifier: Apache-2.0
/* conquest: who fills the queue, on a switch, in the egress.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 5 (ConQuest). The eBPF form is
 * bpf/conquest with times that the packet has, packets counted, and the oldest snapshot taken wholly or not at all:
 * --set conquest.source=qdisc --set conquest.count=packets --set conquest.reading=nearest
 * The registers, which a test compares:
 *
 * stage  register         width    holds
 *   3    conquest_t0      32 + 32  tables.p4: {window, packets of all flows}, snapshot 0
 *   3    conquest_t1      32 + 32  tables.p4
 *   3    conquest_t2      32 + 32  tables.p4
 *   3    conquest_t3      32 + 32  tables.p4
 *   4    conquest_s0_0    32 + 32  tables.p4: {window, packets of the flow}, snapshot 0, row 0
 *   4    conquest_s1_0    32 + 32  tables.p4
 *   4    conquest_s2_0    32 + 32  tables.p4
 *   4    conquest_s3_0    32 + 32  tables.p4
 *   5    conquest_s0_1    32 + 32  tables.p4: row 1
 *   5    conquest_s1_1    32 + 32  tables.p4
 *   5    conquest_s2_1    32 + 32  tables.p4
 *   5    conquest_s3_1    32 + 32  tables.p4
 *   7    conquest_told    32 + 32  below: {flow, window} of the last report
 *   -    conquest_burst   begins and ends of bursts are the control plane's to see: reports bear delays
 *   -    conquest_peak    the same
 *   -    conquest_large   aggregates of segments are a host's: a switch sees each packet
 *
 * By stage of the chip, as compiled for both: 0 times, window · 1 totals · 2 two reads of each row; alpha of the totals that count · 3 the other two, added; pairs
 * of totals · 4 sums · 5 limit minus rows · 6 reported. With b = 8 totals take a stage more and reads two: ten. What a read returns is added as it leaves the ALU, two sums a row, so
 * that the numbers of b = 8 find containers.
 *
 * There are no coarse snapshots (conquest_ct, conquest_c0 and conquest_c1 of the host, with conquest.reading=overlap): a cell that is overwritten would have to hand over both
 * its window and its count to a later stage, and a RegisterAction has one output; and what of the oldest coarse window counts is a product.
 *
 * Nothing is done to culprits here (conquest_culprits and conquest_drops of the host): the queue's beginning is the ingress, another pipeline, so that a
 * condemnation and the gap after a drop would have to be carried there by a mirrored packet.
 *
 * A flow is a culprit if both rows have more than the limit. A copy of its packet is sent to a collector once a window. */
#ifndef XDPMON_CONQUEST_P4
#define XDPMON_CONQUEST_P4

const MirrorType_t REPORT_TYPE = 1;

struct told_t {
    bit<32> flow;
    bit<32> window;
}

control ConquestAccuse(in bit<1> counted, in bit<32> calm, in bit<32> more_0, in bit<32> more_1, in bit<10> place,
                       in bit<32> flow, in bit<32> window, inout MirrorType_t type) {
    Register<told_t, bit<10>>(1024, {0, 0}) conquest_told;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) outcomes;

    RegisterAction<told_t, bit<10>, MirrorType_t>(conquest_told) tell_once = {
        void apply(inout told_t v, out MirrorType_t report) {
            report = 0;
            if (v.flow != flow || v.window != window) {
                report = REPORT_TYPE;
            }
            v.flow = flow;
            v.window = window;
        }
    };

    action accuse() {
        type = tell_once.execute(place);
        outcomes.count();
    }
    action waited() { outcomes.count(); } /* tau or longer, and its flow has no more than alpha */
    action passed() { outcomes.count(); } /* it did not wait long */
    action uncounted() { outcomes.count(); }

    /* Sign bits: set where a difference is negative. */
    table accused {
        key = {
            counted       : ternary;
            calm[31:31]   : ternary;
            more_0[31:31] : ternary;
            more_1[31:31] : ternary;
        }
        actions = {
            accuse;
            waited;
            passed;
            uncounted;
        }
        const entries = {
            (1, 0, 1, 1): accuse();
            (1, 0, _, _): waited();
            (1, _, _, _): passed();
        }
        const default_action = uncounted();
        counters = outcomes;
        size = 4;
    }

    apply {
        accused.apply();
    }
}

control Conquest(in bridged_h bridged, inout answer_t md, in PortId_t port, in bit<48> now,
                 inout egress_intrinsic_metadata_for_deparser_t dprsr) {
    bit<1> counted = 0;
    bit<32> window = 0; /* of the departure */
    bit<32> delay = 0;
    bit<32> calm = 0;   /* delay minus tau */
    bit<32> back = 0;   /* ns from the begin of the oldest snapshot to that of this window */
    bit<32> limit = 0;
    bit<32> more_0 = 0; /* limit minus what the rows have of the flow */
    bit<32> more_1 = 0;

    Clock(CONQUEST_SHIFT) clock;
    ConquestSnapshots() snapshots;
    ConquestAccuse() accuse;

    action watch() { counted = bridged.counted; }
    action ignore() {}

    /* Whose queue: every port's, until the control plane sets the default to ignore and names the ports. */
    table ports {
        key = {
            port : exact;
        }
        actions = {
            watch;
            ignore;
        }
        default_action = watch();
        size = 512;
    }

    action depart() {
        delay = now[31:0] - bridged.arrival;
        back = now[31:0] & CONQUEST_WINDOW;
    }

    action compare() {
        calm = delay - CONQUEST_TAU;
        back = back - bridged.first;
    }

    action report() {
        md.session = (MirrorId_t)bridged.session;
        md.report.setValid();
        md.report.front = FRONT_REPORT;
        md.report.flow = bridged.row_1;
        md.report.delay = delay;
        md.report.limit = limit;
    }

    apply {
        ports.apply();
        clock.apply(now, window);
        depart();
        compare();
        snapshots.apply(counted, window, back, bridged.row_0, bridged.row_1, limit, more_0, more_1);
        report();
        accuse.apply(counted, calm, more_0, more_1, bridged.row_0[25:16], bridged.row_1, window, dprsr.mirror_type);
    }
}

#endif
