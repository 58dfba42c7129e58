// SPDX-License-Identifier: Apache-2.0
/* Metadata of the parser for queries, in addition to the headers. */
#ifndef XDPMON_BEAUCOUP_QUESTION_P4
#define XDPMON_BEAUCOUP_QUESTION_P4

struct question_t {
    bit<32> ports; /* source and destination, 0 without */
    bit<8>  kind;  /* bit 0: there are ports; bit 1: TCP */
}

/* The parts of a query's key; an IPv4 address is the last word of each. */
struct beaucoup_key_t {
    bit<32> src0;
    bit<32> src1;
    bit<32> src2;
    bit<32> src3;
    bit<32> dst0;
    bit<32> dst1;
    bit<32> dst2;
    bit<32> dst3;
    bit<32> ports;
    bit<8>  protocol;
}

/* The chip initializes metadata to zeros; the parser assigns these only if the packet has them. */
#define QUESTION_NONE q

#endif
