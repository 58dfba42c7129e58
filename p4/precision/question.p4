// SPDX-License-Identifier: Apache-2.0
/* What the clone of a packet that was admitted carries to its second pass, and the metadata that it leaves the first one in. */
#ifndef XDPMON_PRECISION_QUESTION_P4
#define XDPMON_PRECISION_QUESTION_P4

header second_pass_h {
    bit<32> value; /* that the counter gets, minus the initial value */
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

/* Metadata begin as zeros on this chip; the parser assigns ports only where there are some. */
#define QUESTION_NONE q

#endif
