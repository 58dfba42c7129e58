// SPDX-License-Identifier: Apache-2.0
/* Number of records of two 32-bit words in a register of one stage: up to 71,680 on Tofino 1, up to 47,104 on
 * Tofino 2, whose memories have two halves that a register cannot cross. Larger arrays use two registers, one
 * per value of the slot's high bit: a packet accesses one of them. */
#ifndef XDPMON_CAPACITY_P4
#define XDPMON_CAPACITY_P4

#if __TARGET_TOFINO__ == 2
#define RECORD_BITS 15
#else
#define RECORD_BITS 16
#endif
#define RECORDS (1 << RECORD_BITS)

#endif
