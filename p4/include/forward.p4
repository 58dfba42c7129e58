// SPDX-License-Identifier: Apache-2.0
/* Forwarding. The switch's own pipeline belongs here; a twin has the minimum that makes it usable: a table from
 * ingress port and destination address to a port. Without an entry a packet is dropped after it was measured, as
 * on a tap; a twin that measures in the egress (it defines BRIDGED) drops it there. A clone (second.p4) is not forwarded: its packet was. */
#ifndef XDPMON_FORWARD_P4
#define XDPMON_FORWARD_P4

#define FORWARD_ENTRIES 1024

control Forward(inout headers_t hdr, in ingress_intrinsic_metadata_t ig,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    action send(PortId_t port) {
        tm.ucast_egress_port = port;
    }

#ifdef BRIDGED
    /* Dropped after the queue that is measured: the packet waits in that of its ingress port. */
    action discard() {
        hdr.bridged.discard = 1;
        tm.ucast_egress_port = ig.ingress_port;
    }
#else
    action discard() {
        dprsr.drop_ctl = 1;
    }
#endif

    table forward {
        key = {
            ig.ingress_port  : ternary;
            hdr.ethernet.dst : ternary;
        }
        actions = {
            send;
            discard;
        }
        default_action = discard();
        size = FORWARD_ENTRIES;
    }

    apply {
#ifndef BRIDGED
        tm.bypass_egress = 1;
#endif
#ifdef SECOND_PASS
        if (hdr.second.isValid()) {
            discard();
        } else {
            forward.apply();
        }
#else
        forward.apply();
#endif
    }
}

#endif
