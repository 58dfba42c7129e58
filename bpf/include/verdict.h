/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fate of a packet after the chain. Drop overrides mark overrides pass; measuring algorithms do not change it. bpf/verdict, which loader/verdict.go
 * puts after the last enforcer of a chain, executes the decision once. */
#pragma once

#include "phv.h"

enum verdict { VERDICT_PASS = 0, VERDICT_MARK = 1, VERDICT_DROP = 2 };

static __always_inline void verdict_raise(struct phv *phv, __u8 v)
{
	if (v > phv->verdict)
		phv->verdict = v;
}

/* A change of how the packet leaves the host: the class of its queue, a mark for routing and filters, or the earliest departure time, in ns after the
 * packet's time. A packet has one of them: the loader refuses a chain with two algorithms that steer. */
enum steering { STEER_NONE = 0, STEER_MARK = 1, STEER_PRIORITY = 2, STEER_DEPART = 3 };

static __always_inline void verdict_steer(struct phv *phv, __u8 how, __u32 to)
{
	phv->steer = to;
	phv->steering = how;
}

/* Is the packet condemned, so that it must not be charged? An enforcer that charges packets dropped by others would punish their senders twice. */
static __always_inline int condemned(const struct phv *phv)
{
	return phv->verdict == VERDICT_DROP;
}

/* The two ECN bits of the outermost IP header (RFC 3168). */
enum ecn { ECN_NONE = 0, ECN_ECT1 = 1, ECN_ECT0 = 2, ECN_CE = 3 };

static __always_inline int ecn_capable(const struct phv *phv)
{
	return (phv->tos & ECN_CE) != ECN_NONE;
}
