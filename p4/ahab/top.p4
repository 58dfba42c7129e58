// SPDX-License-Identifier: Apache-2.0
/* AHAB as a whole switch program: the ingress knows rate and limit, the egress what becomes of packets and limits. */
#define FLOW_PORTS
#define BRIDGED
#define SECOND_PASS
#include "../include/target.p4"
#include "question.p4"
#include "../include/second.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/hashing.p4"
#include "params.p4"
#include "tables.p4"
#include "users.p4"
#include "ahab.p4"
#include "leaving.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    MirrorId_t session = 0;

    Reasons() reasons;
    SecondPass() second;
    Ahab() ahab;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        second.apply(ig, session);
        ahab.apply(hdr, q, ig, session);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

struct leaving_t {
    bridged_h bridged;
    second_pass_h second;
}

parser EgressParser(packet_in pkt, out leaving_t hdr, out answer_t md, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition select(pkt.lookahead<bit<8>>()) {
            FRONT_SECOND: second;
            default: bridged;
        }
    }

    state bridged {
        pkt.extract(hdr.bridged);
        transition accept;
    }

    state second {
        pkt.extract(hdr.second);
        transition accept;
    }
}

control Egress(inout leaving_t hdr, inout answer_t md, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t prsr,
               inout egress_intrinsic_metadata_for_deparser_t dprsr,
               inout egress_intrinsic_metadata_for_output_port_t oport) {
    AhabLeaving() leaving;

    apply {
        if (hdr.bridged.isValid()) {
            if (hdr.bridged.counted == 1) {
                leaving.apply(hdr.bridged, md, dprsr);
            }
            if (hdr.bridged.discard == 1) {
                dprsr.drop_ctl = 1;
            }
        }
    }
}

/* A clone returns to the ingress with what it carries in front; what was bridged is not sent. */
control EgressDeparser(packet_out pkt, inout leaving_t hdr, in answer_t md,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() second;

    apply {
        if (dprsr.mirror_type == SECOND_MIRROR) {
            second.emit<second_pass_h>(md.session, md.carry);
        }
        pkt.emit(hdr.second);
    }
}

PIPELINE
