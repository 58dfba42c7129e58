// SPDX-License-Identifier: Apache-2.0
/* What the clone of a packet that was admitted carries to its second pass, and the metadata that it leaves the first one in. */
#ifndef XDPMON_HHH_QUESTION_P4
#define XDPMON_HHH_QUESTION_P4

header second_pass_h {
    bit<32> value; /* that the counter gets, minus the initial value */
    bit<8>  way;   /* ROLE_TAKE_0 or ROLE_TAKE_1 */
    bit<8>  level; /* 1 to 4: bytes of the prefix */
    bit<7>  pad;
    bit<1>  bank;  /* of the first pass */
}

struct question_t {
    second_pass_h carry;
    MirrorId_t session;
}

/* Metadata begin as zeros on this chip. */
#define QUESTION_NONE q

#endif
