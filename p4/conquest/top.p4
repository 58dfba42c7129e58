// SPDX-License-Identifier: Apache-2.0
/* ConQuest as a whole switch program: the ingress notes arrival and flow, the egress measures the queue in between. */
#define FLOW_PORTS
#define BRIDGED
#include "../include/target.p4"
#include "question.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/clock.p4"
#include "../include/hashing.p4"
#include "params.p4"
#include "arrive.p4"
#include "tables.p4"
#include "conquest.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    Arrive() arrive;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        arrive.apply(hdr, q, ig);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

struct leaving_t {
    bridged_h bridged;
    report_h report;
}

parser EgressParser(packet_in pkt, out leaving_t hdr, out answer_t md, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition select(pkt.lookahead<bit<8>>()) {
            FRONT_REPORT: report;
            default: bridged;
        }
    }

    state bridged {
        pkt.extract(hdr.bridged);
        transition accept;
    }

    state report {
        pkt.extract(hdr.report);
        transition accept;
    }
}

control Egress(inout leaving_t hdr, inout answer_t md, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t prsr,
               inout egress_intrinsic_metadata_for_deparser_t dprsr,
               inout egress_intrinsic_metadata_for_output_port_t oport) {
    Conquest() conquest;

    apply {
        if (hdr.bridged.isValid()) {
            conquest.apply(hdr.bridged, md, eg.egress_port, prsr.global_tstamp, dprsr);
            if (hdr.bridged.discard == 1) {
                dprsr.drop_ctl = 1;
            }
        }
    }
}

/* A report is sent to the collector as it is, in front of the copy; what was bridged is not sent. */
control EgressDeparser(packet_out pkt, inout leaving_t hdr, in answer_t md,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() reports;

    apply {
        if (dprsr.mirror_type == REPORT_TYPE) {
            reports.emit<report_h>(md.session, md.report);
        }
        pkt.emit(hdr.report);
    }
}

PIPELINE
