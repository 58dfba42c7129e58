// SPDX-License-Identifier: Apache-2.0
/* Kinds of packets, the words of their records, and states of a record. */
#ifndef XDPMON_LEAN_TYPES_P4
#define XDPMON_LEAN_TYPES_P4

/* A TCP packet's payload. */
typedef bit<8> kind_t;
const kind_t KIND_NONE = 0;      /* no TCP over IPv4 */
const kind_t KIND_BARE = 1;      /* no payload */
const kind_t KIND_PROBE = 2;     /* one byte */
const kind_t KIND_DATA = 4;      /* more */

/* Two comparisons of a way's record as a one-hot number: the flow's own, and silent for so long that it may be replaced. */
typedef bit<8> fate_t;
const fate_t FATE_NONE = 0;      /* not looked at */
const fate_t FATE_OTHER = 1;     /* another flow's */
const fate_t FATE_OWN = 2;
const fate_t FATE_TAKEN = 4;     /* another flow's that was silent: replaced by this flow */
const fate_t FATE_OWN_OLD = 8;   /* its own, although silent */

/* Two comparisons of the last packet: the same digest, and older than the window. */
typedef bit<8> copy_t;
const copy_t COPY = 2;           /* the same, and not older */

/* Two comparisons of T: older than a window, older than two. */
typedef bit<8> turn_t;
const turn_t TURN_NONE = 1;
const turn_t TURN_ONE = 2;
const turn_t TURN_ALL = 8;

/* Two comparisons of a number: below, and too late (ooo) or too far (retrans). */
typedef bit<8> found_t;
const found_t FOUND = 2;         /* below, and neither */

/* One comparison of a row: the flow's estimate reaches the limit. */
typedef bit<8> row_t;
const row_t REACHED = 2;

struct small_t {
    bit<16> signature; /* or digest */
    bit<16> time;      /* ticks of 2^16 ns */
}

struct large_t {
    bit<32> signature;
    bit<32> time;      /* ticks of 2^16 ns */
}

struct max_t {
    bit<32> max;
    bit<32> time;      /* ticks of 2^8 ns */
}

struct cuts_t {
    bit<32> cut;
    bit<32> pending;
}

#define LEAN_FAR 0x4000000       /* bytes: SEG_FAR */
#define LEAN_FRESH 0xc0000000    /* minus RET_FRESH */
#define LEAN_WINDOW 46           /* ticks of 2^16 ns: SEG_WINDOW */
#define LEAN_TWO_WINDOWS 93
#define LEAN_OOO_WINDOW 11718    /* ticks of 2^8 ns: OOO_WINDOW */
#define LEAN_KEEP 15259          /* ticks of 2^16 ns: lean_ret_keep */
#define LEAN_FREE 61035          /* lean_ret_free */

#endif
