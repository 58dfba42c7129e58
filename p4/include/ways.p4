// SPDX-License-Identifier: Apache-2.0
/* PRECISION's two ways, as used by p4/precision and p4/hhh: words of the keys, counters, and the outcome of packets. A first
 * pass compares, a second pass writes the way that was chosen. On Tofino 2, whose memories are too small for a register of both banks,
 * there is one register of words per bank. Before a program includes this, it defines the names of its registers and their
 * controls, and the number of entries of a way in both banks:
 *
 *   #define WAYS(what) precision_##what
 *   #define WAYS_CONTROL(what) Precision##what
 *   #define WAYS_ENTRIES PRECISION_ENTRIES
 *   #define WAYS_WORDS 2, of a key: 1 or 2 */
#ifndef XDPMON_WAYS_P4
#define XDPMON_WAYS_P4

#define WAYS_BANK (WAYS_ENTRIES / 2)
/* The same for names that are macros. */
#define WAYS_NAME(what) WAYS(what)
#define WAYS_CONTROL_NAME(what) WAYS_CONTROL(what)

typedef bit<8> role_t;
const role_t ROLE_NONE = 0;   /* no such key */
const role_t ROLE_LOOK = 1;   /* first pass */
const role_t ROLE_TAKE_0 = 2; /* second pass, to way 0 */
const role_t ROLE_TAKE_1 = 3;

/* Index of a word: with its bank as the high bit, except on Tofino 2. */
#if __TARGET_TOFINO__ == 2
typedef way_slot_t half_slot_t;
#else
typedef bank_slot_t half_slot_t;
#endif

struct word_t {
    bit<32> high;
    bit<32> low;
}

/* Both comparisons of a word were equal: the last of four one-hot outcomes. */
const bit<8> SAME = 8;

/* The results of the words of a key, as parameters and arguments, and as keys of tables. */
#if WAYS_WORDS == 2
#define WAYS_ASKED(a, b) in bit<8> a, in bit<8> b
#define WAYS_FOUND(a, b) a, b
#define WAYS_SAME SAME, SAME
#define WAYS_ANY _, _
#else
#define WAYS_ASKED(a, b) in bit<8> a
#define WAYS_FOUND(a, b) a
#define WAYS_SAME SAME
#define WAYS_ANY _
#endif

/* Stages 1 to 4: the words of the keys. */
#define WORD k00
#define CONTROL K00
#define TAKE ROLE_TAKE_0
#include "ways_word.p4"
#undef TAKE
#undef CONTROL
#undef WORD

#if WAYS_WORDS == 2
#define WORD k01
#define CONTROL K01
#define TAKE ROLE_TAKE_0
#include "ways_word.p4"
#undef TAKE
#undef CONTROL
#undef WORD
#endif

#define WORD k10
#define CONTROL K10
#define TAKE ROLE_TAKE_1
#include "ways_word.p4"
#undef TAKE
#undef CONTROL
#undef WORD

#if WAYS_WORDS == 2
#define WORD k11
#define CONTROL K11
#define TAKE ROLE_TAKE_1
#include "ways_word.p4"
#undef TAKE
#undef CONTROL
#undef WORD
#endif

/* Stages 6 and 8: the counters, values minus the initial one. A way with the key counts the packet, the others are read;
 * they saturate. */
control WAYS_CONTROL(C0)(in role_t role, WAYS_ASKED(a0, b0), in bank_slot_t slot,
                   in bit<32> value, out bit<32> count, inout bit<8> matched) {
    Register<bit<32>, bank_slot_t>(WAYS_ENTRIES, 0) WAYS(c0);

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(WAYS(c0)) add_c0 = {
        void apply(inout bit<32> v, out bit<32> n) {
            v = v |+| 1;
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(WAYS(c0)) read_c0 = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(WAYS(c0)) write_c0 = {
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
#if WAYS_WORDS == 2
            b0 : ternary;
#endif
        }
        actions = {
            grow;
            look;
            take;
            skip;
        }
        const entries = {
            (ROLE_LOOK, WAYS_SAME): grow();
            (ROLE_LOOK, WAYS_ANY): look();
            (ROLE_TAKE_0, WAYS_ANY): take();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        count = 0;
        counters.apply();
    }
}

control WAYS_CONTROL(C1)(in role_t role, WAYS_ASKED(a0, b0), WAYS_ASKED(a1, b1), in bank_slot_t slot,
                   in bit<32> value, out bit<32> count, inout bit<8> matched) {
    Register<bit<32>, bank_slot_t>(WAYS_ENTRIES, 0) WAYS(c1);

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(WAYS(c1)) add_c1 = {
        void apply(inout bit<32> v, out bit<32> n) {
            v = v |+| 1;
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(WAYS(c1)) read_c1 = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = v;
        }
    };

    RegisterAction<bit<32>, bank_slot_t, bit<32>>(WAYS(c1)) write_c1 = {
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
#if WAYS_WORDS == 2
            b0 : ternary;
#endif
            a1 : ternary;
#if WAYS_WORDS == 2
            b1 : ternary;
#endif
        }
        actions = {
            grow;
            look;
            take;
            skip;
        }
        const entries = {
            (ROLE_LOOK, WAYS_SAME, WAYS_ANY): skip();
            (ROLE_LOOK, WAYS_ANY, WAYS_SAME): grow();
            (ROLE_LOOK, WAYS_ANY, WAYS_ANY): look();
            (ROLE_TAKE_1, WAYS_ANY, WAYS_ANY): take();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        count = 0;
        counters.apply();
    }
}

/* Outcome of the packets: enum precision_counter, enum hhh_counter of the eBPF form, one counter per action. */
control WAYS_CONTROL(Outcome)(in role_t role, in bit<8> in_0, in bit<8> in_1, in bit<32> left) {
    DirectCounter<bit<64>>(CounterType_t.PACKETS) WAYS(counts);

    action no_key() { WAYS(counts).count(); }
    action matched() { WAYS(counts).count(); }
    action admitted() { WAYS(counts).count(); }
    action passed_over() { WAYS(counts).count(); } /* not stored, and not admitted */
    action written() { WAYS(counts).count(); }

    table outcomes {
        key = {
            role : ternary;
            in_0 : ternary;
            in_1 : ternary;
            left : ternary;
        }
        actions = {
            no_key;
            matched;
            admitted;
            passed_over;
            written;
        }
        const entries = {
            (ROLE_NONE, _, _, _): no_key();
            (ROLE_LOOK, 1, _, _): matched();
            (ROLE_LOOK, _, 1, _): matched();
            (ROLE_LOOK, _, _, 0x80000000 &&& 0x80000000): admitted();
            (ROLE_LOOK, _, _, _): passed_over();
        }
        const default_action = written();
        counters = WAYS(counts);
        size = 8;
    }

    apply {
        outcomes.apply();
    }
}

#endif
