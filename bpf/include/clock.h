/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The packet's time, in nanoseconds: read on first use, at most once a packet. In a replay the entry program
 * has put the capture's timestamp there already. */
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
