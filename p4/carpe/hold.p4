// SPDX-License-Identifier: Apache-2.0
/* Stages 1 and 2: entries. A word has a flow's signature and, above the floor, the units missing from its bundle; at or below the floor it is free. A packet
 * that may start a bundle takes a free entry, every other one counts in its flow's entry. The output is the new value: 0 if the
 * packet found no entry, the floor if it completed the bundle. */
#ifndef XDPMON_CARPE_HOLD_P4
#define XDPMON_CARPE_HOLD_P4

struct entry_t {
    bit<32> signature;
    bit<32> left;
}

control CarpeD0(in sample_t sample, in carpe_slot_t slot, in bit<32> signature, in bit<32> begin, out bit<32> left) {
    Register<entry_t, carpe_slot_t>(CARPE_ENTRIES, {0, 0}) carpe_d0;

    RegisterAction<entry_t, carpe_slot_t, bit<32>>(carpe_d0) begin_d0 = {
        void apply(inout entry_t v, out bit<32> after) {
            after = 0;
            if (v.left <= CARPE_FLOOR) {
                v.signature = signature;
                v.left = begin;
                after = v.left;
            } else if (v.signature == signature) {
                v.left = v.left - 1;
                after = v.left;
            }
        }
    };

    RegisterAction<entry_t, carpe_slot_t, bit<32>>(carpe_d0) count_d0 = {
        void apply(inout entry_t v, out bit<32> after) {
            after = 0;
            if (v.left > CARPE_FLOOR && v.signature == signature) {
                v.left = v.left - 1;
                after = v.left;
            }
        }
    };

    action may_begin() { left = begin_d0.execute(slot); }
    action count() { left = count_d0.execute(slot); }
    action skip() {}

    /* A miss has no index: count is an entry, and no packet misses. */
    table entries_0 {
        key = {
            sample : ternary;
        }
        actions = {
            may_begin;
            count;
            skip;
        }
        const entries = {
            0: may_begin();
            _: count();
        }
        const default_action = skip();
        size = 2;
    }

    apply {
        left = 0;
        entries_0.apply();
    }
}

control CarpeD1(in sample_t sample, in bit<32> before, in carpe_slot_t slot, in bit<32> signature, in bit<32> begin, out bit<32> left) {
    Register<entry_t, carpe_slot_t>(CARPE_ENTRIES, {0, 0}) carpe_d1;

    RegisterAction<entry_t, carpe_slot_t, bit<32>>(carpe_d1) begin_d1 = {
        void apply(inout entry_t v, out bit<32> after) {
            after = 0;
            if (v.left <= CARPE_FLOOR) {
                v.signature = signature;
                v.left = begin;
                after = v.left;
            } else if (v.signature == signature) {
                v.left = v.left - 1;
                after = v.left;
            }
        }
    };

    RegisterAction<entry_t, carpe_slot_t, bit<32>>(carpe_d1) count_d1 = {
        void apply(inout entry_t v, out bit<32> after) {
            after = 0;
            if (v.left > CARPE_FLOOR && v.signature == signature) {
                v.left = v.left - 1;
                after = v.left;
            }
        }
    };

    action may_begin() { left = begin_d1.execute(slot); }
    action count() { left = count_d1.execute(slot); }
    action skip() {}

    table entries_1 {
        key = {
            before : ternary;
            sample : ternary;
        }
        actions = {
            may_begin;
            count;
            skip;
        }
        const entries = {
            (0, 0): may_begin();
            (0, _): count();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        left = 0;
        entries_1.apply();
    }
}

#endif
