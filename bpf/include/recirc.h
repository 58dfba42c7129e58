/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Recirculation: a second pass of the algorithm that requests it, as a switch sends a clone back through its
 * pipeline (Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, sections 2.2 and 3.3.3). At most one per packet (phv->pass), within a budget that every
 * packet adds a share to, and every pass or refusal is counted. The data for the second pass are in phv->carry.
 *
 * loader/pisa accepts a tail call into a "pisa:recirculation" array only if the path has compared phv->pass
 * with 0, has written 1 to it, and has branched on a word of the "pisa:budget" array. */
#pragma once

#include "chain.h"

/* One algorithm's budget on one CPU, in passes times 2^16; userspace writes earn and burst (loader/recirc.go). */
struct recirc_budget_t {
	__u64 left;
	__u64 earn;  /* what each packet adds: the largest share of packets that may pass twice */
	__u64 burst; /* left never exceeds it */
	__u64 granted;
	__u64 refused;
};

#define RECIRC_PASS (1 << 16)

/* A replay can delay second passes, as a long pipeline does: phv->pass then is the slot + RECIRC_ASKED when the packet
 * has left the chain, and the replay driver (bpf/replay) starts the pass after so many other packets. Then only one algorithm of the
 * chain recirculates (userspace/session/delay.go). */
#define RECIRC_ASKED 3

const volatile _Bool recirc_deferred = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct recirc_budget_t);
	__uint(max_entries, CHAIN_SLOTS);
} recirc_budget SEC(".maps") TAG("pisa:budget") TAG("xdpmon:shared");

/* Is this the second pass of the current program? phv->pass: 0 if no algorithm has recirculated the packet, 1 in the
 * second pass, 2 in the algorithms after it. */
static __always_inline int second_pass(const struct phv *phv)
{
	return phv->pass == 1;
}

/* Ends this pass and starts the second one in the same slot; returns if that is refused. wanted: whether
 * this packet requests one; every packet adds to the budget. */
static __always_inline void recirculate(void *ctx, struct phv *phv, void *slots, int wanted)
{
	__u32 slot = (__u32)phv->next - 1, own = slot & (CHAIN_SLOTS - 1);
	struct recirc_budget_t *budget;

	if (second_pass(phv))
		return;
	budget = bpf_map_lookup_elem(&recirc_budget, &own);
	if (!budget)
		return;
	budget->left += budget->earn;
	if (budget->left > budget->burst)
		budget->left = budget->burst;
	if (!wanted)
		return;
	if (phv->pass != 0 || budget->left < RECIRC_PASS) {
		budget->refused++;
		return;
	}
	budget->left -= RECIRC_PASS;
	budget->granted++;
	if (recirc_deferred) {
		phv->pass = slot + RECIRC_ASKED;
		return;
	}
	phv->pass = 1;
	CHAIN_CALL(ctx, slots, phv->next, 1);
	asm volatile("" ::: "memory"); /* an empty slot: chain_next() reads phv->next again, so that no copy of it is made for what is known here */
}

/* As ALGORITHM(), for a body that returns true if it requests a second pass (which finds second_pass()). earns: whether every packet
 * adds to the budget, or only those that request: for an algorithm that requests rarely, and whose requests are all granted. */
#define ALGORITHM_PASSES(name, earns)                                                                 \
	static __always_inline int name##_run(struct phv *phv);                                       \
	SEC("xdp.frags") int name##_xdp(struct xdp_md *ctx)                                           \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		int wanted;                                                                           \
		if (!phv)                                                                             \
			return XDP_PASS;                                                              \
		wanted = name##_run(phv);                                                             \
		if (earns || wanted)                                                                  \
			recirculate(ctx, phv, &recirc_xdp, wanted);                                   \
		if (!recirc_deferred && phv->pass)                                                    \
			phv->pass = 2;                                                                \
		chain_next(ctx, phv, &chain_xdp);                                                     \
		return xdp_verdict(phv);                                                              \
	}                                                                                             \
	SEC("tc") int name##_tc(struct __sk_buff *ctx)                                                \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		int wanted;                                                                           \
		if (!phv)                                                                             \
			return TC_NEXT;                                                               \
		wanted = name##_run(phv);                                                             \
		if (earns || wanted)                                                                  \
			recirculate(ctx, phv, &recirc_tc, wanted);                                    \
		if (!recirc_deferred && phv->pass)                                                    \
			phv->pass = 2;                                                                \
		chain_next(ctx, phv, &chain_tc);                                                      \
		return tc_verdict(phv);                                                               \
	}                                                                                             \
	static __always_inline int name##_run(struct phv *phv)
#define ALGORITHM_RECIRC(name) ALGORITHM_PASSES(name, 1)
#define ALGORITHM_RECIRC_SELDOM(name) ALGORITHM_PASSES(name, 0)
