// SPDX-License-Identifier: Apache-2.0
/* Stage 5, the histograms of section 6.2: a sample adds its correction factor to its delay bin, and the factor's exponent next
 * to it. Sums saturate, so that a full one (2^24 requests in a bin and window) is detected. */
#ifndef XDPMON_FRIDGE_TALLY_P4
#define XDPMON_FRIDGE_TALLY_P4

struct behind_t {
    bit<32> samples;
    bit<32> exponents; /* sum of their exponents */
}

control FridgeTally(in role_t role, in bit<32> leg, in cell_t cell, in cell_t second, in bit<32> weight, in bit<32> exponent) {
    Register<bit<32>, cell_t>(FRIDGE_HIST_ENTRIES, 0) fridge_hist;
    Register<behind_t, cell_t>(FRIDGE_HIST_ENTRIES, {0, 0}) fridge_hits;
#if FRIDGE_LEGS
    Register<bit<32>, cell_t>(FRIDGE_SECOND_ENTRIES, 0) fridge_second;
#endif

    RegisterAction<bit<32>, cell_t, bit<32>>(fridge_hist) add_weight = {
        void apply(inout bit<32> v) {
            v = v |+| weight;
        }
    };

    RegisterAction<behind_t, cell_t, bit<32>>(fridge_hits) add_hit = {
        void apply(inout behind_t v) {
            v.samples = v.samples |+| 1;
            v.exponents = v.exponents |+| exponent;
        }
    };

#if FRIDGE_LEGS
    RegisterAction<bit<32>, cell_t, bit<32>>(fridge_second) add_second = {
        void apply(inout bit<32> v) {
            v = v |+| weight;
        }
    };
#endif

    apply {
        if (leg != 0) {
            add_weight.execute(cell);
            add_hit.execute(cell);
#if FRIDGE_LEGS
            if (role == ROLE_FINAL) {
                add_second.execute(second);
            }
#endif
        }
    }
}

#endif
