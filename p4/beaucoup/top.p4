// SPDX-License-Identifier: Apache-2.0
/* BeauCoup as a complete switch program: parser, queries, forwarding. */
#define FLOW_PORTS
#define FLOW_KIND
#include "../include/target.p4"
#include "question.p4"
#include "../include/headers.p4"
#include "../include/parser.p4"
#include "../include/reasons.p4"
#include "../include/clock.p4"
#include "../include/forward.p4"
#include "../include/switch.p4"
#include "../include/hashing.p4"
#include "params.p4"
#include "tables.p4"
#include "beaucoup.p4"

/* Hashes use the addresses of both families: those of the missing header must be zeros, and not what
 * the compiler places in the same container. */
@pa_no_overlay("ingress", "hdr.ipv4.src")
@pa_no_overlay("ingress", "hdr.ipv4.dst")
@pa_no_overlay("ingress", "hdr.ipv4.id")
@pa_no_overlay("ingress", "hdr.ipv4.protocol")
@pa_no_overlay("ingress", "hdr.ipv6.next")
@pa_no_overlay("ingress", "hdr.ipv6.src0")
@pa_no_overlay("ingress", "hdr.ipv6.src1")
@pa_no_overlay("ingress", "hdr.ipv6.src2")
@pa_no_overlay("ingress", "hdr.ipv6.src3")
@pa_no_overlay("ingress", "hdr.ipv6.dst0")
@pa_no_overlay("ingress", "hdr.ipv6.dst1")
@pa_no_overlay("ingress", "hdr.ipv6.dst2")
@pa_no_overlay("ingress", "hdr.ipv6.dst3")
@pa_no_overlay("ingress", "hdr.tcp.flags")
control Ingress(inout headers_t hdr, inout question_t q, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Reasons() reasons;
    Beaucoup() beaucoup;
    Forward() forward;

    apply {
        reasons.apply(hdr, prsr);
        beaucoup.apply(hdr, q, ig, tm);
        forward.apply(hdr, ig, dprsr, tm);
    }
}

PIPELINE
