// SPDX-License-Identifier: Apache-2.0
/* What goes to the control plane: a report of a bundle, the news that packets of a group are here, or both at once. */
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

/* Metadata begin as zeros on this chip; the parser assigns ports only where there are some. */
#define QUESTION_NONE q

#endif
