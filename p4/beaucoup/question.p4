// SPDX-License-Identifier: Apache-2.0
/* What the parser leaves for queries beside the headers. */
#ifndef XDPMON_BEAUCOUP_QUESTION_P4
#define XDPMON_BEAUCOUP_QUESTION_P4

struct question_t {
    bit<32> ports; /* source and destination, 0 without */
}

/* Metadata begin as zeros on this chip; the parser assigns ports only where there are some. */
#define QUESTION_NONE q

#endif
