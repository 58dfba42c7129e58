// SPDX-License-Identifier: Apache-2.0
/* One array of records {id, time}: a request overwrites the record in its slot unless it is its own, a response clears its
 * request. time stays 0 if there is no such request, fate if there is none. */
#ifndef XDPMON_RTTARRAY_STAGE_P4
#define XDPMON_RTTARRAY_STAGE_P4

struct record_t {
    bit<32> id; /* 24 bits of hash, and 8 bits of the clock above those of time; 0: empty */
    bit<32> time;
}

/* What a request found: two comparisons of the record as a one-hot number. Bit 0 of its position: the record is of this
 * very request; bit 1: it is empty. */
typedef bit<8> fate_t;
const fate_t FATE_NONE = 0;     /* not a request */
const fate_t FATE_EVICTED = 1;  /* another one */
const fate_t FATE_INSERTED = 4; /* an empty slot; everything else is its own record */

control RttStage(in role_t role, in record_slot_t slot, in bit<32> id, in bit<32> now, inout fate_t fate, inout bit<32> time)(bit<32> slots) {
    Register<record_t, record_slot_t>(slots, {0, 0}) rtt_stage1;

    RegisterAction<record_t, record_slot_t, fate_t>(rtt_stage1) insert_record = {
        void apply(inout record_t v, out fate_t found) {
            found = this.predicate(v.id == id, v.id == 0);
            if (v.id != id) {
                v.id = id;
                v.time = now;
            }
        }
    };

    RegisterAction<record_t, record_slot_t, bit<32>>(rtt_stage1) take_record = {
        void apply(inout record_t v, out bit<32> found) {
            found = 0;
            if (v.id == id) {
                found = v.time;
                v.id = 0;
                v.time = 0;
            }
        }
    };

    action insert() { fate = insert_record.execute(slot); }
    action take() { time = take_record.execute(slot); }
    action skip() {}

    table records {
        key = {
            role : exact;
        }
        actions = {
            insert;
            take;
            skip;
        }
        const entries = {
            ROLE_REQUEST: insert();
            ROLE_RESPONSE: take();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        records.apply();
    }
}

#endif
