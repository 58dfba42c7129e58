// SPDX-License-Identifier: Apache-2.0
/* A second pass, by a clone: the packet is forwarded immediately, and a copy of it returns through the looping port
 * to the ingress of its pipe, with the data to be written in a header, and ends there.
 *
 * Not by resubmission, which needs neither port nor session. A resubmitted packet is overtaken by later ones of its
 * own flow, which is reordering caused by the monitor; and bit 0 of drop_ctl, with which a tap drops what it has measured,
 * also cancels the resubmission, so that nothing is ever admitted. Chen, "Designing Compact Data Structures for Network
 * Measurement and Control", section 3.3.3, clones for the first reason.
 *
 * A program that uses it defines SECOND_PASS and `header second_pass_h` with a `bit<1> bank` (a window may end between the
 * passes), has `second_pass_h carry` and `MirrorId_t session` in its question_t, applies SecondPass, and sets
 * dprsr.mirror_type to SECOND_TYPE. The control plane makes the sessions 1 to 4, one per pipe, to SECOND_PORT of that pipe: registers
 * belong to a pipe. 128 bytes of a copy are enough. */
#ifndef XDPMON_SECOND_P4
#define XDPMON_SECOND_P4

#define SECOND_TYPE 1

/* Ports count from 0 in every pipe, whose number is in the two bits above. */
#if __TARGET_TOFINO__ == 2
#define SECOND_PORT 6 &&& 0x7f
#else
#define SECOND_PORT 68 &&& 0x7f
#endif

control SecondPass(in ingress_intrinsic_metadata_t ig, out MirrorId_t session) {
    action through(MirrorId_t s) { session = s; }

    table sessions {
        key = {
            ig.ingress_port : ternary;
        }
        actions = {
            through;
        }
        const entries = {
            0x000 &&& 0x180: through(1);
            0x080 &&& 0x180: through(2);
            0x100 &&& 0x180: through(3);
        }
        const default_action = through(4);
        size = 4;
    }

    apply {
        sessions.apply();
    }
}

#endif
