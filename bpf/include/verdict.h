/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What becomes of a packet when the chain has run. Drop beats mark beats pass; measuring algorithms leave it. */
#pragma once

#include "phv.h"

enum verdict { VERDICT_PASS = 0, VERDICT_MARK = 1, VERDICT_DROP = 2 };

static __always_inline void verdict_raise(struct phv *phv, __u8 v)
{
	if (v > phv->verdict)
		phv->verdict = v;
}
