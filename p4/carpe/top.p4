// SPDX-License-Identifier: Apache-2.0
/* Carpe as a complete switch program: parser, bundles, forwarding. */
#define FLOW_PORTS
#define REPORTS
#include "../include/target.p4"
#include "question.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/hashing.p4"

/* The field list of ways and signature: five words of key and one of zeros, as in key_fields_of of bpf/include/key.h. */
#define KEY_WORDS { hdr.ipv4.src, hdr.ipv4.dst, q.ports, hdr.ipv4.protocol, 24w1, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0 }

#include "params.p4"
#include "carpe.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    Carpe() carpe;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        carpe.apply(hdr, q, dprsr);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
