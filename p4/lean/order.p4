// SPDX-License-Identifier: Apache-2.0
/* Out of order: copies of a mirror, two ways of recent flows, and their maximum (bpf/lean/segment.h, bpf/lean/ooo.h). */
#ifndef XDPMON_LEAN_ORDER_P4
#define XDPMON_LEAN_ORDER_P4

/* Stage 0: the last packet of a flow. */
control LeanTwin(in bit<1> data, in bit<7> slot, in bit<16> digest, in bit<16> now, out copy_t copy) {
    Register<small_t, bit<7>>(LEAN_TWIN, {0, 0}) lean_twin;

    RegisterAction<small_t, bit<7>, copy_t>(lean_twin) swap_twin = {
        void apply(inout small_t v, out copy_t found) {
            found = this.predicate(v.signature == digest, now - v.time > LEAN_WINDOW);
            v.signature = digest;
            v.time = now;
        }
    };

    action swap() { copy = swap_twin.execute(slot); }
    action skip() { copy = 0; }

    table twins {
        key = {
            data : exact;
        }
        actions = {
            swap;
            skip;
        }
        const entries = {
            1: swap();
        }
        const default_action = skip();
        size = 2;
    }

    apply {
        twins.apply();
    }
}

/* Stage 0: way 0. */
control LeanOooWay0(in bit<1> data, in ooo_slot_t slot, in bit<16> signature, in bit<16> now, out fate_t fate) {
    Register<small_t, ooo_slot_t>(LEAN_OOO_WAY, {0, 0}) lean_ooo_way0;

    RegisterAction<small_t, ooo_slot_t, fate_t>(lean_ooo_way0) claim_ooo_way0 = {
        void apply(inout small_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > LEAN_WINDOW);
            if (v.signature == signature || now - v.time > LEAN_WINDOW) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    action claim() { fate = claim_ooo_way0.execute(slot); }
    action skip() { fate = FATE_NONE; }

    table ways {
        key = {
            data : exact;
        }
        actions = {
            claim;
            skip;
        }
        const entries = {
            1: claim();
        }
        const default_action = skip();
        size = 2;
    }

    apply {
        ways.apply();
    }
}

/* Stage 1: way 1, for flows without a record in way 0; and where the record is. */
control LeanOooWay1(in ooo_slot_t slot_0, in ooo_slot_t slot_1, in bit<16> signature, in bit<16> now, inout fate_t fate,
                    out ooo_index_t index) {
    Register<small_t, ooo_slot_t>(LEAN_OOO_WAY, {0, 0}) lean_ooo_way1;

    RegisterAction<small_t, ooo_slot_t, fate_t>(lean_ooo_way1) claim_ooo_way1 = {
        void apply(inout small_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > LEAN_WINDOW);
            if (v.signature == signature || now - v.time > LEAN_WINDOW) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    action claim() {
        fate = claim_ooo_way1.execute(slot_1);
        index = 1w1 ++ slot_1;
    }

    action keep() { index = 1w0 ++ slot_0; }

    table ways {
        key = {
            fate : exact;
        }
        actions = {
            claim;
            keep;
        }
        const entries = {
            FATE_OTHER: claim();
        }
        const default_action = keep();
        size = 2;
    }

    apply {
        ways.apply();
    }
}

/* Stage 3: the maximum and its time. A number below it within a short time is an event. A stateful ALU compares numbers, not differences modulo
 * 2^32, and its other comparison is the time's. So a number in the middle of the range is compared without its sign, and one
 * within a quarter of the wrap with it: numbers less than 2^30 apart are in order either way. */
control LeanOooMax(in fate_t fate, in copy_t copy, in ooo_index_t index, in bit<32> end, in bit<32> now, out found_t found) {
    Register<max_t, ooo_index_t>(LEAN_OOO_RECORDS, {0, 0}) lean_ooo_max;

    RegisterAction<max_t, ooo_index_t, found_t>(lean_ooo_max) follow_ooo_max = {
        void apply(inout max_t v, out found_t f) {
            f = this.predicate(end < v.max, now - v.time > LEAN_OOO_WINDOW);
            if (!(end < v.max)) {
                v.max = end;
                v.time = now;
            }
        }
    };

    RegisterAction<max_t, ooo_index_t, found_t>(lean_ooo_max) turn_ooo_max = {
        void apply(inout max_t v, out found_t f) {
            f = this.predicate((int<32>)end < (int<32>)v.max, now - v.time > LEAN_OOO_WINDOW);
            if (!((int<32>)end < (int<32>)v.max)) {
                v.max = end;
                v.time = now;
            }
        }
    };

    RegisterAction<max_t, ooo_index_t, found_t>(lean_ooo_max) start_ooo_max = {
        void apply(inout max_t v) {
            v.max = end;
            v.time = now;
        }
    };

    action follow() { found = follow_ooo_max.execute(index); }
    action turn() { found = turn_ooo_max.execute(index); }
    action start_over() {
        start_ooo_max.execute(index);
        found = 0;
    }

    action skip() { found = 0; }

    table maxima {
        key = {
            fate       : ternary;
            copy       : ternary;
            end[31:30] : ternary;
        }
        actions = {
            follow;
            turn;
            start_over;
            skip;
        }
        const entries = {
            (FATE_TAKEN, _, _): start_over();
            (_, COPY, _): skip();
            (FATE_OWN, _, 0): turn();
            (FATE_OWN, _, 3): turn();
            (FATE_OWN, _, _): follow();
            (FATE_OWN_OLD, _, 0): turn();
            (FATE_OWN_OLD, _, 3): turn();
            (FATE_OWN_OLD, _, _): follow();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        maxima.apply();
    }
}

#endif
