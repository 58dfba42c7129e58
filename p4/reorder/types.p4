// SPDX-License-Identifier: Apache-2.0
/* Roles of a packet, words of a record, and the comparison of the definition that is compiled. Nothing tears on a switch, so
 * the tags that the eBPF form keeps in two of the words are 0 here. */
#ifndef XDPMON_REORDER_TYPES_P4
#define XDPMON_REORDER_TYPES_P4

typedef bit<8> role_t;
const role_t ROLE_NONE = 0;   /* neither TCP payload nor SYN */
const role_t ROLE_FIRST = 1;  /* first pass */
const role_t ROLE_TAKE_0 = 2; /* second pass, to way 0 */
const role_t ROLE_TAKE_1 = 3;
const role_t ROLE_SEIZE = 4;  /* second pass, to the bucket of the array */
const role_t ROLE_BEGIN = 5;  /* a SYN without data: its flow's own record begins with another number */
#define ROLE_TAKE 2 &&& 0xfe  /* both second passes to a way */

/* What a packet found in the array: two comparisons of the record as a one-hot number: its own, and older than T. */
typedef bit<8> fate_t;
const fate_t FATE_NONE = 0;
const fate_t FATE_REFUSED = 1;
const fate_t FATE_OWN = 2;
const fate_t FATE_STALE = 4;     /* another flow's: overwritten, unless the array is closed */
const fate_t FATE_OWN_STALE = 8; /* its own all the same */
const fate_t FATE_SEIZED = 16;   /* by a second pass */

#define METER_GREEN 0

/* A count holds the upper seven bits of the flow's signature over its number, as on a host: digests tell flows apart by them. The
 * bit between, which says on a host that R is reached, says here that the prefix is one of IPv6, which a host sees by its
 * length; a refused packet reads o and n here. */
#define REORDER_IPV6 0x01000000
#define REORDER_COUNT 0x00ffffff

/* Of a count that is near its end: the record is written again by a second pass. A way's gets the size that so many packets came to. */
#define REORDER_FULL 0x00f00000
#define REORDER_RENEWED 0x01000000

/* How far ahead of a SYN's number nothing is behind what was expected; 1 is the SYN's own. */
#define REORDER_FRESH 0x40000001

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

/* Is one number behind the other, around 2^32? By two comparisons that do not wrap themselves: a stateful ALU compares differences
 * in more than 32 bits, in which one below zero is not a large one. Of packets that are late across the turn itself it sees none.
 * What is half a turn away is behind, as on a host. */
#define HALF 0x80000000

#if REORDER_DEFINITION == 1
/* below the predecessor */
#define NEXT first
#define FOLLOW(v)                                                                                              \
    if (first < v.number && v.number - first <= HALF) {                                                        \
        v.o = v.o + 1;                                                                                         \
    }                                                                                                          \
    v.number = first;
#elif REORDER_DEFINITION == 2
/* behind what was expected */
#define NEXT next
#define FOLLOW(v)                                                                                              \
    if (first > v.number && first - v.number <= HALF) {                                                        \
        v.o = v.o + 1;                                                                                         \
    }                                                                                                          \
    v.number = next;
#else
/* below the largest */
#define NEXT first
#define FOLLOW(v)                                                                                              \
    if (first < v.number && v.number - first <= HALF) {                                                        \
        v.o = v.o + 1;                                                                                         \
    } else {                                                                                                   \
        v.number = first;                                                                                      \
    }
#endif

#endif
