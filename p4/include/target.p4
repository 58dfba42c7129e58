// SPDX-License-Identifier: Apache-2.0
/* The architecture: TNA on Tofino 1, T2NA on Tofino 2. Both provide the same externs; the compiler sets
 * __TARGET_TOFINO__. */
#ifndef XDPMON_TARGET_P4
#define XDPMON_TARGET_P4

#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

#endif
