// SPDX-License-Identifier: Apache-2.0
/* The packet's time: arrival of its first byte at the MAC, in ticks of 2^tick ns, as 32 bits.
 * The shift is not a multiple of 8 bits and crosses containers, which only the hash unit can do, not an action. Zeros precede
 * the timestamp, because the compiler accepts a shift by more than 16 in a field list only if it is a slice. */
#ifndef XDPMON_CLOCK_P4
#define XDPMON_CLOCK_P4

control Clock(in bit<48> nanoseconds, out bit<32> ticks)(bit<8> tick) {
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) shift;

    apply {
        ticks = shift.get((bit<32>)((16w0 ++ nanoseconds) >> tick));
    }
}

/* The eight bits above those ticks; the timestamp has 48 bits. An action of its own: the compiler puts bare statements that
 * follow each other into one table, and a table has room for 32 bits of hash. */
control Epoch(in bit<48> nanoseconds, out bit<8> epoch)(bit<8> tick) {
    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) shift;

    action read() { epoch = shift.get((bit<8>)(nanoseconds >> (tick + 32))); }

    apply {
        read();
    }
}

#endif
