// SPDX-License-Identifier: Apache-2.0
/* The lean algorithms as a complete switch program: parser, statistics, forwarding. -D LEAN_STATS=MASK compiles some of the
 * statistics: latency 1, loss 2, ooo 4, retrans 8. */
#include "../include/target.p4"
#include "params.p4"
#define FLOW_PORTS
#ifndef LEAN_BITS
#define REPORTS
#endif
#include "../include/headers.p4"
#include "types.p4"
#include "question.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/hashing.p4"
#include "../include/clock.p4"

/* The field lists: a flow in one direction, and in the other one; a packet of a flow; a segment, and the ACK that it expects. */
#define FLOW_FIELDS { 64w0, 32w0xffff, hdr.ipv4.src, 64w0, 32w0xffff, hdr.ipv4.dst, q.ports, 64w0 }
#define BACK_FIELDS { 64w0, 32w0xffff, hdr.ipv4.dst, 64w0, 32w0xffff, hdr.ipv4.src, q.ports[15:0], q.ports[31:16], 64w0 }
#define COPY_FIELDS { 16w0, hdr.ipv4.id, 32w0, 32w0xffff, hdr.ipv4.src, 64w0, 32w0xffff, hdr.ipv4.dst, q.ports, hdr.tcp.seq, hdr.tcp.ack }
#define SEGMENT_FIELDS { 64w0, 32w0xffff, a, 64w0, 32w0xffff, b, ports, 32w0, disc }

#include "tables.p4"
#include "lean.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    Lean() lean;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        lean.apply(hdr, q, ig.ingress_mac_tstamp, dprsr);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
