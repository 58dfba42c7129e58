//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An enforcer that decides by a constant, for tests: every packet of one protocol gets one verdict. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u8 enforcer_verdict = VERDICT_PASS;
const volatile __u8 enforcer_proto = 0; /* 0: every packet */

enum enforcer_count { ENFORCER_SEEN, ENFORCER_COUNTS };

COUNTERS(enforcer_counts, ENFORCER_COUNTS);

const enum enforcer_count *unused_count __attribute__((unused));
const enum verdict *unused_verdict __attribute__((unused));

ENFORCER(enforcer)
{
	struct enforcer_counts_t *counts = counters_of(enforcer_counts, phv);

	if (!counts || (enforcer_proto && phv->proto != enforcer_proto))
		return;
	counts->c[ENFORCER_SEEN]++;
	verdict_raise(phv, enforcer_verdict);
}
