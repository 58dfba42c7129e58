// SPDX-License-Identifier: Apache-2.0
/* Stages 1 to 4: the words of the keys. A first pass compares, a second pass writes the way that it was sent for. On Tofino
 * 2, whose memories a register of both banks does not fit into, there is one register a bank. */
#ifndef XDPMON_PRECISION_WORDS_P4
#define XDPMON_PRECISION_WORDS_P4

struct word_t {
    bit<32> high;
    bit<32> low;
}

/* Both comparisons of a word held: the last of four one-hot outcomes. */
const bit<8> SAME = 8;

control PrecisionK00(in role_t role, in half_slot_t slot, in bit<32> high, in bit<32> low, out bit<8> found)(bit<32> slots) {
    Register<word_t, half_slot_t>(slots, {0, 0}) precision_k00;

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k00) compare_k00 = {
        void apply(inout word_t v, out bit<8> same) {
            same = this.predicate(v.high == high, v.low == low);
        }
    };

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k00) write_k00 = {
        void apply(inout word_t v) {
            v.high = high;
            v.low = low;
        }
    };

    action compare() { found = compare_k00.execute(slot); }
    action write() { write_k00.execute(slot); }
    action skip() {}

    table words {
        key = {
            role : exact;
        }
        actions = {
            compare;
            write;
            skip;
        }
        const entries = {
            ROLE_LOOK: compare();
            ROLE_TAKE_0: write();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        found = 0;
        words.apply();
    }
}

control PrecisionK01(in role_t role, in half_slot_t slot, in bit<32> high, in bit<32> low, out bit<8> found)(bit<32> slots) {
    Register<word_t, half_slot_t>(slots, {0, 0}) precision_k01;

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k01) compare_k01 = {
        void apply(inout word_t v, out bit<8> same) {
            same = this.predicate(v.high == high, v.low == low);
        }
    };

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k01) write_k01 = {
        void apply(inout word_t v) {
            v.high = high;
            v.low = low;
        }
    };

    action compare() { found = compare_k01.execute(slot); }
    action write() { write_k01.execute(slot); }
    action skip() {}

    table words {
        key = {
            role : exact;
        }
        actions = {
            compare;
            write;
            skip;
        }
        const entries = {
            ROLE_LOOK: compare();
            ROLE_TAKE_0: write();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        found = 0;
        words.apply();
    }
}

control PrecisionK10(in role_t role, in half_slot_t slot, in bit<32> high, in bit<32> low, out bit<8> found)(bit<32> slots) {
    Register<word_t, half_slot_t>(slots, {0, 0}) precision_k10;

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k10) compare_k10 = {
        void apply(inout word_t v, out bit<8> same) {
            same = this.predicate(v.high == high, v.low == low);
        }
    };

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k10) write_k10 = {
        void apply(inout word_t v) {
            v.high = high;
            v.low = low;
        }
    };

    action compare() { found = compare_k10.execute(slot); }
    action write() { write_k10.execute(slot); }
    action skip() {}

    table words {
        key = {
            role : exact;
        }
        actions = {
            compare;
            write;
            skip;
        }
        const entries = {
            ROLE_LOOK: compare();
            ROLE_TAKE_1: write();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        found = 0;
        words.apply();
    }
}

control PrecisionK11(in role_t role, in half_slot_t slot, in bit<32> high, in bit<32> low, out bit<8> found)(bit<32> slots) {
    Register<word_t, half_slot_t>(slots, {0, 0}) precision_k11;

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k11) compare_k11 = {
        void apply(inout word_t v, out bit<8> same) {
            same = this.predicate(v.high == high, v.low == low);
        }
    };

    RegisterAction<word_t, half_slot_t, bit<8>>(precision_k11) write_k11 = {
        void apply(inout word_t v) {
            v.high = high;
            v.low = low;
        }
    };

    action compare() { found = compare_k11.execute(slot); }
    action write() { write_k11.execute(slot); }
    action skip() {}

    table words {
        key = {
            role : exact;
        }
        actions = {
            compare;
            write;
            skip;
        }
        const entries = {
            ROLE_LOOK: compare();
            ROLE_TAKE_1: write();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        found = 0;
        words.apply();
    }
}

#endif
