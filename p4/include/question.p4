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

#define QUESTION_NONE { ROLE_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#endif
