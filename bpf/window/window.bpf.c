//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Between algorithms whose windows have different lengths: selects the bank of those that follow (window.h). */
#include "base.h"
#include "phv.h"
#include "chain.h"
#include "trace.h"
#include "window.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 window_group = 0; /* of the algorithms that follow, below WINDOW_GROUPS */

static __always_inline void window_select(struct phv *phv)
{
	phv->bank = WINDOW_BANK(phv, window_group & (WINDOW_GROUPS - 1));
}

ALGORITHM(window)
{
	window_select(phv);
}

START_OF_TRANSMISSION(window)
{
	window_select(phv);
}
