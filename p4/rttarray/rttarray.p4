// SPDX-License-Identifier: Apache-2.0
/* rtt-array: the hash-indexed array that the fridge is compared with, overwriting, in one stage. Zheng, Braverman, Chen,
 * Rexford, "Unbiased Delay Measurement in the Data Plane", section 2.1. Slow responses find their request overwritten more
 * often than fast ones, and nothing corrects it (section 2.2): it serves as the baseline.
 *
 * The eBPF form, which has more options, is bpf/rttarray/rttarray.bpf.c. The registers, which a test compares:
 *
 * stage  register    width     holds
 *   1    rtt_stage1  32 + 32   stage.p4: {id, time} of the request in a slot
 *   7    rtt_hist    32 of 64  tally.p4: samples by bank and delay bin
 *
 * Stages are an order, not numbers of the chip. Of 64: the eBPF array is wider. */
#ifndef XDPMON_RTTARRAY_P4
#define XDPMON_RTTARRAY_P4

/* Slots of a register of records: capacity.p4. */
#if RTT_ENTRIES > 2 * RECORDS
#error more slots than this target has memory for in two registers
#elif RTT_ENTRIES > RECORDS
typedef bit<RECORD_BITS> record_slot_t;
#else
typedef bit<16> record_slot_t;
#endif

#include "stage.p4"
#include "tally.p4"
#include "outcome.p4"

control RttArray(in headers_t hdr, inout question_t q, in bit<48> nanoseconds) {
    bit<32> now;
    bit<8> epoch; /* of the clock: bits above those of now */
    bit<32> id;
    bit<32> slot;
    bit<32> time = 0; /* of the request found by a response; 0: none */
    fate_t fate = FATE_NONE;
    bit<32> delay;
    cell_t cell;
    cell_t first = 0; /* cell of the bank */

    HASH_ROW(id_row, HASH_ROW_0);
    HASH_ROW(slot_row, HASH_ROW_1);
    Handshake() handshake;
    Clock(FRIDGE_TICK) clock;
    Epoch(FRIDGE_TICK) epochs;
#if RTT_ENTRIES > RECORDS
    RttStage(RECORDS) low_stage;
    RttStage(RTT_ENTRIES - RECORDS) high_stage;
#else
    RttStage(RTT_ENTRIES) stage;
#endif
    FridgeDelayBin() bin;
    RttTally() tally;
    RttOutcome() outcome;

    /* First cell of the bank that this packet counts into: 0 or RTT_BINS. The control plane changes it to end a window. */
    action use_bank(cell_t begin) { first = begin; }

    table window {
        actions = { use_bank; }
        default_action = use_bank(0);
        size = 1;
    }

    action hash_id() { id = id_row.get(HASH_FIELDS(q)); }
    action stamp() { id[7:0] = epoch; }
    action hash_slot() { slot = slot_row.get(HASH_FIELDS(q)); }

    apply {
        window.apply();
        /* The handshake's tables are between the two hashes: adjacent, they would be one action, which can use 32 bits. */
        clock.apply(nanoseconds, now);
        handshake.apply(hdr, q);
        epochs.apply(nanoseconds, epoch);
        if (q.role != ROLE_NONE) {
            hash_id();
            hash_slot();
            stamp();
#if RTT_ENTRIES > RECORDS
            if (slot[RECORD_BITS:RECORD_BITS] == 0) {
                low_stage.apply(q.role, slot[RECORD_BITS - 1:0], id, now, fate, time);
            } else {
                high_stage.apply(q.role, slot[RECORD_BITS - 1:0], id, now, fate, time);
            }
#else
            stage.apply(q.role, slot[15:0], id, now, fate, time);
#endif
            delay = now - time;
            bin.apply(delay, first, cell);
            tally.apply(time, cell);
            outcome.apply(q.role, fate, time);
        }
    }
}

#endif
