// SPDX-License-Identifier: Apache-2.0
/* The ingress: when the packet arrived, where the oldest snapshot begins that it will read, and the hashes of its flow over the words of
 * bpf/include/key.h. */
#ifndef XDPMON_CONQUEST_ARRIVE_P4
#define XDPMON_CONQUEST_ARRIVE_P4

#define FLOW_4 { hdr.ipv4.src, hdr.ipv4.dst, q.ports, hdr.ipv4.protocol, 24w1, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0, 32w0 }
#define FLOW_6 { hdr.ipv6.src2, hdr.ipv6.src3, q.ports, hdr.ipv6.next, 24w3, hdr.ipv6.dst2, hdr.ipv6.dst3, hdr.ipv6.src0, \
                 hdr.ipv6.src1, hdr.ipv6.dst0, hdr.ipv6.dst1, 32w0 }

control Arrive(inout headers_t hdr, in question_t q, in ingress_intrinsic_metadata_t ig) {
    HASH_ROW(row_0_4, HASH_ROW_0);
    HASH_ROW(row_1_4, HASH_ROW_1);
    HASH_ROW(row_0_6, HASH_ROW_0);
    HASH_ROW(row_1_6, HASH_ROW_1);

    /* Reports leave by the mirror of the pipe that the packet arrived by. */
    action through(bit<8> session) { hdr.bridged.session = session; }

    table sessions {
        key = {
            ig.ingress_port : ternary;
        }
        actions = {
            through;
        }
        const entries = {
            0x000 &&& 0x180: through(1);
            0x080 &&& 0x180: through(2);
            0x100 &&& 0x180: through(3);
        }
        const default_action = through(4);
        size = 4;
    }

    action bridge() {
        hdr.bridged.setValid();
        hdr.bridged.front = FRONT_BRIDGED;
        hdr.bridged.pad_0 = 0;
        hdr.bridged.pad_1 = 0;
        hdr.bridged.counted = 0;
        hdr.bridged.discard = 0;
        hdr.bridged.row_0 = 0;
        hdr.bridged.row_1 = 0;
        hdr.bridged.arrival = ig.ingress_mac_tstamp[31:0];
        hdr.bridged.first = ig.ingress_mac_tstamp[31:0] + CONQUEST_NEAREST;
    }

    action begin() { hdr.bridged.first = hdr.bridged.first & CONQUEST_WINDOW; }

    action flow_0_4() { hdr.bridged.row_0 = row_0_4.get(FLOW_4); }
    action flow_0_6() { hdr.bridged.row_0 = row_0_6.get(FLOW_6); }
    action flow_1_4() { hdr.bridged.row_1 = row_1_4.get(FLOW_4); }
    action flow_1_6() { hdr.bridged.row_1 = row_1_6.get(FLOW_6); }
    action count() { hdr.bridged.counted = 1; }

    apply {
        bridge();
        sessions.apply();
        begin();
        if (hdr.ipv4.isValid()) {
            flow_0_4();
            flow_1_4();
            count();
        } else if (hdr.ipv6.isValid()) {
            flow_0_6();
            flow_1_6();
            count();
        }
    }
}

#endif
