// SPDX-License-Identifier: Apache-2.0
/* Outcome of requests and responses: enum rtt_counter of bpf/rttarray/rttarray.bpf.c, one counter per action. */
#ifndef XDPMON_RTTARRAY_OUTCOME_P4
#define XDPMON_RTTARRAY_OUTCOME_P4

control RttOutcome(in role_t role, in fate_t fate, in bit<32> time) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) rtt_counters;

    action inserted() { rtt_counters.count(); }
    action evicted() { rtt_counters.count(); } /* replaced another one */
    action repeated() { rtt_counters.count(); }
    action matched() { rtt_counters.count(); }
    action unmatched() { rtt_counters.count(); }
    action others() { rtt_counters.count(); } /* ends of handshakes */

    table outcomes {
        key = {
            role : ternary;
            fate : ternary;
            time : ternary;
        }
        actions = {
            inserted;
            evicted;
            repeated;
            matched;
            unmatched;
            others;
        }
        const entries = {
            (ROLE_REQUEST, FATE_EVICTED, _): evicted();
            (ROLE_REQUEST, FATE_INSERTED, _): inserted();
            (ROLE_REQUEST, _, _): repeated();
            (ROLE_RESPONSE, _, 0): unmatched();
            (ROLE_RESPONSE, _, _): matched();
        }
        const default_action = others();
        counters = rtt_counters;
        size = 8;
    }

    apply {
        outcomes.apply();
    }
}

#endif
