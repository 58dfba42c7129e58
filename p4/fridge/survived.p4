// SPDX-License-Identifier: Apache-2.0
/* Stage 3, CTR of section 6.1: the insertion counter at the time of the request, modulo 2^24, followed by the low byte of its
 * id. A record's age is the difference; the byte is in both operands and cancels out. A request also gets the
 * difference, which is the number of insertions since its earlier copy if the slot still had it. */
#ifndef XDPMON_FRIDGE_SURVIVED_P4
#define XDPMON_FRIDGE_SURVIVED_P4

control FridgeSurvived(in role_t role, in fate_t fate, in slot_t slot, in bit<32> id, in bit<32> time, in bit<32> count,
                       inout bit<32> survived) {
    Register<bit<32>, slot_t>(FRIDGE_ENTRIES, 0) fridge_survived;

    RegisterAction<bit<32>, slot_t, bit<32>>(fridge_survived) note_inserts = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = (count[23:0] ++ id[15:8]) - v;
            v = count[23:0] ++ id[15:8];
        }
    };

    RegisterAction<bit<32>, slot_t, bit<32>>(fridge_survived) since_inserts = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = (count[23:0] ++ id[15:8]) - v;
        }
    };

    action note() { survived = note_inserts.execute(slot); }
    action since() { survived = since_inserts.execute(slot); }
    action skip() {}

    table survivals {
        key = {
            role : ternary;
            fate : ternary;
            time : ternary;
        }
        actions = {
            note;
            since;
            skip;
        }
        const entries = {
            (ROLE_REQUEST, FATE_NONE, _): skip();
            (ROLE_REQUEST, _, _): note();
            (_, _, 0): skip();
            (ROLE_RESPONSE, _, _): since();
            (ROLE_FINAL, _, _): since();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        survivals.apply();
    }
}

#endif
