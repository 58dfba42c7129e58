// SPDX-License-Identifier: Apache-2.0
/* Outcome of requests and responses: enum fridge_counter of bpf/fridge/fridge.bpf.c, one counter per action;
 * inserted is the sum of inserted, evicted and again. */
#ifndef XDPMON_FRIDGE_OUTCOME_P4
#define XDPMON_FRIDGE_OUTCOME_P4

control FridgeOutcome(in role_t role, in bit<1> admitted, in fate_t fate, in bit<32> time, in bit<32> leg) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) fridge_counters;

    action lost_coin() { fridge_counters.count(); }
    action inserted() { fridge_counters.count(); }
    action evicted() { fridge_counters.count(); }        /* replaced one that waited */
    action again() { fridge_counters.count(); }          /* replaced its own, which was answered */
    action repeated() { fridge_counters.count(); }
    action unmatched() { fridge_counters.count(); }      /* a response without its request */
    action matched() { fridge_counters.count(); }
    action repeated_reply() { fridge_counters.count(); } /* a repeated SYN-ACK */
    action finals() { fridge_counters.count(); }
    action unfinished() { fridge_counters.count(); }     /* an ACK whose SYN is stored, but had no SYN-ACK */
    action others() { fridge_counters.count(); }         /* bare ACKs of no handshake in the fridge */

    table outcomes {
        key = {
            role     : ternary;
            admitted : ternary;
            fate     : ternary;
            time     : ternary;
            leg      : ternary;
        }
        actions = {
            lost_coin;
            inserted;
            evicted;
            again;
            repeated;
            unmatched;
            matched;
            repeated_reply;
            finals;
            unfinished;
            others;
        }
        const entries = {
            (ROLE_REQUEST, 0, _, _, _): lost_coin();
            (ROLE_REQUEST, 1, FATE_REPEATED, _, _): repeated();
            (ROLE_REQUEST, 1, FATE_EVICTED, _, _): evicted();
            (ROLE_REQUEST, 1, FATE_AGAIN, _, _): again();
            (ROLE_REQUEST, 1, _, _, _): inserted();
            (ROLE_RESPONSE, _, _, 0, _): unmatched();
            (ROLE_RESPONSE, _, _, _, 0): repeated_reply();
            (ROLE_RESPONSE, _, _, _, _): matched();
#if FRIDGE_LEGS
            (ROLE_FINAL, _, _, 0, _): others();
            (ROLE_FINAL, _, _, _, 0): unfinished();
            (ROLE_FINAL, _, _, _, _): finals();
#endif
        }
        const default_action = others();
        counters = fridge_counters;
        size = 16;
    }

    apply {
        outcomes.apply();
    }
}

#endif
