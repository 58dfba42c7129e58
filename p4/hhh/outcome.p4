// SPDX-License-Identifier: Apache-2.0
/* What became of the packets: enum hhh_counter of bpf/hhh/hhh.bpf.c, one count an action. */
#ifndef XDPMON_HHH_OUTCOME_P4
#define XDPMON_HHH_OUTCOME_P4

control HhhOutcome(in role_t role, in bit<8> in_0, in bit<8> in_1, in bit<32> left) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) hhh_counts;

    action no_key() { hhh_counts.count(); }
    action matched() { hhh_counts.count(); }
    action admitted() { hhh_counts.count(); }
    action passed_over() { hhh_counts.count(); } /* not there, and not admitted */
    action written() { hhh_counts.count(); }

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
        counters = hhh_counts;
        size = 8;
    }

    apply {
        outcomes.apply();
    }
}

#endif
