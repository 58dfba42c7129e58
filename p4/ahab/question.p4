// SPDX-License-Identifier: Apache-2.0
/* What the ingress hands to the egress in front of a packet, and what a clone carries back to the ingress. */
#ifndef XDPMON_AHAB_QUESTION_P4
#define XDPMON_AHAB_QUESTION_P4

const bit<8> FRONT_BRIDGED = 0;
const bit<8> FRONT_SECOND = 1;

/* What may be done to a packet above the limit. */
const bit<8> KIND_OTHER = 0; /* dropped by its number */
const bit<8> KIND_DATA = 1;  /* TCP: dropped by its flow's countdown */
const bit<8> KIND_BARE = 2;  /* TCP without data: never */

/* Epochs since the sums were taken away, of the packet that takes them away now. */
const bit<8> EPOCHS_NONE = 0; /* it does not */
const bit<8> EPOCHS_ONE = 1;
const bit<8> EPOCHS_TWO = 2;  /* or three */
const bit<8> EPOCHS_FOUR = 3; /* to fifteen */
const bit<8> EPOCHS_IDLE = 4;

/* The highest limit, and the lowest. */
#define AHAB_FULL 0x40000000
#define AHAB_LEAST 16
/* A share of all, in 2^-15. */
#define AHAB_ALL 0x8000

header bridged_h {
    bit<8>  front;
    bit<8>  session; /* of the mirror to its ingress pipe */
    bit<7>  pad_0;
    bit<1>  counted; /* it belongs to a slice */
    bit<7>  pad_1;
    bit<1>  open;    /* the lease has run out: nothing is dropped */
    bit<7>  pad_2;
    bit<1>  discard; /* nobody wants it after the egress */
    bit<8>  kind;
    bit<8>  epochs;
    bit<16> slice;
    bit<16> low;     /* the packet's number less the share that the lower limit lets pass: negative, it would pass */
    bit<16> mid;
    bit<16> high;
    bit<16> flow;    /* place of its countdown */
    bit<32> debt;    /* its length by the square of its user's weight */
    bit<32> len;
    bit<32> amount;  /* 2^-4 bytes */
    bit<32> limit;
}

header second_pass_h {
    bit<8>  front;
    bit<8>  pad;
    bit<16> slice;
    bit<32> limit;   /* the next one */
    bit<32> ceiling;
}

struct question_t {
    bit<32> ports; /* source and destination, 0 without */
}

struct answer_t {
    second_pass_h carry;
    MirrorId_t session;
}

/* Metadata begin as zeros on this chip. */
#define QUESTION_NONE q

#endif
