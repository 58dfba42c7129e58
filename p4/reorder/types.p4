// SPDX-License-Identifier: Apache-2.0
/* Roles of a packet, words of a record, and the comparison of the compiled definition. On a switch records are never torn, so
 * the tags that the eBPF form has in two of the words are 0 here. */
#ifndef XDPMON_REORDER_TYPES_P4
#define XDPMON_REORDER_TYPES_P4

typedef bit<8> role_t;
const role_t ROLE_NONE = 0;   /* neither TCP payload nor SYN */
const role_t ROLE_FIRST = 1;  /* first pass */
const role_t ROLE_TAKE_0 = 2; /* second pass, to way 0 */
const role_t ROLE_TAKE_1 = 3;
const role_t ROLE_SEIZE = 4;  /* second pass, to the bucket of the array */
const role_t ROLE_BEGIN = 5;  /* a SYN without data: its flow's own record restarts with another number */
#define ROLE_TAKE 2 &&& 0xfe  /* both second passes to a way */

/* What a packet found in the array: two comparisons of the record as a one-hot number: its own, and older than T. */
typedef bit<8> fate_t;
const fate_t FATE_NONE = 0;
const fate_t FATE_REFUSED = 1;
const fate_t FATE_OWN = 2;
const fate_t FATE_STALE = 4;     /* another flow's: overwritten, unless the array is closed */
const fate_t FATE_OWN_STALE = 8; /* its own, although older than T */
const fate_t FATE_SEIZED = 16;   /* by a second pass */

#define METER_GREEN 0

/* A count has the upper seven bits of the flow's signature above its number, as on a host: they distinguish flows in digests. The
 * bit between, which on a host records that R was reached, marks an IPv6 prefix here, which a host recognizes by its
 * length; a refused packet reads o and n here. */
#define REORDER_IPV6 0x01000000
#define REORDER_COUNT 0x00ffffff

/* Of a count near its maximum: a second pass writes the record again. A way's record gets the size that corresponds to so many packets. */
#define REORDER_FULL 0x00f00000
#define REORDER_RENEWED 0x01000000

/* How far after a SYN's number nothing is below the expected one; 1 is the SYN's own. */
#define REORDER_FRESH 0x40000001

struct sized_t {
    bit<32> signature;
    bit<32> size; /* 1 in an empty record, so that 0 can mean "the flow's own" */
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

/* Is one number below the other, modulo 2^32? By two comparisons that do not wrap: a stateful ALU compares differences
 * in more than 32 bits, where a negative one is not a large one. Packets that are late across the wrap itself are not detected.
 * A number half of the range away is below, as on a host. */
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
/* below the expected one */
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
