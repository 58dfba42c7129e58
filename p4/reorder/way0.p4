// SPDX-License-Identifier: Apache-2.0
/* Way 0: PRECISION's record of a large flow, with its prefix, its last number and its out-of-order packets. A first pass that finds
 * its flow counts; otherwise it reads the record's size. The start of a connection finds its flow without counting. A second pass replaces the record and reads its old content. */
#ifndef XDPMON_REORDER_WAY0_P4
#define XDPMON_REORDER_WAY0_P4

control ReorderId0(in role_t role, in way_index_t slot, in bit<32> signature, in bit<32> value, inout bit<32> found) {
    Register<sized_t, way_index_t>(REORDER_WAY, {0, 1}) reorder_id0;

    RegisterAction<sized_t, way_index_t, bit<32>>(reorder_id0) look_id0 = {
        void apply(inout sized_t v, out bit<32> other) {
            other = 0;
            if (v.signature == signature) {
                v.size = v.size + 1;
            } else {
                other = v.size;
            }
        }
    };

    RegisterAction<sized_t, way_index_t, bit<32>>(reorder_id0) find_id0 = {
        void apply(inout sized_t v, out bit<32> other) {
            other = 0;
            if (v.signature != signature) {
                other = v.size;
            }
        }
    };

    RegisterAction<sized_t, way_index_t, bit<32>>(reorder_id0) take_id0 = {
        void apply(inout sized_t v) {
            v.signature = signature;
            v.size = value;
        }
    };

    action look() { found = look_id0.execute(slot); }
    action find() { found = find_id0.execute(slot); }
    action take() { take_id0.execute(slot); }
    action skip() {}

    table ids {
        key = {
            role : exact;
        }
        actions = {
            look;
            find;
            take;
            skip;
        }
        const entries = {
            ROLE_FIRST: look();
            ROLE_BEGIN: find();
            ROLE_TAKE_0: take();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        ids.apply();
    }
}

control ReorderPrefix0(in role_t role, in way_index_t slot, in bit<32> prefix, inout bit<32> held) {
    Register<prefix_t, way_index_t>(REORDER_WAY, {0, 0}) reorder_prefix0;

    RegisterAction<prefix_t, way_index_t, bit<32>>(reorder_prefix0) read_prefix0 = {
        void apply(inout prefix_t v, out bit<32> old) {
            old = v.prefix;
        }
    };

    RegisterAction<prefix_t, way_index_t, bit<32>>(reorder_prefix0) swap_prefix0 = {
        void apply(inout prefix_t v, out bit<32> old) {
            old = v.prefix;
            v.prefix = prefix;
        }
    };

    action read() { held = read_prefix0.execute(slot); }
    action swap() { held = swap_prefix0.execute(slot); }
    action skip() {}

    table prefixes {
        key = {
            role : exact;
        }
        actions = {
            read;
            swap;
            skip;
        }
        const entries = {
            ROLE_FIRST: read();
            ROLE_TAKE_0: swap();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        prefixes.apply();
    }
}

control ReorderSeq0(in role_t role, in bit<1> begins, in bit<32> size_0, in way_index_t slot, in bit<32> first, in bit<32> next,
                    inout bit<32> o) {
    Register<number_t, way_index_t>(REORDER_WAY, {0, 0}) reorder_seq0;

    RegisterAction<number_t, way_index_t, bit<32>>(reorder_seq0) follow_seq0 = {
        void apply(inout number_t v) {
            FOLLOW(v)
        }
    };

    RegisterAction<number_t, way_index_t, bit<32>>(reorder_seq0) begin_seq0 = {
        void apply(inout number_t v) {
            v.number = NEXT;
        }
    };

    RegisterAction<number_t, way_index_t, bit<32>>(reorder_seq0) start_seq0 = {
        void apply(inout number_t v, out bit<32> old) {
            old = v.o;
            v.o = 0;
            v.number = NEXT;
        }
    };

    action follow() { follow_seq0.execute(slot); }
    action begin() { begin_seq0.execute(slot); }
    action start_over() { o = start_seq0.execute(slot); }
    action skip() {}

    table numbers {
        key = {
            role : ternary;
            begins : ternary;
            size_0 : ternary;
        }
        actions = {
            follow;
            begin;
            start_over;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0, 0): follow();
            (ROLE_FIRST, 1, 0): begin();
            (ROLE_BEGIN, _, 0): begin();
            (ROLE_TAKE_0, _, _): start_over();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        numbers.apply();
    }
}

control ReorderCount0(in role_t role, in bit<32> size_0, in way_index_t slot, in bit<32> tag, inout bit<32> n) {
    Register<bit<32>, way_index_t>(REORDER_WAY, 0) reorder_count0;

    RegisterAction<bit<32>, way_index_t, bit<32>>(reorder_count0) add_count0 = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = v + 1;
        }
    };

    RegisterAction<bit<32>, way_index_t, bit<32>>(reorder_count0) start_count0 = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = tag;
        }
    };

    action follow() { n = add_count0.execute(slot); }
    action start_over() { n = start_count0.execute(slot); }
    action skip() {}

    table counts {
        key = {
            role : ternary;
            size_0 : ternary;
        }
        actions = {
            follow;
            start_over;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0): follow();
            (ROLE_TAKE_0, _): start_over();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        counts.apply();
    }
}

#endif
