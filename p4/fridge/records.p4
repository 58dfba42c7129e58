// SPDX-License-Identifier: Apache-2.0
/* Stage 1, the record: {id, time} of the request in a slot, IDS and TS of section 6.1 in one element; the layout is that of
 * bpf/include/record.h.
 *
 * A request overwrites the record in its slot, also its own: its clock restarts. A SYN-ACK reads the time of its
 * SYN and leaves the record for the ACK, which clears the time and keeps the id; without legs the response does. A packet without a record leaves
 * time unchanged: 0. */
#ifndef XDPMON_FRIDGE_RECORDS_P4
#define XDPMON_FRIDGE_RECORDS_P4

/* What a request found: two comparisons of the record as a one-hot number. Bit 0 of its position: the record is of this
 * very request; bit 1: none waits there. */
typedef bit<8> fate_t;
const fate_t FATE_NONE = 0; /* not a request, or not admitted */
const fate_t FATE_EVICTED = 1;  /* another one, which waited */
const fate_t FATE_REPEATED = 2; /* itself, waiting: a repetition */
const fate_t FATE_INSERTED = 4; /* no record */
const fate_t FATE_AGAIN = 8;    /* itself, answered */

struct record_t {
    bit<32> id;   /* 24 bits of hash, and 8 bits of the clock above those of time */
    bit<32> time; /* ticks; 0: none waits */
}

control FridgeRecords(in role_t role, in bit<1> admitted, in record_slot_t slot, in bit<32> id, in bit<32> now,
                      inout fate_t fate, inout bit<32> time)(bit<32> slots) {
    Register<record_t, record_slot_t>(slots, {0, 0}) fridge_entries;

    RegisterAction<record_t, record_slot_t, fate_t>(fridge_entries) insert_record = {
        void apply(inout record_t v, out fate_t found) {
            found = this.predicate(v.id == id, v.time == 0);
            v.id = id;
            v.time = now;
        }
    };

#if FRIDGE_LEGS
    RegisterAction<record_t, record_slot_t, bit<32>>(fridge_entries) read_record = {
        void apply(inout record_t v, out bit<32> found) {
            found = 0;
            if (v.id == id) {
                found = v.time;
            }
        }
    };
#endif

    RegisterAction<record_t, record_slot_t, bit<32>>(fridge_entries) take_record = {
        void apply(inout record_t v, out bit<32> found) {
            found = 0;
            if (v.id == id) {
                found = v.time;
                v.time = 0;
            }
        }
    };

    action insert() { fate = insert_record.execute(slot); }
#if FRIDGE_LEGS
    action read() { time = read_record.execute(slot); }
#endif
    action take() { time = take_record.execute(slot); }
    action skip() {}

    /* A request that lost its coin is not looked up in another role: a repetition would match its own record. */
    table records {
        key = {
            role     : exact;
            admitted : exact;
        }
        actions = {
            insert;
#if FRIDGE_LEGS
            read;
#endif
            take;
            skip;
        }
        const entries = {
            (ROLE_REQUEST, 1): insert();
#if FRIDGE_LEGS
            (ROLE_RESPONSE, 1): read();
            (ROLE_FINAL, 1): take();
#else
            (ROLE_RESPONSE, 1): take();
#endif
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        records.apply();
    }
}

#endif
