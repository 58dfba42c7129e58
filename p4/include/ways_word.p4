// SPDX-License-Identifier: Apache-2.0
/* One word of a key in one way, included by ways.p4 for each: WORD is its name, CONTROL that of its control, and TAKE the role of a
 * packet that writes it. */
control WAYS_CONTROL_NAME(CONTROL)(in role_t role, in half_slot_t slot, in bit<32> high, in bit<32> low, out bit<8> found)(bit<32> slots) {
    Register<word_t, half_slot_t>(slots, {0, 0}) WAYS_NAME(WORD);

    RegisterAction<word_t, half_slot_t, bit<8>>(WAYS_NAME(WORD)) compare_word = {
        void apply(inout word_t v, out bit<8> same) {
            same = this.predicate(v.high == high, v.low == low);
        }
    };

    RegisterAction<word_t, half_slot_t, bit<8>>(WAYS_NAME(WORD)) write_word = {
        void apply(inout word_t v) {
            v.high = high;
            v.low = low;
        }
    };

    action compare() { found = compare_word.execute(slot); }
    action write() { write_word.execute(slot); }
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
            TAKE: write();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        found = 0;
        words.apply();
    }
}
