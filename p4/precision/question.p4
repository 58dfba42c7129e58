// SPDX-License-Identifier: Apache-2.0
/* Header of an admitted packet's clone for its second pass, and the metadata from which the first one fills it. */
#ifndef XDPMON_PRECISION_QUESTION_P4
#define XDPMON_PRECISION_QUESTION_P4

header second_pass_h {
    bit<32> value; /* new value of the counter, minus the initial value */
    bit<8>  way;   /* ROLE_TAKE_0 or ROLE_TAKE_1 */
    bit<7>  pad;
    bit<1>  bank;  /* of the first pass */
}

struct question_t {
    second_pass_h carry;
    MirrorId_t session;
    bit<32> ports; /* source and destination, 0 without */
#ifdef FLOW_KIND
    bit<8> kind; /* bit 0: there are ports; bit 1: TCP */
#endif
}

/* The chip initializes metadata to zeros; the parser assigns ports only if the packet has them. */
#define QUESTION_NONE q

#endif
