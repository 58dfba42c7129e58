// SPDX-License-Identifier: Apache-2.0
/* Loss: gaps in the IPv4 identification of flows that advance it by one per packet (bpf/lean/loss.h). */
#ifndef XDPMON_LEAN_LOSS_P4
#define XDPMON_LEAN_LOSS_P4

#define LEAN_SMALL 64            /* LOSS_SMALL: the largest step that is no jump */
#define LEAN_CREDIT 0x2000       /* a packet's; eight of them saturate */
#define LEAN_GOOD 0x4000         /* a small step's; four of them saturate */
#define LEAN_PROVEN 0x8000       /* LOSS_PROVEN of them */

struct owner_t {
    bit<16> signature;
    bit<16> credit;
}

struct last_t {
    bit<16> good;
    bit<16> number;
}

/* Stage 1: the entry's flow. Of the flows that share it, the one with most packets keeps it. */
control LeanLossOwn(in bit<1> numbered, in loss_slot_t slot, in bit<16> signature, out fate_t fate) {
    Register<owner_t, loss_slot_t>(LEAN_LOSS_FLOWS, {0, 0}) lean_loss_owner;

    RegisterAction<owner_t, loss_slot_t, fate_t>(lean_loss_owner) claim_loss_own = {
        void apply(inout owner_t v, out fate_t found) {
            found = this.predicate(v.signature == signature, v.credit < LEAN_CREDIT);
            if (v.signature == signature) {
                v.credit = v.credit |+| LEAN_CREDIT;
            } else {
                v.credit = v.credit |-| LEAN_CREDIT;
            }
            if (v.signature != signature && v.credit < LEAN_CREDIT) {
                v.signature = signature;
            }
        }
    };

    action claim() { fate = claim_loss_own.execute(slot); }
    action skip() { fate = FATE_NONE; }

    table owners {
        key = {
            numbered : exact;
        }
        actions = {
            claim;
            skip;
        }
        const entries = {
            1: claim();
        }
        const default_action = skip();
        size = 2;
    }

    apply {
        owners.apply();
    }
}

/* Stage 2: the last identifier, for a flow that was found to advance it; else 0. */
control LeanLossLast(in fate_t fate, in loss_slot_t slot, in bit<16> number, out bit<16> last) {
    Register<last_t, loss_slot_t>(LEAN_LOSS_FLOWS, {0, 0}) lean_loss_last;

    RegisterAction<last_t, loss_slot_t, bit<16>>(lean_loss_last) follow_loss_last = {
        void apply(inout last_t v, out bit<16> before) {
            before = 0;
            if (v.good >= LEAN_PROVEN) {
                before = v.number;
            }
            if (number - v.number <= LEAN_SMALL) {
                v.good = v.good |+| LEAN_GOOD;
            } else {
                v.good = 0;
            }
            v.number = number;
        }
    };

    RegisterAction<last_t, loss_slot_t, bit<16>>(lean_loss_last) start_loss_last = {
        void apply(inout last_t v) {
            v.good = 0;
            v.number = number;
        }
    };

    action follow() { last = follow_loss_last.execute(slot); }
    action start_over() {
        start_loss_last.execute(slot);
        last = 0;
    }

    action skip() { last = 0; }

    table numbers {
        key = {
            fate : exact;
        }
        actions = {
            follow;
            start_over;
            skip;
        }
        const entries = {
            FATE_OWN: follow();
            FATE_OWN_OLD: follow();
            FATE_TAKEN: start_over();
        }
        const default_action = skip();
        size = 4;
    }

    apply {
        numbers.apply();
    }
}

#endif
