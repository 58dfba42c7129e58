// SPDX-License-Identifier: Apache-2.0
/* What became of the packets: enum precision_counter of bpf/precision/precision.bpf.c, one count an action. */
#ifndef XDPMON_PRECISION_OUTCOME_P4
#define XDPMON_PRECISION_OUTCOME_P4

control PrecisionOutcome(in role_t role, in bit<8> in_0, in bit<8> in_1, in bit<32> left) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) precision_counts;

    action no_key() { precision_counts.count(); }
    action matched() { precision_counts.count(); }
    action admitted() { precision_counts.count(); }
    action passed_over() { precision_counts.count(); } /* not there, and not admitted */
    action written() { precision_counts.count(); }

    table outcomes {
        key = {
            role : ternary;
            in_0 : ternary;
            in_1 : ternary;
            left : ternary;
        }
        actions = {
            no_key;
            matched;
            admitted;
            passed_over;
            written;
        }
        const entries = {
            (ROLE_NONE, _, _, _): no_key();
            (ROLE_LOOK, 1, _, _): matched();
            (ROLE_LOOK, _, 1, _): matched();
            (ROLE_LOOK, _, _, 0x80000000 &&& 0x80000000): admitted();
            (ROLE_LOOK, _, _, _): passed_over();
        }
        const default_action = written();
        counters = precision_counts;
        size = 8;
    }

    apply {
        outcomes.apply();
    }
}

#endif
