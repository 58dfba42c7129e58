// SPDX-License-Identifier: Apache-2.0
/* Retransmissions: two ways of flows with many packets, and what each had sent 3 ms ago (bpf/lean/retrans.h). */
#ifndef XDPMON_LEAN_RETRANS_P4
#define XDPMON_LEAN_RETRANS_P4

/* Stage 0: way 0. A record may be replaced after a second of silence if its coin allows, otherwise after four. */
control LeanRetWay0(in bit<1> data, in bit<4> luck, in ret_slot0_t slot, in bit<32> signature, in bit<32> now, out fate_t fate) {
    Register<large_t, ret_slot0_t>(LEAN_RET_WAY0, {0, 0}) lean_ret_way0;

    RegisterAction<large_t, ret_slot0_t, fate_t>(lean_ret_way0) lucky_ret_way0 = {
        void apply(inout large_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > LEAN_KEEP);
            if (v.signature == signature || now - v.time > LEAN_KEEP) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    RegisterAction<large_t, ret_slot0_t, fate_t>(lean_ret_way0) claim_ret_way0 = {
        void apply(inout large_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > LEAN_FREE);
            if (v.signature == signature || now - v.time > LEAN_FREE) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    action lucky() { fate = lucky_ret_way0.execute(slot); }
    action claim() { fate = claim_ret_way0.execute(slot); }
    action skip() { fate = FATE_NONE; }

    table ways {
        key = {
            data : ternary;
            luck : ternary;
        }
        actions = {
            lucky;
            claim;
            skip;
        }
        const entries = {
            (1, 0): lucky();
            (1, _): claim();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        ways.apply();
    }
}

/* Stage 1: way 1, for flows without a record in way 0; and where the record is. */
control LeanRetWay1(in bit<4> luck, in ret_slot0_t slot_0, in ret_slot1_t slot_1, in bit<32> signature, in bit<32> now,
                    inout fate_t fate, out ret_index_t index) {
    Register<large_t, ret_slot1_t>(LEAN_RET_WAY1, {0, 0}) lean_ret_way1;

    RegisterAction<large_t, ret_slot1_t, fate_t>(lean_ret_way1) lucky_ret_way1 = {
        void apply(inout large_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > LEAN_KEEP);
            if (v.signature == signature || now - v.time > LEAN_KEEP) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    RegisterAction<large_t, ret_slot1_t, fate_t>(lean_ret_way1) claim_ret_way1 = {
        void apply(inout large_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > LEAN_FREE);
            if (v.signature == signature || now - v.time > LEAN_FREE) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    action lucky() {
        fate = lucky_ret_way1.execute(slot_1);
        index = 2w2 ++ slot_1;
    }

    action claim() {
        fate = claim_ret_way1.execute(slot_1);
        index = 2w2 ++ slot_1;
    }

    action keep() { index = 1w0 ++ slot_0; }

    table ways {
        key = {
            fate : ternary;
            luck : ternary;
        }
        actions = {
            lucky;
            claim;
            keep;
        }
        const entries = {
            (FATE_OTHER, 0): lucky();
            (FATE_OTHER, _): claim();
        }
        const default_action = keep();
        size = 2;
    }

    apply {
        ways.apply();
    }
}

/* Stage 2: T, the last rotation. */
control LeanRetTime(in fate_t fate, in ret_index_t index, in bit<16> now, out turn_t turn) {
    Register<bit<16>, ret_index_t>(LEAN_RET_RECORDS, 0) lean_ret_time;

    RegisterAction<bit<16>, ret_index_t, turn_t>(lean_ret_time) turn_ret_time = {
        void apply(inout bit<16> v, out turn_t t) {
            t = this.predicate(now - v > LEAN_WINDOW, now - v > LEAN_TWO_WINDOWS);
            if (now - v > LEAN_WINDOW) {
                v = now;
            }
        }
    };

    RegisterAction<bit<16>, ret_index_t, turn_t>(lean_ret_time) start_ret_time = {
        void apply(inout bit<16> v) {
            v = now;
        }
    };

    action rotate() { turn = turn_ret_time.execute(index); }
    action start_over() {
        start_ret_time.execute(index);
        turn = 0;
    }

    action skip() { turn = 0; }

    table times {
        key = {
            fate : exact;
        }
        actions = {
            rotate;
            start_over;
            skip;
        }
        const entries = {
            FATE_OWN: rotate();
            FATE_OWN_OLD: rotate();
            FATE_TAKEN: start_over();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        times.apply();
    }
}

/* Stage 2: M, the maximum; its old value. */
control LeanRetMax(in fate_t fate, in ret_index_t index, in bit<32> end, out bit<32> max) {
    Register<bit<32>, ret_index_t>(LEAN_RET_RECORDS, 0) lean_ret_max;

    RegisterAction<bit<32>, ret_index_t, bit<32>>(lean_ret_max) follow_ret_max = {
        void apply(inout bit<32> v, out bit<32> before) {
            before = v;
            if (end >= v || v - end >= LEAN_FAR) {
                v = end;
            }
        }
    };

    RegisterAction<bit<32>, ret_index_t, bit<32>>(lean_ret_max) start_ret_max = {
        void apply(inout bit<32> v) {
            v = end;
        }
    };

    action follow() { max = follow_ret_max.execute(index); }
    action start_over() {
        start_ret_max.execute(index);
        max = 0;
    }

    action skip() { max = 0; }

    table maxima {
        key = {
            fate : exact;
        }
        actions = {
            follow;
            start_over;
            skip;
        }
        const entries = {
            FATE_OWN: follow();
            FATE_OWN_OLD: follow();
            FATE_TAKEN: start_over();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        maxima.apply();
    }
}

/* Stage 3: C and P. What starts below C is an event, unless it is a copy or a probe of one byte. If all is old C is M,
 * and the rows' tables judge how far below it the packet starts. */
control LeanRetCuts(in fate_t fate, in turn_t turn, in copy_t copy, in kind_t kind, in ret_index_t index, in bit<32> start_at,
                    in bit<32> max, out found_t found, out bit<32> below) {
    Register<cuts_t, ret_index_t>(LEAN_RET_RECORDS, {0, 0}) lean_ret_cuts;

    RegisterAction<cuts_t, ret_index_t, found_t>(lean_ret_cuts) read_ret_cuts = {
        void apply(inout cuts_t v, out found_t f) {
            f = this.predicate(start_at < v.cut, v.cut - start_at >= LEAN_FAR);
        }
    };

    RegisterAction<cuts_t, ret_index_t, found_t>(lean_ret_cuts) one_ret_cuts = {
        void apply(inout cuts_t v, out found_t f) {
            f = this.predicate(start_at < v.pending, v.pending - start_at >= LEAN_FAR);
            v.cut = v.pending;
            v.pending = max;
        }
    };

    RegisterAction<cuts_t, ret_index_t, found_t>(lean_ret_cuts) all_ret_cuts = {
        void apply(inout cuts_t v) {
            v.cut = max;
            v.pending = max;
        }
    };

    RegisterAction<cuts_t, ret_index_t, found_t>(lean_ret_cuts) start_ret_cuts = {
        void apply(inout cuts_t v) {
            v.cut = start_at + LEAN_FRESH;
            v.pending = start_at + LEAN_FRESH;
        }
    };

    action read() {
        found = read_ret_cuts.execute(index);
        below = 0;
    }

    action one() {
        found = one_ret_cuts.execute(index);
        below = 0;
    }

    action all() {
        all_ret_cuts.execute(index);
        found = 0;
        below = max - start_at;
    }

    action one_silently() {
        one_ret_cuts.execute(index);
        found = 0;
        below = 0;
    }

    action all_silently() {
        all_ret_cuts.execute(index);
        found = 0;
        below = 0;
    }

    action start_over() {
        start_ret_cuts.execute(index);
        found = 0;
        below = 0;
    }

    action skip() {
        found = 0;
        below = 0;
    }

    table cuts {
        key = {
            fate : ternary;
            turn : ternary;
            copy : ternary;
            kind : ternary;
        }
        actions = {
            read;
            one;
            all;
            one_silently;
            all_silently;
            start_over;
            skip;
        }
        const entries = {
            (FATE_TAKEN, _, _, _): start_over();
            (_, TURN_ONE, COPY, _): one_silently();
            (_, TURN_ONE, _, KIND_PROBE): one_silently();
            (_, TURN_ONE, _, _): one();
            (_, TURN_ALL, COPY, _): all_silently();
            (_, TURN_ALL, _, KIND_PROBE): all_silently();
            (_, TURN_ALL, _, _): all();
            (_, TURN_NONE, COPY, _): skip();
            (_, TURN_NONE, _, KIND_PROBE): skip();
            (_, TURN_NONE, _, _): read();
        }
        const default_action = skip();
        size = 16;
    }

    apply {
        cuts.apply();
    }
}

#endif
