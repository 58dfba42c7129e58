// SPDX-License-Identifier: Apache-2.0
/* fridge: the unbiased distribution of delays between requests and their responses, on a switch.
 *
 * Zheng, Braverman, Chen, Rexford, "Unbiased Delay Measurement in the Data Plane", sections 3, 4.2 and 6. The eBPF form is
 * bpf/fridge/fridge.bpf.c with --set fridge.correction=table, whose header lists the differences from the paper; docs/twins.md
 * lists the differences of this form. The registers, which a test compares:
 *
 * stage  register         width     holds
 *   1    fridge_entries   32 + 32   records.p4: {id, time} of the request in a slot
 *   2    fridge_inserts   32        inserts.p4: insertions so far, one word per shard
 *   3    fridge_survived  32        survived.p4: insertions up to the request, and a byte of its id
 *   3    fridge_middle    32        middle.p4: time of the SYN-ACK
 *   5    fridge_hist      32 of 64  tally.p4: sum of the correction factors 1/q in 2^-8, by bank, row, fridge and delay bin
 *   5    fridge_second    32 of 64  tally.p4: the same for SYN-ACK to ACK
 *   5    fridge_hits      32 + 32   tally.p4: {samples in a sum of fridge_hist, sum of their exponents in 2^-8}: 28 + 36 in the eBPF array
 *   5    fridge_repeats   32 of 64  repeats.p4: repeated requests, by insertions since then
 *
 * 1/q = 1/p (1 - 1/M)^-x for x insertions survived: x counts insertions, as section 6.1 does, hence 1/M and not p/M.
 * A register is reached from one table only, so no packet can touch it twice. Stages are an order, not numbers of the
 * chip: the compiler places the tables. Of 64: the eBPF array is wider. */
#ifndef XDPMON_FRIDGE_P4
#define XDPMON_FRIDGE_P4

/* Slots of a register of records: capacity.p4. */
#if FRIDGE_ENTRIES > 2 * RECORDS
#error more slots than this target has memory for in two registers
#elif FRIDGE_ENTRIES > RECORDS
typedef bit<RECORD_BITS> record_slot_t;
#else
typedef slot_t record_slot_t;
#endif

#include "records.p4"
#include "inserts.p4"
#include "survived.p4"
#if FRIDGE_LEGS
#include "middle.p4"
#endif
#include "tally.p4"
#include "repeats.p4"
#include "outcome.p4"

control Fridge(in headers_t hdr, inout question_t q, in bit<48> nanoseconds) {
    bit<32> now;
    bit<8> epoch; /* of the clock: bits above those of now */
    bit<32> odd;
    bit<32> id;
    bit<32> slot;
    bit<32> luck;
    bit<1> bank = 0;
    place_t at = PLACE_NONE;
    fate_t fate = FATE_NONE;
    bit<32> time = 0;     /* of the record found by a response; 0: none */
    bit<32> count = 0;    /* insertions so far */
    bit<32> delay = 0;    /* since the request */
    bit<32> survived = 0; /* insertions since the request, or since its earlier copy, times 2^8 */
    bit<32> leg = 0;      /* not 0: this packet is a sample */
    bit<32> weight;
    bit<32> exponent;
    cell_t first_plane = 0;
    cell_t second_plane = 0;
    cell_t cell;
    cell_t second;

    HASH_ROW(id_row, HASH_ROW_0);
    HASH_ROW(slot_row, HASH_ROW_1);
    HASH_ROW(luck_row, HASH_ROW_2);
#if FRIDGE_LEGS
    Handshake() ask;
#else
    FridgeAsk() ask;
#endif
    Clock(FRIDGE_TICK) clock;
    Epoch(FRIDGE_TICK) epochs;
    FridgePlace() place;
#if FRIDGE_ENTRIES > RECORDS
    FridgeRecords(RECORDS) low_records;
    FridgeRecords(FRIDGE_ENTRIES - RECORDS) high_records;
#else
    FridgeRecords(FRIDGE_ENTRIES) records;
#endif
    FridgeInserts() inserts;
    FridgeSurvived() survivals;
#if FRIDGE_LEGS
    FridgeMiddle() middle;
    FridgeDelayBin() second_bin;
#endif
    FridgeDelayBin() first_bin;
    FridgeGapBin() gap_bin;
    FridgeWeight() correction;
    FridgePlanes() planes;
    FridgeTally() tally;
    FridgeRepeats() repeats;
    FridgeOutcome() outcome;
#if FRIDGE_MATCH == 1
    FridgeShut() shut;
#endif

    /* The bank that this packet counts into. To end a window the control plane sets the default action to the other bank. */
    action use_bank(bit<1> b) { bank = b; }

    table window {
        actions = { use_bank; }
        default_action = use_bank(0);
        size = 1;
    }

    /* Three actions: each can use 32 bits of hash. The epoch is in the same one, otherwise the id would be ready a stage later. */
    action hash_id() { id[31:8] = id_row.get(HASH_FIELDS(q))[31:8]; id[7:0] = epoch; }
    action hash_slot() { slot = slot_row.get(HASH_FIELDS(q)); }
    action hash_luck() { luck = luck_row.get(HASH_FIELDS(q)); }

    apply {
        window.apply();
        clock.apply(nanoseconds, now);
        epochs.apply(nanoseconds, epoch);
        odd = now | 1;
        ask.apply(hdr, q);
        if (q.role != ROLE_NONE) {
            hash_id();
            hash_slot();
            hash_luck();
            place.apply(slot, luck, at);
            planes.apply(bank, at.part, q.role, first_plane, second_plane);
#if FRIDGE_ENTRIES > RECORDS
            if (at.slot < RECORDS) {
                low_records.apply(q.role, at.admitted, at.slot[RECORD_BITS - 1:0], id, now, fate, time);
            } else {
                high_records.apply(q.role, at.admitted, at.slot[RECORD_BITS - 1:0], id, now, fate, time);
            }
#else
            records.apply(q.role, at.admitted, at.slot, id, now, fate, time);
#endif
            inserts.apply(q.role, fate, at.shard, now, time, count, delay);
            survivals.apply(q.role, fate, at.slot, id, time, count, survived);
#if FRIDGE_LEGS
            middle.apply(q.role, fate, at.slot, time, odd, leg);
#else
            leg = time;
#endif
            if (q.role == ROLE_REQUEST) {
                gap_bin.apply(survived[31:8], first_plane, cell);
            } else {
                first_bin.apply(delay, first_plane, cell);
            }
#if FRIDGE_LEGS
            second_bin.apply(leg, second_plane, second);
#endif
            correction.apply(at.part, survived[31:8], weight, exponent);
            tally.apply(q.role, leg, cell, second, weight, exponent);
            repeats.apply(q.role, fate, cell);
            outcome.apply(q.role, at.admitted, fate, time, leg);
#if FRIDGE_MATCH == 1
            shut.apply(hdr, q.role);
#endif
        }
    }
}

#endif
