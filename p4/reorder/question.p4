// SPDX-License-Identifier: Apache-2.0
/* What a packet carries to its second pass, and what a record that leaves the memory says. */
#ifndef XDPMON_REORDER_QUESTION_P4
#define XDPMON_REORDER_QUESTION_P4

header second_pass_h {
    bit<32> value; /* size that the record gets */
    bit<8>  role;  /* ROLE_TAKE_0, ROLE_TAKE_1, ROLE_SEIZE */
    bit<24> pad;
}

/* struct reorder_report of bpf/reorder/reorder.bpf.c; a stateful ALU has one output, so of the signature there is what lies in n. */
struct report_t {
    bit<32> prefix; /* the first 32 bits of an IPv6 address */
    bit<32> n; /* {upper bits of the signature 7, IPv6 1, n 24} */
    bit<32> o;
}

struct question_t {
    second_pass_h carry;
    report_t report;
}

/* Metadata begin as zeros on this chip. */
#define QUESTION_NONE q

#endif
