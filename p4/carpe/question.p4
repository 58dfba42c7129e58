// SPDX-License-Identifier: Apache-2.0
/* Digests to the control plane: a report of a bundle, the first packet of a group, or both. */
#ifndef XDPMON_CARPE_QUESTION_P4
#define XDPMON_CARPE_QUESTION_P4

struct report_t {
    bit<32> src;
    bit<32> dst;
    bit<32> ports;
    bit<8>  protocol;
    bit<8>  what;  /* REPORT_BUNDLE, REPORT_GROUP */
    bit<32> units; /* tau of the bundle */
}

struct question_t {
    report_t report;
    bit<32> ports; /* source and destination, 0 without */
}

/* The chip initializes metadata to zeros; the parser assigns ports only if the packet has them. */
#define QUESTION_NONE q

#endif
