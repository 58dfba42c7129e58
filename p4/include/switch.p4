// SPDX-License-Identifier: Apache-2.0
/* Everything around the ingress control of a twin: the deparser, and an empty egress that is bypassed.
 * A top file defines `control Ingress` and uses PIPELINE. One whose packets may pass twice: see second.p4.
 * One that measures in the egress defines BRIDGED and `header bridged_h` with a `bit<1> discard`, and provides parser, control and deparser of
 * the egress, and clones there. One that reports to the control plane defines REPORTS and `struct report_t`, has a `report_t report` there, and sets
 * dprsr.digest_type to 1. */
#ifndef XDPMON_SWITCH_P4
#define XDPMON_SWITCH_P4

struct nothing_t {}

control IngressDeparser(packet_out pkt, inout headers_t hdr, in question_t q,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
#ifdef SECOND_PASS
#ifndef BRIDGED
    Mirror() second;
#endif
#endif
#ifdef REPORTS
    Digest<report_t>() reports;
#endif

    apply {
#ifdef SECOND_PASS
#ifndef BRIDGED
        if (dprsr.mirror_type == SECOND_TYPE) {
            second.emit<second_pass_h>(q.session, q.carry);
        }
#endif
#endif
#ifdef REPORTS
        if (dprsr.digest_type == 1) {
            reports.pack(q.report);
        }
#endif
        pkt.emit(hdr);
    }
}

#ifndef BRIDGED
parser EgressParser(packet_in pkt, out nothing_t hdr, out nothing_t md, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition accept;
    }
}

control Egress(inout nothing_t hdr, inout nothing_t md, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t prsr,
               inout egress_intrinsic_metadata_for_deparser_t dprsr,
               inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {}
}

control EgressDeparser(packet_out pkt, inout nothing_t hdr, in nothing_t md,
                       in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply {}
}
#endif

#define PIPELINE                                                                                               \
    Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;  \
    Switch(pipe) main;

#endif
