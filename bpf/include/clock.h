/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The packet's time, in nanoseconds: read on first use, at most once per packet. In a replay the entry program
 * has already stored the capture's timestamp there. */
#pragma once

#include "phv.h"

static __always_inline __u64 clock_now(struct phv *phv)
{
	__u64 now = phv->now;

	if (!now) {
		now = bpf_ktime_get_ns();
		phv->now = now;
	}
	return now;
}

#define CLOCK_BEHIND (1U << 20) /* ticks */

/* Ticks from a stored time to now. Another core's record may be younger than this packet's clock, which an earlier algorithm
 * may have read before the record was written (and captures are not always in order): such a small negative difference counts as
 * 0, not as a whole period of the counter. */
static __always_inline __u32 clock_since(__u32 now, __u32 then)
{
	__u32 ticks = now - then;

	return ticks > ~0U - CLOCK_BEHIND ? 0 : ticks;
}
