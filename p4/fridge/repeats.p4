// SPDX-License-Identifier: Apache-2.0
/* Stage 5, repeated requests: by the number of insertions since the earlier copy, if its slot still had it. From these the control
 * plane estimates how many different requests x insertions are (reason: bpf/fridge/fridge.bpf.c). */
#ifndef XDPMON_FRIDGE_REPEATS_P4
#define XDPMON_FRIDGE_REPEATS_P4

control FridgeRepeats(in role_t role, in fate_t fate, in cell_t cell) {
    Register<bit<32>, cell_t>(FRIDGE_REPEATS_ENTRIES, 0) fridge_repeats;

    RegisterAction<bit<32>, cell_t, bit<32>>(fridge_repeats) add_repeat = {
        void apply(inout bit<32> v) {
            v = v |+| 1;
        }
    };

    action add() { add_repeat.execute(cell); }
    action skip() {}

    table repeats {
        key = {
            role : exact;
            fate : exact;
        }
        actions = {
            add;
            skip;
        }
        const entries = {
            (ROLE_REQUEST, FATE_REPEATED): add();
            (ROLE_REQUEST, FATE_AGAIN): add();
        }
        const default_action = skip();
        size = 2;
    }

    apply {
        repeats.apply();
    }
}

#endif
