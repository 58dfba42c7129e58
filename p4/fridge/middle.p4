// SPDX-License-Identifier: Apache-2.0
/* Stage 3, the legs of a handshake: the time of its first SYN-ACK, odd so that it is never 0.
 *
 * leg marks samples: not 0 for the first SYN-ACK of a record, the delay since then for the ACK
 * after it, 0 for everything else. Both times are odd: the delay is rounded to two ticks, and an ACK within the
 * tick of its SYN-ACK is no sample. */
#ifndef XDPMON_FRIDGE_MIDDLE_P4
#define XDPMON_FRIDGE_MIDDLE_P4

control FridgeMiddle(in role_t role, in fate_t fate, in slot_t slot, in bit<32> time, in bit<32> odd, inout bit<32> leg) {
    Register<bit<32>, slot_t>(FRIDGE_ENTRIES, 0) fridge_middle;

    RegisterAction<bit<32>, slot_t, bit<32>>(fridge_middle) clear_answer = {
        void apply(inout bit<32> v) {
            v = 0;
        }
    };

    RegisterAction<bit<32>, slot_t, bit<32>>(fridge_middle) note_answer = {
        void apply(inout bit<32> v, out bit<32> sample) {
            sample = 0;
            if (v == 0) {
                v = odd;
                sample = odd;
            }
        }
    };

    RegisterAction<bit<32>, slot_t, bit<32>>(fridge_middle) since_answer = {
        void apply(inout bit<32> v, out bit<32> sample) {
            sample = 0;
            if (v != 0) {
                sample = odd - v;
            }
        }
    };

    action clear() { clear_answer.execute(slot); }
    action note() { leg = note_answer.execute(slot); }
    action since() { leg = since_answer.execute(slot); }
    action skip() {}

    table legs {
        key = {
            role : ternary;
            fate : ternary;
            time : ternary;
        }
        actions = {
            clear;
            note;
            since;
            skip;
        }
        const entries = {
            (ROLE_REQUEST, FATE_NONE, _): skip();
            (ROLE_REQUEST, _, _): clear();
            (_, _, 0): skip();
            (ROLE_RESPONSE, _, _): note();
            (ROLE_FINAL, _, _): since();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        legs.apply();
    }
}

#endif
