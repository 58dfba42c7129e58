// SPDX-License-Identifier: Apache-2.0
/* The role of a packet for an algorithm that matches responses with requests, and the fields that both contain:
 * `struct question` of bpf/fridge/fridge.bpf.c, with the addresses in the direction of the request. */
#ifndef XDPMON_QUESTION_P4
#define XDPMON_QUESTION_P4

typedef bit<8> role_t;
const role_t ROLE_NONE = 0;
const role_t ROLE_REQUEST = 1;  /* SYN */
const role_t ROLE_RESPONSE = 2; /* SYN-ACK */
const role_t ROLE_FINAL = 3;    /* ends a handshake: the ACK of the SYN-ACK */

/* a is the sender of the request, b its receiver. Addresses are 128 bits, IPv4 as ::ffff:a.b.c.d. */
struct question_t {
    role_t  role;
    bit<32> a0;
    bit<32> a1;
    bit<32> a2;
    bit<32> a3;
    bit<32> b0;
    bit<32> b1;
    bit<32> b2;
    bit<32> b3;
    bit<16> aport;
    bit<16> bport;
    bit<32> disc; /* what distinguishes the requests of one flow */
}

/* The addresses of a question, of the direction of a packet with these ports, or the other one. */
#define QUESTION_DIRECTIONS(transport)   \
    action forward4() {                  \
        q.a2 = 0xffff;                   \
        q.a3 = hdr.ipv4.src;             \
        q.b2 = 0xffff;                   \
        q.b3 = hdr.ipv4.dst;             \
        q.aport = hdr.transport.sport;   \
        q.bport = hdr.transport.dport;   \
    }                                    \
    action reverse4() {                  \
        q.a2 = 0xffff;                   \
        q.a3 = hdr.ipv4.dst;             \
        q.b2 = 0xffff;                   \
        q.b3 = hdr.ipv4.src;             \
        q.aport = hdr.transport.dport;   \
        q.bport = hdr.transport.sport;   \
    }                                    \
    action forward6() {                  \
        q.a0 = hdr.ipv6.src0;            \
        q.a1 = hdr.ipv6.src1;            \
        q.a2 = hdr.ipv6.src2;            \
        q.a3 = hdr.ipv6.src3;            \
        q.b0 = hdr.ipv6.dst0;            \
        q.b1 = hdr.ipv6.dst1;            \
        q.b2 = hdr.ipv6.dst2;            \
        q.b3 = hdr.ipv6.dst3;            \
        q.aport = hdr.transport.sport;   \
        q.bport = hdr.transport.dport;   \
    }                                    \
    action reverse6() {                  \
        q.a0 = hdr.ipv6.dst0;            \
        q.a1 = hdr.ipv6.dst1;            \
        q.a2 = hdr.ipv6.dst2;            \
        q.a3 = hdr.ipv6.dst3;            \
        q.b0 = hdr.ipv6.src0;            \
        q.b1 = hdr.ipv6.src1;            \
        q.b2 = hdr.ipv6.src2;            \
        q.b3 = hdr.ipv6.src3;            \
        q.aport = hdr.transport.dport;   \
        q.bport = hdr.transport.sport;   \
    }

#define QUESTION_NONE { ROLE_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#endif
