// SPDX-License-Identifier: Apache-2.0
/* What the ingress hands to the egress in front of a packet, and what the egress sends to a collector in front of a copy. */
#ifndef XDPMON_CONQUEST_QUESTION_P4
#define XDPMON_CONQUEST_QUESTION_P4

const bit<8> FRONT_BRIDGED = 0;
const bit<8> FRONT_REPORT = 1;

header bridged_h {
    bit<8>  front;
    bit<8>  session; /* of the mirror that reports go to: one a pipe */
    bit<7>  pad_0;
    bit<1>  counted; /* it has a flow */
    bit<7>  pad_1;
    bit<1>  discard; /* nobody wants it after the queue */
    bit<32> arrival; /* ns */
    bit<32> first;   /* ns where the oldest snapshot begins that it reads */
    bit<32> row_0;   /* hashes of the flow */
    bit<32> row_1;
}

header report_h {
    bit<8>  front;
    bit<32> flow;  /* row_1 of the flow */
    bit<32> delay; /* ns */
    bit<32> limit; /* alpha of all flows */
}

struct question_t {
    bit<32> ports; /* source and destination, 0 without */
}

struct answer_t {
    report_h report;
    MirrorId_t session;
}

#define QUESTION_NONE q

#endif
