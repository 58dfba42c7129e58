// SPDX-License-Identifier: Apache-2.0
/* How many records of two 32-bit words one register holds in one stage: up to 71,680 on Tofino 1, up to 47,104 on
 * Tofino 2, whose memories are split in two halves that a register cannot cross. More are kept in two registers, one
 * for each value of the slot's high bit: a packet reaches one of them. */
#ifndef XDPMON_CAPACITY_P4
#define XDPMON_CAPACITY_P4

#if __TARGET_TOFINO__ == 2
#define RECORD_BITS 15
#else
#define RECORD_BITS 16
#endif
#define RECORDS (1 << RECORD_BITS)

#endif
