// SPDX-License-Identifier: Apache-2.0
/* The histogram: every sample counts once, whatever its chance of survival. */
#ifndef XDPMON_RTTARRAY_TALLY_P4
#define XDPMON_RTTARRAY_TALLY_P4

control RttTally(in bit<32> time, in cell_t cell) {
    Register<bit<32>, cell_t>(RTT_HIST_ENTRIES, 0) rtt_hist;

    RegisterAction<bit<32>, cell_t, bit<32>>(rtt_hist) add_sample = {
        void apply(inout bit<32> v) {
            v = v |+| 1;
        }
    };

    apply {
        if (time != 0) {
            add_sample.execute(cell);
        }
    }
}

#endif
