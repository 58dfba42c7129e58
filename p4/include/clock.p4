// SPDX-License-Identifier: Apache-2.0
/* The packet's time: when its first byte arrived at the MAC, in ticks of 2^tick ns, of which 32 bits are kept.
 * The shift is not a multiple of 8 bits and crosses containers, which an action cannot do and the hash unit can. Zeros stand in
 * front of the stamp, because the compiler takes a shift by more than 16 for a field list only if it is a slice. */
#ifndef XDPMON_CLOCK_P4
#define XDPMON_CLOCK_P4

control Clock(in bit<48> nanoseconds, out bit<32> ticks)(bit<8> tick) {
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) shift;

    apply {
        ticks = shift.get((bit<32>)((16w0 ++ nanoseconds) >> tick));
    }
}

/* Eight bits above those ticks, as far as the 48 bits of the time stamp reach. */
control Epoch(in bit<48> nanoseconds, out bit<8> epoch)(bit<8> tick) {
    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) shift;

    apply {
        epoch = shift.get((bit<8>)(nanoseconds >> (tick + 32)));
    }
}

#endif
