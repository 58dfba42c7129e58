// SPDX-License-Identifier: Apache-2.0
/* Metadata of the parser for the statistics, and their reports. */
#ifndef XDPMON_LEAN_QUESTION_P4
#define XDPMON_LEAN_QUESTION_P4

/* struct lean_report of bpf/lean/frame.h without the places in the sketch, which the control plane hashes itself. */
struct report_t {
    bit<32> src;
    bit<32> dst;
    bit<32> ports;
    bit<8>  stats; /* LEAN_STATS bits; bit 0, latency: of the opposite direction's flow */
    bit<8>  protocol;
}

struct question_t {
    bit<32> ports; /* source, destination */
#ifdef REPORTS
    report_t report;
#endif
}

/* The chip initializes metadata to zeros. */
#define QUESTION_NONE q

#endif
