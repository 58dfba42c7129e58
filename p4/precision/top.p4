// SPDX-License-Identifier: Apache-2.0
/* PRECISION as a complete switch program: parser, heavy flows, forwarding. */
#define FLOW_PORTS
#define SECOND_PASS
#include "../include/target.p4"
#include "params.p4"
#include "keys.p4"
#include "question.p4"
#include "../include/second.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/hashing.p4"

#include "tables.p4"
#include "precision.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    SecondPass() second;
    Precision() precision;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        second.apply(ig, q.session);
        precision.apply(hdr, q, dprsr);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
