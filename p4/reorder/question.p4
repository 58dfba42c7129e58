// SPDX-License-Identifier: Apache-2.0
/* Header of a clone for its second pass, and the report of replaced records. */
#ifndef XDPMON_REORDER_QUESTION_P4
#define XDPMON_REORDER_QUESTION_P4

header second_pass_h {
    bit<32> value; /* size of the new record */
    bit<8>  role;  /* ROLE_TAKE_0, ROLE_TAKE_1, ROLE_SEIZE */
    bit<7>  pad;
    bit<1>  bank;  /* of the first pass */
}

/* struct reorder_report of bpf/reorder/reorder.bpf.c, of the array's record and of the way's: a flow that moves from its bucket to a
 * way reports both, all others one, and the other's n is 0. A stateful ALU has one output, so only the part of the signature in n is reported. */
struct report_t {
#if REORDER_METHOD != 1
    bit<32> prefix; /* the first 32 bits of an IPv6 address */
    bit<32> n; /* {upper bits of the signature 7, IPv6 1, n 24} */
    bit<32> o;
#endif
#if REORDER_METHOD != 0
    bit<32> way_prefix;
    bit<32> way_n;
    bit<32> way_o;
#endif
}

struct question_t {
    second_pass_h carry;
    MirrorId_t session;
    report_t report;
}

/* The chip initializes metadata to zeros. */
#define QUESTION_NONE q

#endif
