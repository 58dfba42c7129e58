// SPDX-License-Identifier: Apache-2.0
/* The egress: what becomes of the packet, what each limit would have let pass, and the next limit. */
#ifndef XDPMON_AHAB_LEAVING_P4
#define XDPMON_AHAB_LEAVING_P4

const MirrorType_t SECOND_MIRROR = 1;

control AhabCountdown(in bit<1> limited, in bit<1> open, in bit<16> mid, in bit<8> kind, in flow_t place, in bit<32> debt,
                      in bit<32> spacing, inout bit<1> lost) {
    Register<bit<32>, flow_t>(AHAB_FLOWS, 0) ahab_countdown;

    RegisterAction<bit<32>, flow_t, bit<1>>(ahab_countdown) spend_bytes = {
        void apply(inout bit<32> v, out bit<1> over) {
            over = 0;
            if (v < debt) {
                over = 1;
                v = spacing;
            } else {
                v = v - debt;
            }
        }
    };

    action spend() { lost = spend_bytes.execute(place); }
    action skip() {}

    table debtors {
        key = {
            limited    : ternary;
            open       : ternary;
            mid[15:15] : ternary;
            kind       : ternary;
        }
        actions = {
            spend;
            skip;
        }
        const entries = {
            (1, 0, 0, KIND_DATA): spend();
        }
        const default_action = skip();
        size = 1;
    }

    apply {
        debtors.apply();
    }
}

/* A sum that is never reset, and one of a window. */
control AhabOffered(in slice_t place, in bit<32> bytes) {
    Register<bit<32>, slice_t>(AHAB_SLICES, 0) ahab_offered;

    RegisterAction<bit<32>, slice_t, bit<32>>(ahab_offered) add_bytes = {
        void apply(inout bit<32> v) {
            v = v + bytes;
        }
    };

    action add() { add_bytes.execute(place); }

    apply {
        add();
    }
}

control AhabDropped(in slice_t place, in bit<32> bytes) {
    Register<bit<32>, slice_t>(AHAB_SLICES, 0) ahab_dropped;

    RegisterAction<bit<32>, slice_t, bit<32>>(ahab_dropped) add_bytes = {
        void apply(inout bit<32> v) {
            v = v + bytes;
        }
    };

    action add() { add_bytes.execute(place); }

    apply {
        add();
    }
}

control AhabPassed(in tally_t place) {
    Register<bit<32>, tally_t>(AHAB_TALLIES, 0) ahab_passed;

    RegisterAction<bit<32>, tally_t, bit<32>>(ahab_passed) count_one = {
        void apply(inout bit<32> v) {
            v = v + 1;
        }
    };

    action count() { count_one.execute(place); }

    apply {
        count();
    }
}

control AhabLost(in tally_t place) {
    Register<bit<32>, tally_t>(AHAB_TALLIES, 0) ahab_lost;

    RegisterAction<bit<32>, tally_t, bit<32>>(ahab_lost) count_one = {
        void apply(inout bit<32> v) {
            v = v + 1;
        }
    };

    action count() { count_one.execute(place); }

    apply {
        count();
    }
}

/* The same as AhabShare, of steps: a quarter of what is below 1/4, where most of it is noise. */
control AhabQuotient(in bit<32> n, in bit<32> d, inout bit<32> share) {
    action part(bit<32> of) { share = of; }
    action all() { share = AHAB_ALL; }

    table quotients {
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
        quotients.apply();
    }
}

control AhabLeaving(in bridged_h bridged, inout answer_t md, inout egress_intrinsic_metadata_for_deparser_t dprsr) {
    bit<1> bank = 0;
    bit<1> limited;
    bit<32> aim = 0;     /* 2^-4 bytes that the slice may send in an epoch; then: in those that passed */
    bit<32> ceiling = 0;
    bit<32> spacing = 0;
    bit<1> lost = 0;
    bit<1> taken = 0;    /* is the packet dropped? */
    bit<32> low = 0;     /* the sums that were taken away; then what passes under the limit */
    bit<32> mid = 0;
    bit<32> high = 0;
    bit<32> over = 0;
    bit<32> above = 0;   /* what passes under no more than the limit */
    bit<32> up = 0;      /* what is missing to the aim, */
    bit<32> down = 0;    /* and what is too much */
    bit<32> n = 0;
    bit<32> m = 0;
    bit<32> i = 0;
    bit<32> j = 0;
    bit<32> share = 0;
    bit<32> by = 0;

    AhabCountdown() countdown;
    AhabLow() lows;
    AhabMid() mids;
    AhabHigh() highs;
    AhabOver() overs;
    AhabOffered() offered;
    AhabDropped() dropped;
    AhabPassed() passed;
    AhabLost() losses;
    AhabDigit() digits;
    AhabQuotient() quotients;
    AhabMove() moves;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) turns;

    action use_bank(bit<1> b) { bank = b; }

    table window {
        actions = {
            use_bank;
        }
        default_action = use_bank(0);
    }

    /* What the control plane writes of a slice, a hundred times a second. */
    action may(bit<1> is_limited, bit<32> budget, bit<32> most, bit<32> apart) {
        limited = is_limited;
        aim = budget;
        ceiling = most;
        spacing = apart;
    }

    action anything() {
        limited = 0;
        ceiling = AHAB_FULL;
    }

    table slices {
        key = {
            bridged.slice : exact;
        }
        actions = {
            may;
            anything;
        }
        default_action = anything();
        size = 4096;
    }

    action twice() { aim = aim << 1; }
    action four_times() { aim = aim << 2; }
    action once() {}

    table aims {
        key = {
            bridged.epochs : exact;
        }
        actions = {
            twice;
            four_times;
            once;
        }
        const entries = {
            EPOCHS_TWO: twice();
            EPOCHS_FOUR: four_times();
            EPOCHS_IDLE: four_times();
        }
        const default_action = once();
        size = 4;
    }

    action drop_it() {
        taken = 1;
        dprsr.drop_ctl = 1;
    }

    action pass_it() {}

    table fates {
        key = {
            limited            : ternary;
            bridged.open       : ternary;
            bridged.mid[15:15] : ternary;
            bridged.kind       : ternary;
            lost               : ternary;
        }
        actions = {
            drop_it;
            pass_it;
        }
        const entries = {
            (1, 0, 0, KIND_OTHER, _): drop_it();
            (1, 0, 0, KIND_DATA, 1): drop_it();
        }
        const default_action = pass_it();
        size = 2;
    }

    action add_up() {
        low = low + mid;
        above = high + over;
    }

    action compare() {
        up = aim - low;
        down = low - aim;
        above = above + low;
    }

    action shorten() { above = above >> 4; }

    action rises() {
        n = up;
        m = high;
    }

    action falls() {
        n = down;
        m = mid;
    }

    /* The entry is the side that does not read `up`: the compiler gives an entry's action, for a field, what its exact key has, even if that is one bit of it. */
    table sides {
        key = {
            up[31:31] : exact;
        }
        actions = {
            rises;
            falls;
        }
        const entries = {
            1: falls();
        }
        const default_action = rises();
        size = 1;
    }

    action back() {
        md.session = (MirrorId_t)bridged.session;
        md.carry.setValid();
        md.carry.front = FRONT_SECOND;
        md.carry.pad = 0;
        md.carry.slice = bridged.slice;
        md.carry.ceiling = ceiling;
        dprsr.mirror_type = SECOND_MIRROR;
    }

    action rise() {
        back();
        md.carry.limit = bridged.limit + by;
        turns.count();
    }

    action fall() {
        back();
        md.carry.limit = bridged.limit - by;
        turns.count();
    }

    action rest() {
        back();
        md.carry.limit = AHAB_FULL;
        turns.count();
    }

    action stay() { turns.count(); }

    table steps {
        key = {
            bridged.epochs : ternary;
            up[31:31]      : ternary;
        }
        actions = {
            rise;
            fall;
            rest;
            stay;
        }
        const entries = {
            (EPOCHS_NONE, _): stay();
            (EPOCHS_IDLE, _): rest();
            (_, 0): rise();
        }
        const default_action = fall();
        counters = turns;
        size = 3;
    }

    apply {
        slices.apply();
        countdown.apply(limited, bridged.open, bridged.mid, bridged.kind, bridged.flow[AHAB_FLOW_TOP:0], bridged.debt, spacing, lost);
        lows.apply(bridged.epochs, bridged.low, bridged.mid, bridged.high, bridged.slice[AHAB_TOP:0], bridged.amount, low);
        mids.apply(bridged.epochs, bridged.low, bridged.mid, bridged.high, bridged.slice[AHAB_TOP:0], bridged.amount, mid);
        highs.apply(bridged.epochs, bridged.low, bridged.mid, bridged.high, bridged.slice[AHAB_TOP:0], bridged.amount, high);
        overs.apply(bridged.epochs, bridged.low, bridged.mid, bridged.high, bridged.slice[AHAB_TOP:0], bridged.amount, over);
        aims.apply();
        fates.apply();
        window.apply();
        if (taken == 0) {
            passed.apply(bank ++ bridged.slice[AHAB_TOP:0]);
        }
        if (taken == 1) {
            dropped.apply(bridged.slice[AHAB_TOP:0], bridged.len);
        }
        add_up();
        compare();
        shorten();
        if (bridged.epochs != EPOCHS_NONE) {
            offered.apply(bridged.slice[AHAB_TOP:0], above);
        }
        if (taken == 1) {
            losses.apply(bank ++ bridged.slice[AHAB_TOP:0]);
        }
        sides.apply();
        digits.apply(m, n, j, i);
        quotients.apply(i, j, share);
        moves.apply(bridged.limit, share, by);
        steps.apply();
    }
}

#endif
