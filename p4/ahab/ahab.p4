// SPDX-License-Identifier: Apache-2.0
/* ahab: fair shares of a slice's capacity for any number of users, on a switch.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 6 (AHAB). The eBPF form is bpf/ahab in the form that
 * calculates by tables, with room for 4,095 slices: --set ahab.form=table --set ahab.config={"room":4095,"slices":[{"name":"all"}]}
 * The registers, which a test compares:
 *
 * stage  register        width     holds
 *   1    ahab_epochs     32        below: epoch in which the slice's sums were last taken away
 *   1    ahab_weyl       32        below: the slice's Weyl sequence
 *   2    ahab_row0       32 of 64  below: low-pass filters; the switch keeps their times by itself
 *   2    ahab_row1       32 of 64  below
 *   2    ahab_row2       32 of 64  below
 *   2    ahab_limit      32        below: the slice's limit
 *   6    ahab_countdown  32 of 64  leaving.p4: bytes that a TCP flow may go beyond the limit until its next loss
 *   7    ahab_low        32 of 64  tables.p4: what passes under the lower limit, 2^-4 bytes
 *   7    ahab_mid        32 of 64  tables.p4: what passes under the limit and not under the lower one
 *   7    ahab_high       32 of 64  tables.p4: what passes under the upper one alone
 *   7    ahab_over       32 of 64  tables.p4: what passes under none
 *  11    ahab_offered    32 of 64  leaving.p4: bytes that arrived until the sums were last taken away
 *  10    ahab_passed     32 of 64  leaving.p4: packets that passed
 *  10    ahab_dropped    32 of 64  leaving.p4: bytes that were dropped, ever since
 *  11    ahab_lost       32 of 64  leaving.p4: packets that were dropped
 *
 * By stage of the chip, as compiled for Tofino 1. Ingress: 0 and 1 slice, length of the IP packet, what may be done to it, lease · 2 words of the user,
 * epochs, weyl, limit, headers' lengths · 3 hashes, charge, number, lower and upper limit · 4 rows · 5 smaller of two rows · 6 smallest row · 7 digits
 * of four numbers · 8 three quotients · 9 number less quotients. Egress: 0 sums, what the slice may · 1 countdown, sum of sums, aim · 2 action,
 * distance from the aim · 3 passed, lost, which side · 4 digits · 5 quotient, offered, dropped · 6 step · 7 next limit. Tofino 2
 * the same, but what may be done to it in 2.
 *
 * The first packet of an epoch takes the sums away and calculates the next limit after everything; a clone of it carries that back to the ingress.
 * Slices, what a user is, capacities and the two tables of quotients are the control plane's: `xdpmon p4 rules ahab`. */
#ifndef XDPMON_AHAB_P4
#define XDPMON_AHAB_P4

control AhabEpochs(in slice_t place, in bit<32> epoch, inout bit<32> before) {
    Register<bit<32>, slice_t>(AHAB_SLICES, 0) ahab_epochs;

    RegisterAction<bit<32>, slice_t, bit<32>>(ahab_epochs) begin = {
        void apply(inout bit<32> v, out bit<32> last) {
            last = v;
            v = epoch;
        }
    };

    action cross() { before = begin.execute(place); }

    apply {
        cross();
    }
}

control AhabWeyl(in slice_t place, inout bit<32> point) {
    Register<bit<32>, slice_t>(AHAB_SLICES, 0) ahab_weyl;

    RegisterAction<bit<32>, slice_t, bit<32>>(ahab_weyl) next = {
        void apply(inout bit<32> v, out bit<32> now) {
            v = v + 0x9e3779b9; /* 2^32 times the golden ratio's fraction */
            now = v;
        }
    };

    action draw() { point = next.execute(place); }

    apply {
        draw();
    }
}

/* A user's rate: the smallest of its cells of a Count-Min Sketch whose cells forget. */
control AhabRows(in bit<32> charge, in bit<16> row_0, in bit<16> row_1, in bit<16> row_2, inout bit<32> rate) {
    bit<32> rate_1 = 0;
    bit<32> rate_2 = 0;

    Lpf<bit<32>, column_t>(AHAB_COLUMNS) ahab_row0;
    Lpf<bit<32>, column_t>(AHAB_COLUMNS) ahab_row1;
    Lpf<bit<32>, column_t>(AHAB_COLUMNS) ahab_row2;

    action fill_0() { rate = ahab_row0.execute(charge, row_0[AHAB_COLUMN_TOP:0]); }
    action fill_1() { rate_1 = ahab_row1.execute(charge, row_1[AHAB_COLUMN_TOP:0]); }
    action fill_2() { rate_2 = ahab_row2.execute(charge, row_2[AHAB_COLUMN_TOP:0]); }
    action least_1() { rate = min(rate, rate_1); }
    action least_2() { rate = min(rate, rate_2); }

    apply {
        fill_0();
        fill_1();
        fill_2();
        least_1();
        least_2();
    }
}

control AhabLimit(in bit<1> second, in slice_t place, in bit<32> next, inout bit<32> limit) {
    Register<bit<32>, slice_t>(AHAB_SLICES, AHAB_FULL) ahab_limit;

    RegisterAction<bit<32>, slice_t, bit<32>>(ahab_limit) read_limit = {
        void apply(inout bit<32> v, out bit<32> held) {
            held = v;
        }
    };

    RegisterAction<bit<32>, slice_t, bit<32>>(ahab_limit) write_limit = {
        void apply(inout bit<32> v) {
            v = next;
        }
    };

    action read() { limit = read_limit.execute(place); }
    action write() { write_limit.execute(place); }
    action none() {}

    table passes {
        key = {
            second : exact;
        }
        actions = {
            read;
            write;
            none;
        }
        const entries = {
            0: read();
            1: write();
        }
        const default_action = none();
        size = 2;
    }

    apply {
        passes.apply();
    }
}

/* min(1, n / d) in 2^-15, by the table of (i + .5) / (j + .5). */
control AhabShare(in bit<32> n, in bit<32> d, inout bit<16> share) {
    action part(bit<16> of) { share = of; }
    action all() { share = AHAB_ALL; }

    table shares {
        key = {
            n      : exact;
            d[5:0] : exact;
        }
        actions = {
            part;
            all;
        }
        const default_action = all();
        size = 2048;
    }

    apply {
        shares.apply();
    }
}

control Ahab(inout headers_t hdr, in question_t q, in ingress_intrinsic_metadata_t ig, in MirrorId_t session) {
    bit<16> slice = 0;
    bit<8> user = 0;      /* what a user is: a row of `words` */
    bit<8> scale = 0;
    bit<8> square = 0;    /* twice the logarithm of the user's weight, 8 at most */
    bit<1> second = 0;
    bit<32> next = 0;
    bit<32> epoch = 0;
    bit<32> before = 0;
    bit<32> left = 0;     /* epochs until the lease ends */
    bit<32> point = 0;
    bit<16> number = 0;   /* this packet's, below 2^15 */
    bit<32> len = 0;
    bit<32> charge = 0;
    bit<16> row_0 = 0;
    bit<16> row_1 = 0;
    bit<16> row_2 = 0;
    bit<16> row_3 = 0;
    bit<32> rate = 0;
    bit<32> limit = 0;
    bit<32> low = 0;
    bit<32> high = 0;
    bit<32> d = 0;
    bit<32> a = 0;
    bit<32> b = 0;
    bit<32> c = 0;
    bit<16> share_low = 0;
    bit<16> share_mid = 0;
    bit<16> share_high = 0;

    AhabMembers() members;
    AhabKinds() kinds;
    AhabUsers() users;
    AhabLength() lengths;
    AhabScale() scales;
    AhabEpochs() epochs;
    AhabWeyl() weyl;
    AhabRows() rows;
    AhabLimit() limits;
    AhabStep() steps;
    AhabDigits() digits;
    AhabShare() shares_low;
    AhabShare() shares_mid;
    AhabShare() shares_high;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) clock;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) widths4;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) widths6;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) numbers;

    action bridge() {
        hdr.bridged.setValid();
        hdr.bridged.front = FRONT_BRIDGED;
        hdr.bridged.session = 0;
        hdr.bridged.pad_0 = 0;
        hdr.bridged.counted = 0;
        hdr.bridged.pad_1 = 0;
        hdr.bridged.open = 0;
        hdr.bridged.pad_2 = 0;
        hdr.bridged.discard = 0;
        hdr.bridged.kind = 0;
        hdr.bridged.epochs = EPOCHS_NONE;
        hdr.bridged.slice = 0;
        hdr.bridged.low = 0;
        hdr.bridged.mid = 0;
        hdr.bridged.high = 0;
        hdr.bridged.flow = 0;
        hdr.bridged.debt = 0;
        hdr.bridged.len = 0;
        hdr.bridged.amount = 0;
        hdr.bridged.limit = 0;
    }

    action comes_back() {
        second = 1;
        slice = hdr.second.slice;
        next = hdr.second.limit | AHAB_LEAST;
    }

    action clip() { next = min(next, hdr.second.ceiling); }

    /* The control plane writes again and again until which epoch limits hold: if it stops, nothing is dropped any more. */
    action hold(bit<32> until) { left = until - epoch; }

    table lease {
        actions = {
            hold;
        }
        default_action = hold(0);
    }

    /* Epochs: 28 bits of the clock's 48. */
    action tick() { epoch = clock.get((bit<32>)ig.ingress_mac_tstamp[47:20]); }
    action wide4() { len = widths4.get((bit<32>)hdr.ipv4.total); }
    action wide6() { len = widths6.get((bit<32>)hdr.ipv6.payload); }
    action draw() { number = numbers.get((bit<16>)point[31:17]); }
    action elapse() { before = epoch - before; }

    /* Not in stage 0, where with the clock they would take all that its hashes hand to actions and registers, and the egress's sums need some. */
    @stage(1) table lengths4 {
        actions = {
            wide4;
        }
        const default_action = wide4();
    }

    @stage(1) table lengths6 {
        actions = {
            wide6;
        }
        const default_action = wide6();
    }

    action none() {}
    action aged(bit<8> epochs_since) { hdr.bridged.epochs = epochs_since; }

    table ages {
        key = {
            before : ternary;
        }
        actions = {
            none;
            aged;
        }
        const entries = {
            0: none();
            1: aged(EPOCHS_ONE);
            2 &&& 0xfffffffe: aged(EPOCHS_TWO);
            4 &&& 0xfffffffc: aged(EPOCHS_FOUR);
            8 &&& 0xfffffff8: aged(EPOCHS_FOUR);
        }
        const default_action = aged(EPOCHS_IDLE);
        size = 5;
    }

    action debt_0() { hdr.bridged.debt = len; }
    action debt_2() { hdr.bridged.debt = len >> 2; }
    action debt_4() { hdr.bridged.debt = len >> 4; }
    action debt_6() { hdr.bridged.debt = len >> 6; }
    action debt_8() { hdr.bridged.debt = len >> 8; }

    table debts {
        key = {
            square : exact;
        }
        actions = {
            debt_0;
            debt_2;
            debt_4;
            debt_6;
            debt_8;
        }
        const entries = {
            2: debt_2();
            4: debt_4();
            6: debt_6();
            8: debt_8();
        }
        const default_action = debt_0();
        size = 4;
    }

    action carry() {
        hdr.bridged.counted = 1;
        hdr.bridged.session = (bit<8>)session;
        hdr.bridged.slice = slice;
        hdr.bridged.flow = row_3;
        hdr.bridged.len = len;
        hdr.bridged.amount = len << 4;
        hdr.bridged.limit = limit;
        hdr.bridged.low = number - share_low;
        hdr.bridged.mid = number - share_mid;
        hdr.bridged.high = number - share_high;
    }

    action ends() { hdr.bridged.open = 1; }

    /* Many short branches: as one nest of them the compiler made 14 stages of it. */
    apply {
        bridge();
        tick();
        if (hdr.ipv4.isValid()) {
            lengths4.apply();
        } else if (hdr.ipv6.isValid()) {
            lengths6.apply();
        }
        if (hdr.second.isValid()) {
            comes_back();
        } else {
            members.apply(hdr, ig, slice, user, scale, square);
        }
        lengths.apply(hdr, len);
        kinds.apply(hdr);
        lease.apply();
        if (second == 1) {
            clip();
        }
        if (slice != 0 && second == 0) {
            epochs.apply(slice[AHAB_TOP:0], epoch, before);
            weyl.apply(slice[AHAB_TOP:0], point);
        }
        if (slice != 0) {
            limits.apply(second, slice[AHAB_TOP:0], next, limit);
        }
        if (slice != 0 && second == 0) {
            users.apply(hdr, q, user, slice, row_0, row_1, row_2, row_3);
            scales.apply(scale, len, charge);
            debts.apply();
            draw();
            elapse();
            ages.apply();
            rows.apply(charge, row_0, row_1, row_2, rate);
            steps.apply(limit, low, high);
            digits.apply(rate, low, limit, high, d, a, b, c);
            shares_low.apply(a, d, share_low);
            shares_mid.apply(b, d, share_mid);
            shares_high.apply(c, d, share_high);
            carry();
            if (left[31:31] == 1) {
                ends();
            }
        }
    }
}

#endif
