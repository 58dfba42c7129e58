// SPDX-License-Identifier: Apache-2.0
/* The fridge as a complete switch program: parser, fridge, forwarding. */
#include "../include/target.p4"
#include "params.p4"
#if FRIDGE_MATCH == 3
#define DNS
#endif
#include "../include/headers.p4"
#include "../include/question.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/clock.p4"
#include "../include/hashing.p4"
#if FRIDGE_MATCH == 3
#include "dns.p4"
#elif FRIDGE_MATCH == 1
#include "data.p4"
#else
#include "../include/handshake.p4"
#endif
#include "../include/capacity.p4"
#include "../include/tables.p4"
#include "fridge.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    Fridge() fridge;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        fridge.apply(hdr, q, ig.ingress_mac_tstamp);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
