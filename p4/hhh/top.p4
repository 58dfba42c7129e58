// SPDX-License-Identifier: Apache-2.0
/* Hierarchical heavy hitters as a complete switch program: parser, prefixes, forwarding. */
#define SECOND_PASS
#include "../include/target.p4"
#include "params.p4"
#include "question.p4"
#include "../include/second.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/hashing.p4"

/* The field list of both rows: the words of the key and zeros, as in key_fields_of of bpf/include/key.h. */
#define KEY_WORDS { KEY_WORD_0, 32w0, tag, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0 }

#include "tables.p4"
#include "hhh.p4"

control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    SecondPass() second;
    Hhh() hhh;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        second.apply(ig, q.session);
        hhh.apply(hdr, q, dprsr);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
