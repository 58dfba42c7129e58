// SPDX-License-Identifier: Apache-2.0
/* Stages 6 and 8: the counters, values minus the initial one. A way that holds the key counts the packet, the others are read;
 * they saturate. */
#ifndef XDPMON_PRECISION_COUNTERS_P4
#define XDPMON_PRECISION_COUNTERS_P4

control PrecisionC0(in role_t role, in bit<8> a0, in bit<8> b0, in bank_slot_t slot,
                   in bit<32> value, out bit<32> count, inout bit<8> matched) {
    Register<bit<32>, bank_slot_t>(PRECISION_ENTRIES, 0) precision_c0;

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(precision_c0) add_c0 = {
        void apply(inout bit<32> v, out bit<32> n) {
            v = v |+| 1;
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(precision_c0) read_c0 = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(precision_c0) write_c0 = {
        void apply(inout bit<32> v) {
            v = value;
        }
    };

    action grow() {
        count = add_c0.execute(slot);
        matched = 1;
    }

    action look() { count = read_c0.execute(slot); }
    action take() { write_c0.execute(slot); }
    action skip() {}

    table counters {
        key = {
            role : ternary;
            a0 : ternary;
            b0 : ternary;
        }
        actions = {
            grow;
            look;
            take;
            skip;
        }
        const entries = {
            (ROLE_LOOK, SAME, SAME): grow();
            (ROLE_LOOK, _, _): look();
            (ROLE_TAKE_0, _, _): take();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        count = 0;
        counters.apply();
    }
}

control PrecisionC1(in role_t role, in bit<8> a0, in bit<8> b0, in bit<8> a1, in bit<8> b1, in bank_slot_t slot,
                   in bit<32> value, out bit<32> count, inout bit<8> matched) {
    Register<bit<32>, bank_slot_t>(PRECISION_ENTRIES, 0) precision_c1;

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(precision_c1) add_c1 = {
        void apply(inout bit<32> v, out bit<32> n) {
            v = v |+| 1;
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(precision_c1) read_c1 = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(precision_c1) write_c1 = {
        void apply(inout bit<32> v) {
            v = value;
        }
    };

    action grow() {
        count = add_c1.execute(slot);
        matched = 1;
    }

    action look() { count = read_c1.execute(slot); }
    action take() { write_c1.execute(slot); }
    action skip() {}

    table counters {
        key = {
            role : ternary;
            a0 : ternary;
            b0 : ternary;
            a1 : ternary;
            b1 : ternary;
        }
        actions = {
            grow;
            look;
            take;
            skip;
        }
        const entries = {
            (ROLE_LOOK, SAME, SAME, _, _): skip();
            (ROLE_LOOK, _, _, SAME, SAME): grow();
            (ROLE_LOOK, _, _, _, _): look();
            (ROLE_TAKE_1, _, _, _, _): take();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        count = 0;
        counters.apply();
    }
}

#endif
