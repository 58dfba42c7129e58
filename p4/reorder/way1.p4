// SPDX-License-Identifier: Apache-2.0
/* Way 1: PRECISION's record of a large flow, with its prefix, its last number and its out-of-order packets. A first pass that finds
 * its flow counts; otherwise it reads the record's size. The start of a connection finds its flow without counting. A second pass replaces the record and reads its old content. */
#ifndef XDPMON_REORDER_WAY1_P4
#define XDPMON_REORDER_WAY1_P4

control ReorderId1(in role_t role, in bit<32> size_0, in way_index_t slot, in bit<32> signature, in bit<32> value, inout bit<32> found) {
    Register<sized_t, way_index_t>(REORDER_WAY, {0, 1}) reorder_id1;

    RegisterAction<sized_t, way_index_t, bit<32>>(reorder_id1) look_id1 = {
        void apply(inout sized_t v, out bit<32> other) {
            other = 0;
            if (v.signature == signature) {
                v.size = v.size + 1;
            } else {
                other = v.size;
            }
        }
    };

    RegisterAction<sized_t, way_index_t, bit<32>>(reorder_id1) find_id1 = {
        void apply(inout sized_t v, out bit<32> other) {
            other = 0;
            if (v.signature != signature) {
                other = v.size;
            }
        }
    };

    RegisterAction<sized_t, way_index_t, bit<32>>(reorder_id1) take_id1 = {
        void apply(inout sized_t v) {
            v.signature = signature;
            v.size = value;
        }
    };

    action look() { found = look_id1.execute(slot); }
    action find() { found = find_id1.execute(slot); }
    action take() { take_id1.execute(slot); }
    action skip() {}

    table ids {
        key = {
            role : ternary;
            size_0 : ternary;
        }
        actions = {
            look;
            find;
            take;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0): skip(); /* in way 0 */
            (ROLE_FIRST, _): look();
            (ROLE_BEGIN, 0): skip();
            (ROLE_BEGIN, _): find();
            (ROLE_TAKE_1, _): take();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        ids.apply();
    }
}

control ReorderPrefix1(in role_t role, in way_index_t slot, in bit<32> prefix, inout bit<32> held) {
    Register<prefix_t, way_index_t>(REORDER_WAY, {0, 0}) reorder_prefix1;

    RegisterAction<prefix_t, way_index_t, bit<32>>(reorder_prefix1) read_prefix1 = {
        void apply(inout prefix_t v, out bit<32> old) {
            old = v.prefix;
        }
    };

    RegisterAction<prefix_t, way_index_t, bit<32>>(reorder_prefix1) swap_prefix1 = {
        void apply(inout prefix_t v, out bit<32> old) {
            old = v.prefix;
            v.prefix = prefix;
        }
    };

    action read() { held = read_prefix1.execute(slot); }
    action swap() { held = swap_prefix1.execute(slot); }
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
            ROLE_TAKE_1: swap();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        prefixes.apply();
    }
}

control ReorderSeq1(in role_t role, in bit<1> begins, in bit<32> size_0, in bit<32> size_1, in way_index_t slot, in bit<32> first, in bit<32> next,
                    inout bit<32> o) {
    Register<number_t, way_index_t>(REORDER_WAY, {0, 0}) reorder_seq1;

    RegisterAction<number_t, way_index_t, bit<32>>(reorder_seq1) follow_seq1 = {
        void apply(inout number_t v) {
            FOLLOW(v)
        }
    };

    RegisterAction<number_t, way_index_t, bit<32>>(reorder_seq1) begin_seq1 = {
        void apply(inout number_t v) {
            v.number = NEXT;
        }
    };

    RegisterAction<number_t, way_index_t, bit<32>>(reorder_seq1) start_seq1 = {
        void apply(inout number_t v, out bit<32> old) {
            old = v.o;
            v.o = 0;
            v.number = NEXT;
        }
    };

    action follow() { follow_seq1.execute(slot); }
    action begin() { begin_seq1.execute(slot); }
    action start_over() { o = start_seq1.execute(slot); }
    action skip() {}

    table numbers {
        key = {
            role : ternary;
            begins : ternary;
            size_0 : ternary;
            size_1 : ternary;
        }
        actions = {
            follow;
            begin;
            start_over;
            skip;
        }
        const entries = {
            (ROLE_TAKE_1, _, _, _): start_over();
            (_, _, 0, _): skip();
            (ROLE_FIRST, 0, _, 0): follow();
            (ROLE_FIRST, 1, _, 0): begin();
            (ROLE_BEGIN, _, _, 0): begin();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        numbers.apply();
    }
}

control ReorderCount1(in role_t role, in bit<32> size_0, in bit<32> size_1, in way_index_t slot, in bit<32> tag, inout bit<32> n) {
    Register<bit<32>, way_index_t>(REORDER_WAY, 0) reorder_count1;

    RegisterAction<bit<32>, way_index_t, bit<32>>(reorder_count1) add_count1 = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = v + 1;
        }
    };

    RegisterAction<bit<32>, way_index_t, bit<32>>(reorder_count1) start_count1 = {
        void apply(inout bit<32> v, out bit<32> old) {
            old = v;
            v = tag;
        }
    };

    action follow() { n = add_count1.execute(slot); }
    action start_over() { n = start_count1.execute(slot); }
    action skip() {}

    table counts {
        key = {
            role : ternary;
            size_0 : ternary;
            size_1 : ternary;
        }
        actions = {
            follow;
            start_over;
            skip;
        }
        const entries = {
            (ROLE_FIRST, 0, _): skip();
            (ROLE_FIRST, _, 0): follow();
            (ROLE_TAKE_1, _, _): start_over();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        counts.apply();
    }
}

#endif
