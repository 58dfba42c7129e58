// SPDX-License-Identifier: Apache-2.0
/* Roles of a packet, words of a record, and the comparison of the definition that is compiled. Nothing tears on a switch, so
 * the tags that the eBPF form keeps in three of the words are 0 here. */
#ifndef XDPMON_REORDER_TYPES_P4
#define XDPMON_REORDER_TYPES_P4

typedef bit<8> role_t;
const role_t ROLE_NONE = 0;   /* no TCP payload over IPv4 */
const role_t ROLE_FIRST = 1;  /* first pass */
const role_t ROLE_TAKE_0 = 2; /* second pass, to way 0 */
const role_t ROLE_TAKE_1 = 3;
const role_t ROLE_SEIZE = 4;  /* second pass, to the bucket of the array */

struct sized_t {
    bit<32> signature;
    bit<32> size; /* of an empty record 1, so that 0 can say "the flow's own" */
}

struct timed_t {
    bit<32> signature;
    bit<32> time;
}

struct prefix_t {
    bit<32> tag; /* 0 here; on a host 16 bits of tag and the first 16 of 48 bits of prefix */
    bit<32> prefix;
}

struct number_t {
    bit<32> o;
    bit<32> number;
}

/* Signed difference of the packet's number and the one that was kept, as a comparison of one stateful ALU. */
#define NEGATIVE 0x80000000

#if REORDER_DEFINITION == 1
/* below the predecessor */
#define NEXT first
#define FOLLOW(v)                                                                                              \
    if (first - v.number >= NEGATIVE) {                                                                        \
        v.o = v.o + 1;                                                                                         \
    }                                                                                                          \
    v.number = first;
#elif REORDER_DEFINITION == 2
/* behind what was expected */
#define NEXT next
#define FOLLOW(v)                                                                                              \
    if (v.number - first >= NEGATIVE) {                                                                        \
        v.o = v.o + 1;                                                                                         \
    }                                                                                                          \
    v.number = next;
#else
/* below the largest */
#define NEXT first
#define FOLLOW(v)                                                                                              \
    if (first - v.number >= NEGATIVE) {                                                                        \
        v.o = v.o + 1;                                                                                         \
    } else {                                                                                                   \
        v.number = first;                                                                                      \
    }
#endif

#endif
