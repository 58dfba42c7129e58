// SPDX-License-Identifier: Apache-2.0
/* Stage 2, the insertion counter, split into shards by the high bits of the slot: a shard and its slots are a fridge of
 * their own, so the correction is exact. For a packet that found a record, the difference is the record's age. */
#ifndef XDPMON_FRIDGE_INSERTS_P4
#define XDPMON_FRIDGE_INSERTS_P4

control FridgeInserts(in role_t role, in fate_t fate, in shard_t shard, in bit<32> now, in bit<32> time,
                      inout bit<32> count, inout bit<32> delay) {
    Register<bit<32>, shard_t>(FRIDGE_SHARDS, 0) fridge_inserts;

    RegisterAction<bit<32>, shard_t, bit<32>>(fridge_inserts) add_insert = {
        void apply(inout bit<32> v, out bit<32> n) {
            v = v + 1;
            n = v;
        }
    };

    RegisterAction<bit<32>, shard_t, bit<32>>(fridge_inserts) read_inserts = {
        void apply(inout bit<32> v, out bit<32> n) {
            n = v;
        }
    };

    action grow() { count = add_insert.execute(shard); }

    action look() {
        count = read_inserts.execute(shard);
        delay = now - time;
    }

    action skip() {}

    table inserts {
        key = {
            role : ternary;
            fate : ternary;
            time : ternary;
        }
        actions = {
            grow;
            look;
            skip;
        }
        const entries = {
            (ROLE_REQUEST, FATE_NONE, _): skip();
            (ROLE_REQUEST, _, _): grow();
            (_, _, 0): skip();
            (ROLE_RESPONSE, _, _): look();
            (ROLE_FINAL, _, _): look();
        }
        const default_action = skip();
        size = 8;
    }

    apply {
        inserts.apply();
    }
}

#endif
