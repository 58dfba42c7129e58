// SPDX-License-Identifier: Apache-2.0
/* Reordering as a complete switch program: parser, records, forwarding. */
#define SECOND_PASS
#define REPORTS
#include "../include/target.p4"
#include "params.p4"
#include "question.p4"
#include "../include/second.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/clock.p4"
#include "../include/hashing.p4"

/* The field lists: a flow in one direction, and its prefix in place of the source, as in bpf/reorder/reorder.bpf.c. */
#define FLOW_FIELDS { a0, a1, a2, a3, b0, b1, b2, b3, hdr.tcp.sport, hdr.tcp.dport, 64w0 }
#define PREFIX_FIELDS { 64w0, p2, p3, 128w0, 32w0, 64w0 }

#include "types.p4"
#include "tables.p4"
#include "reorder.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    SecondPass() second;
    Reorder() reorder;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        second.apply(ig, q.session);
        reorder.apply(hdr, q, ig.ingress_mac_tstamp, dprsr);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
