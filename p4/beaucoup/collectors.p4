// SPDX-License-Identifier: Apache-2.0
/* The three registers of a collector (section 4.4.2). */
#ifndef XDPMON_BEAUCOUP_COLLECTORS_P4
#define XDPMON_BEAUCOUP_COLLECTORS_P4

/* Stage 1: the end of its window. fresh is 1 if the window was over, and restarts. */
control BeaucoupEnds(in beaucoup_slot_t slot, in bit<32> now, in bit<32> end, out bit<8> fresh) {
    Register<bit<32>, beaucoup_slot_t>(BEAUCOUP_ENTRIES, 0) beaucoup_ends;

    RegisterAction<bit<32>, beaucoup_slot_t, bit<8>>(beaucoup_ends) begin = {
        void apply(inout bit<32> v, out bit<8> f) {
            f = 0;
            if (v < now || v - now > BEAUCOUP_HORIZON) {
                v = end;
                f = 1;
            }
        }
    };

    apply {
        fresh = begin.execute(slot);
    }
}

/* Stage 2: its key. own is 1 if it belongs to this one. */
control BeaucoupKeys(in beaucoup_slot_t slot, in bit<32> check, in bit<8> fresh, out bit<8> own) {
    Register<bit<32>, beaucoup_slot_t>(BEAUCOUP_ENTRIES, 0) beaucoup_keys;

    RegisterAction<bit<32>, beaucoup_slot_t, bit<8>>(beaucoup_keys) compare_keys = {
        void apply(inout bit<32> v, out bit<8> same) {
            same = 0;
            if (v == check) {
                same = 1;
            }
        }
    };

    RegisterAction<bit<32>, beaucoup_slot_t, bit<8>>(beaucoup_keys) write_keys = {
        void apply(inout bit<32> v, out bit<8> same) {
            v = check;
            same = 1;
        }
    };

    action compare() { own = compare_keys.execute(slot); }
    action write() { own = write_keys.execute(slot); }

    table owner {
        key = {
            fresh : exact;
        }
        actions = {
            compare;
            write;
        }
        const entries = {
            0: compare();
            1: write();
        }
        size = 2;
    }

    apply {
        own = 0;
        owner.apply();
    }
}

/* Stage 3: its coupons, before this one. */
control BeaucoupVectors(in beaucoup_slot_t slot, in bit<32> onehot, in bit<8> fresh, in bit<8> own, out bit<32> old) {
    Register<bit<32>, beaucoup_slot_t>(BEAUCOUP_ENTRIES, 0) beaucoup_vectors;

    RegisterAction<bit<32>, beaucoup_slot_t, bit<32>>(beaucoup_vectors) add_vectors = {
        void apply(inout bit<32> v, out bit<32> before) {
            before = v;
            v = v | onehot;
        }
    };

    RegisterAction<bit<32>, beaucoup_slot_t, bit<32>>(beaucoup_vectors) start_vectors = {
        void apply(inout bit<32> v) {
            v = onehot;
        }
    };

    action add() { old = add_vectors.execute(slot); }
    action start() { start_vectors.execute(slot); }
    action skip() {}

    table vectors {
        key = {
            fresh : exact;
            own   : exact;
        }
        actions = {
            add;
            start;
            skip;
        }
        const entries = {
            (0, 1): add();
            (1, 1): start();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        old = 0;
        vectors.apply();
    }
}

#endif
