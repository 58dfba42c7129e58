// SPDX-License-Identifier: Apache-2.0
/* The array: buckets that observe one flow after the other. */
#ifndef XDPMON_REORDER_ARRAY_P4
#define XDPMON_REORDER_ARRAY_P4

control ReorderIdArray(in role_t role, in bit<8> closed, in array_index_t slot, in bit<32> signature, in bit<32> now,
                       inout fate_t fate) {
    Register<timed_t, array_index_t>(REORDER_ARRAY, {0, 0}) reorder_id_array;

    RegisterAction<timed_t, array_index_t, fate_t>(reorder_id_array) enter_array = {
        void apply(inout timed_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > REORDER_STALE);
            if (v.signature == signature || now - v.time > REORDER_STALE) {
                v.signature = signature;
                v.time = now;
            }
        }
    };

    RegisterAction<timed_t, array_index_t, fate_t>(reorder_id_array) renew_array = {
        void apply(inout timed_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > REORDER_STALE);
            if (v.signature == signature) {
                v.time = now;
            }
        }
    };

    RegisterAction<timed_t, array_index_t, fate_t>(reorder_id_array) seize_array = {
        void apply(inout timed_t v) {
            v.signature = signature;
            v.time = now;
        }
    };

    RegisterAction<timed_t, array_index_t, fate_t>(reorder_id_array) leave_array = {
        void apply(inout timed_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, now - v.time > REORDER_STALE);
            if (v.signature == signature) {
                v.signature = 0;
                v.time = 0;
            }
        }
    };

    action enter() { fate = enter_array.execute(slot); }
    action renew() { fate = renew_array.execute(slot); }
    action leave() { fate = leave_array.execute(slot); }

    action seize() {
        seize_array.execute(slot);
        fate = FATE_SEIZED;
    }

    action skip() {}

    table ids {
        key = {
            role   : exact;
            closed : exact;
        }
        actions = {
            enter;
            renew;
            leave;
            seize;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0): enter();
            (ROLE_FIRST, 1): renew();
            (ROLE_BEGIN, 0): renew();
            (ROLE_TAKE_0, 0): leave();
            (ROLE_TAKE_1, 0): leave();
            (ROLE_SEIZE, 0): seize();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        ids.apply();
    }
}

control ReorderPrefixArray(in role_t role, in bit<8> closed, in fate_t fate, in array_index_t slot, in bit<32> prefix,
                           inout bit<32> held) {
    Register<prefix_t, array_index_t>(REORDER_ARRAY, {0, 0}) reorder_prefix_array;

    RegisterAction<prefix_t, array_index_t, bit<32>>(reorder_prefix_array) swap_prefix_array = {
        void apply(inout prefix_t v, out bit<32> old) {
            old = v.prefix;
            v.prefix = prefix;
        }
    };

    RegisterAction<prefix_t, array_index_t, bit<32>>(reorder_prefix_array) read_prefix_array = {
        void apply(inout prefix_t v, out bit<32> old) {
            old = v.prefix;
        }
    };

    action swap() { held = swap_prefix_array.execute(slot); }
    action read() { held = read_prefix_array.execute(slot); }
    action skip() {}

    table prefixes {
        key = {
            role   : exact;
            closed : exact;
            fate   : exact;
        }
        actions = {
            swap;
            read;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0, FATE_STALE): swap();
            (ROLE_SEIZE, 0, FATE_SEIZED): swap();
            (ROLE_TAKE_0, 0, FATE_OWN): read();
            (ROLE_TAKE_0, 0, FATE_OWN_STALE): read();
            (ROLE_TAKE_1, 0, FATE_OWN): read();
            (ROLE_TAKE_1, 0, FATE_OWN_STALE): read();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        prefixes.apply();
    }
}

control ReorderSeqArray(in role_t role, in bit<1> begins, in bit<8> closed, in fate_t fate, in array_index_t slot, in bit<32> first,
                        in bit<32> next, inout bit<32> o) {
    Register<number_t, array_index_t>(REORDER_ARRAY, {0, 0}) reorder_seq_array;

    RegisterAction<number_t, array_index_t, bit<32>>(reorder_seq_array) follow_seq_array = {
        void apply(inout number_t v) {
            FOLLOW(v)
        }
    };

    RegisterAction<number_t, array_index_t, bit<32>>(reorder_seq_array) begin_seq_array = {
        void apply(inout number_t v) {
            v.number = NEXT;
        }
    };

    RegisterAction<number_t, array_index_t, bit<32>>(reorder_seq_array) start_seq_array = {
        void apply(inout number_t v, out bit<32> old) {
            old = v.o;
            v.o = 0;
            v.number = NEXT;
        }
    };

    RegisterAction<number_t, array_index_t, bit<32>>(reorder_seq_array) read_seq_array = {
        void apply(inout number_t v, out bit<32> old) {
            old = v.o;
        }
    };

    action follow() { follow_seq_array.execute(slot); }
    action begin() { begin_seq_array.execute(slot); }
    action start_over() { o = start_seq_array.execute(slot); }
    action read() { o = read_seq_array.execute(slot); }
    action skip() {}

    table numbers {
        key = {
            role   : ternary;
            begins : ternary;
            closed : ternary;
            fate   : ternary;
        }
        actions = {
            follow;
            begin;
            start_over;
            read;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0, _, FATE_OWN): follow();
            (ROLE_FIRST, 0, _, FATE_OWN_STALE): follow();
            (ROLE_FIRST, 1, _, FATE_OWN): begin();
            (ROLE_FIRST, 1, _, FATE_OWN_STALE): begin();
            (ROLE_BEGIN, _, _, FATE_OWN): begin();
            (ROLE_BEGIN, _, _, FATE_OWN_STALE): begin();
            (ROLE_FIRST, _, 0, FATE_STALE): start_over();
            (ROLE_FIRST, _, 0, FATE_REFUSED): read();
            (ROLE_SEIZE, _, _, _): start_over();
            (ROLE_TAKE, _, _, FATE_OWN): read();
            (ROLE_TAKE, _, _, FATE_OWN_STALE): read();
        }
        const default_action = skip();
        size = 16;
    }

    apply {
        numbers.apply();
    }
}

control ReorderCountArray(in role_t role, in bit<8> closed, in fate_t fate, in array_index_t slot, in bit<32> tag, inout bit<32> n) {
    Register<bit<32>, array_index_t>(REORDER_ARRAY, 0) reorder_count_array;

    RegisterAction<bit<32>, array_index_t, bit<32>>(reorder_count_array) add_count_array = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = v + 1;
        }
    };

    RegisterAction<bit<32>, array_index_t, bit<32>>(reorder_count_array) start_count_array = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = tag;
        }
    };

    RegisterAction<bit<32>, array_index_t, bit<32>>(reorder_count_array) read_count_array = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
        }
    };

    RegisterAction<bit<32>, array_index_t, bit<32>>(reorder_count_array) leave_count_array = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = 0;
        }
    };

    action follow() { n = add_count_array.execute(slot); }
    action start_over() { n = start_count_array.execute(slot); }
    action read() { n = read_count_array.execute(slot); }
    action leave() { n = leave_count_array.execute(slot); }
    action skip() {}

    table counts {
        key = {
            role   : ternary;
            closed : ternary;
            fate   : ternary;
        }
        actions = {
            follow;
            start_over;
            read;
            leave;
            skip;
        }
        const entries = {
            (ROLE_FIRST, _, FATE_OWN): follow();
            (ROLE_FIRST, _, FATE_OWN_STALE): follow();
            (ROLE_FIRST, 0, FATE_STALE): start_over();
            (ROLE_FIRST, 0, FATE_REFUSED): read();
            (ROLE_SEIZE, _, _): start_over();
            (ROLE_TAKE, _, FATE_OWN): leave();
            (ROLE_TAKE, _, FATE_OWN_STALE): leave();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        counts.apply();
    }
}

#endif
