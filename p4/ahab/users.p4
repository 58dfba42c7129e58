// SPDX-License-Identifier: Apache-2.0
/* Who sends: the slice, what a user is in it, and the words that rows are hashed over, those of user_fields() in bpf/ahab/user.h. */
#ifndef XDPMON_AHAB_USERS_P4
#define XDPMON_AHAB_USERS_P4

#define USER_FIELDS { a0, a1, a2, a3, b0, b1, b2, b3, ports, 48w0, slice }

/* A bare TCP segment: one whose IP packet is as long as its headers. */
#define BARE_4(words) (true, true, words, 20 + 4 * words, _): bare();
#define BARE_6(words) (true, false, words, _, 4 * words): bare();
#define BARE(words) BARE_4(words) BARE_6(words)

control AhabMembers(in headers_t hdr, in ingress_intrinsic_metadata_t ig, inout bit<16> slice, inout bit<8> user, inout bit<8> scale,
                    inout bit<8> square) {
    action member(bit<16> number, bit<8> kind, bit<8> factor, bit<8> weight) {
        slice = number;
        user = kind;
        scale = factor;
        square = weight;
    }

    action stray() {}

    /* Of all that fit the first one. */
    table members4 {
        key = {
            hdr.vlan[0].isValid() : ternary;
            hdr.vlan[0].tci       : ternary;
            ig.ingress_port       : ternary;
            hdr.ipv4.src          : ternary;
            hdr.ipv4.dst          : ternary;
        }
        actions = {
            member;
            stray;
        }
        default_action = stray();
        size = 4608;
    }

    table members6 {
        key = {
            hdr.vlan[0].isValid() : ternary;
            hdr.vlan[0].tci       : ternary;
            ig.ingress_port       : ternary;
            hdr.ipv6.src0         : ternary;
            hdr.ipv6.src1         : ternary;
            hdr.ipv6.src2         : ternary;
            hdr.ipv6.src3         : ternary;
            hdr.ipv6.dst0         : ternary;
            hdr.ipv6.dst1         : ternary;
            hdr.ipv6.dst2         : ternary;
            hdr.ipv6.dst3         : ternary;
        }
        actions = {
            member;
            stray;
        }
        default_action = stray();
        size = 512;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            members4.apply();
        } else if (hdr.ipv6.isValid()) {
            members6.apply();
        }
    }
}

control AhabKinds(inout headers_t hdr) {
    action data() { hdr.bridged.kind = KIND_DATA; }
    action bare() { hdr.bridged.kind = KIND_BARE; }
    action other() { hdr.bridged.kind = KIND_OTHER; }

    table kinds {
        key = {
            hdr.tcp.isValid()  : ternary;
            hdr.ipv4.isValid() : ternary;
            hdr.tcp.words      : ternary;
            hdr.ipv4.total     : ternary;
            hdr.ipv6.payload   : ternary;
        }
        actions = {
            data;
            bare;
            other;
        }
        const entries = {
            BARE(5)
            BARE(6)
            BARE(7)
            BARE(8)
            BARE(9)
            BARE(10)
            BARE(11)
            BARE(12)
            BARE(13)
            BARE(14)
            BARE(15)
            (true, _, _, _, _): data();
        }
        const default_action = other();
        size = 24;
    }

    apply {
        kinds.apply();
    }
}

control AhabUsers(in headers_t hdr, in question_t q, in bit<8> user, in bit<16> slice, inout bit<16> row_0, inout bit<16> row_1,
                  inout bit<16> row_2, inout bit<16> row_3) {
    bit<32> a0 = 0;
    bit<32> a1 = 0;
    bit<32> a2 = 0;
    bit<32> a3 = 0;
    bit<32> b0 = 0;
    bit<32> b1 = 0;
    bit<32> b2 = 0;
    bit<32> b3 = 0;
    bit<32> ports = 0;

    HASH_ROW(hash_0, HASH_ROW_0);
    HASH_ROW(hash_1, HASH_ROW_1);
    HASH_ROW(hash_2, HASH_ROW_2);
    HASH_ROW(hash_3, HASH_ROW_3);

    action flow4() {
        a2 = 0xffff;
        a3 = hdr.ipv4.src;
        b2 = 0xffff;
        b3 = hdr.ipv4.dst;
        ports = q.ports;
    }

    action flow6() {
        a0 = hdr.ipv6.src0;
        a1 = hdr.ipv6.src1;
        a2 = hdr.ipv6.src2;
        a3 = hdr.ipv6.src3;
        b0 = hdr.ipv6.dst0;
        b1 = hdr.ipv6.dst1;
        b2 = hdr.ipv6.dst2;
        b3 = hdr.ipv6.dst3;
        ports = q.ports;
    }

    action source4(bit<32> m) {
        a2 = 0xffff;
        a3 = hdr.ipv4.src & m;
    }

    action source6(bit<32> m0, bit<32> m1, bit<32> m2, bit<32> m3) {
        a0 = hdr.ipv6.src0 & m0;
        a1 = hdr.ipv6.src1 & m1;
        a2 = hdr.ipv6.src2 & m2;
        a3 = hdr.ipv6.src3 & m3;
    }

    action destination4(bit<32> m) {
        b2 = 0xffff;
        b3 = hdr.ipv4.dst & m;
    }

    action destination6(bit<32> m0, bit<32> m1, bit<32> m2, bit<32> m3) {
        b0 = hdr.ipv6.dst0 & m0;
        b1 = hdr.ipv6.dst1 & m1;
        b2 = hdr.ipv6.dst2 & m2;
        b3 = hdr.ipv6.dst3 & m3;
    }

    table words {
        key = {
            user               : exact;
            hdr.ipv4.isValid() : exact;
        }
        actions = {
            flow4;
            flow6;
            source4;
            source6;
            destination4;
            destination6;
        }
        default_action = flow4();
        size = 256;
    }

    /* 16 bits of each, for a stage hands six times as many from its hashes to actions and registers. */
    action place_0() { row_0 = (bit<16>)hash_0.get(USER_FIELDS); }
    action place_1() { row_1 = (bit<16>)hash_1.get(USER_FIELDS); }
    action place_2() { row_2 = (bit<16>)hash_2.get(USER_FIELDS); }
    action place_3() { row_3 = (bit<16>)hash_3.get(USER_FIELDS); }

    apply {
        words.apply();
        place_0();
        place_1();
        place_2();
        place_3();
    }
}

#endif
