// SPDX-License-Identifier: Apache-2.0
/* Header of an admitted packet's clone for its second pass, and the metadata from which the first one fills it. */
#ifndef XDPMON_HHH_QUESTION_P4
#define XDPMON_HHH_QUESTION_P4

header second_pass_h {
    bit<32> value; /* new value of the counter, minus the initial value */
    bit<8>  way;   /* ROLE_TAKE_0 or ROLE_TAKE_1 */
    bit<8>  level; /* of the prefix: of the source if there are two */
#if HHH_FIELDS == 3
    bit<8>  other; /* of the destination's prefix */
#endif
    bit<7>  pad;
    bit<1>  bank;  /* of the first pass */
}

struct question_t {
    second_pass_h carry;
    MirrorId_t session;
}

/* The chip initializes metadata to zeros. */
#define QUESTION_NONE q

#endif
