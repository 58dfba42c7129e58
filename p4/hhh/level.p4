// SPDX-License-Identifier: Apache-2.0
/* The level of a packet, drawn in its first pass and contained in its clone, and the prefix of its source. */
#ifndef XDPMON_HHH_LEVEL_P4
#define XDPMON_HHH_LEVEL_P4

control HhhLevel(in headers_t hdr, in bit<2> drawn, out bit<32> prefix, out bit<32> tag) {
    action level_1() {
        prefix = hdr.ipv4.src & 32w0xff000000;
        tag = 0x101;
    }

    action level_2() {
        prefix = hdr.ipv4.src & 32w0xffff0000;
        tag = 0x201;
    }

    action level_3() {
        prefix = hdr.ipv4.src & 32w0xffffff00;
        tag = 0x301;
    }

    action level_4() {
        prefix = hdr.ipv4.src & 32w0xffffffff;
        tag = 0x401;
    }

    table levels {
        key = {
            hdr.second.isValid() : ternary;
            drawn                : ternary;
            hdr.second.level     : ternary;
        }
        actions = {
            level_1;
            level_2;
            level_3;
            level_4;
        }
        const entries = {
            (false, 0, _): level_1();
            (true, _, 1): level_1();
            (false, 1, _): level_2();
            (true, _, 2): level_2();
            (false, 2, _): level_3();
            (true, _, 3): level_3();
            (false, 3, _): level_4();
            (true, _, 4): level_4();
        }
        const default_action = level_4();
        size = 8;
    }

    apply {
        prefix = 0;
        tag = 0;
        levels.apply();
    }
}

#endif
