/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The chain: entry program, then each algorithm by tail call, then the verdict.
 *
 * One 64-bit word controls it. The entry program reads it once per packet and copies it into the vector, so a
 * packet sees one bank and one version of the chain from start to end, whatever userspace does meanwhile.
 * Slots are laid out in two halves of CHAIN_SLOTS: userspace writes the half that is not in use, then the word,
 * then waits for running programs (maps/control.go): the exchange is atomic for every packet.
 *
 * XDP and TC programs cannot call each other, so there is one program array for each and every algorithm
 * is compiled for both from the same function. */
#pragma once

#include "phv.h"
#include "verdict.h"

#define CHAIN_SLOTS 16 /* algorithms at a time; two halves */

/* control word, least significant bit first */
#define CONTROL_BANK(w) ((w) & 1)                    /* bit 0 */
#define CONTROL_HALF(w) (((w) >> 1) & 1)             /* bit 1: which half of the slots */
#define CONTROL_LENGTH(w) (((w) >> 8) & 0xff)        /* bits 8..15: algorithms */
#define CONTROL_NEEDS(w) ((__u32)((w) >> 32))        /* bits 32..63: enum phv_need */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} chain_control SEC(".maps") TAG("pisa:table") TAG("xdpmon:shared");

#define CHAIN_ARRAY(name, tag)                                                                        \
	struct {                                                                                      \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);                                                \
		__type(key, __u32);                                                                   \
		__type(value, __u32);                                                                 \
		__uint(max_entries, 2 * CHAIN_SLOTS);                                                 \
	} name SEC(".maps") TAG(tag) TAG("xdpmon:shared")

CHAIN_ARRAY(chain_xdp, "pisa:chain");
CHAIN_ARRAY(chain_tc, "pisa:chain");
CHAIN_ARRAY(chain_tp, "pisa:chain"); /* at the start of transmission: trace.h */
/* The same programs again, reached only by recirculate(): the second pass is a separate edge of the graph. */
CHAIN_ARRAY(recirc_xdp, "pisa:recirculation");
CHAIN_ARRAY(recirc_tc, "pisa:recirculation");

/* The control word, read once per packet. */
static __always_inline __u64 chain_word(void)
{
	__u32 zero = 0;
	__u64 *control = bpf_map_lookup_elem(&chain_control, &zero);

	return control ? READ_ONCE(*control) : 0; /* never NULL, but the verifier wants it looked at; 0: no algorithms */
}

/* The chain's own fields of the vector; parse_reset() resets the others. */
static __always_inline void chain_begin(struct phv *phv, __u64 word)
{
	phv->now = 0;
	phv->bank = CONTROL_BANK(word);
	phv->next = CONTROL_HALF(word) * CHAIN_SLOTS;
	phv->end = phv->next + CONTROL_LENGTH(word);
	phv->needs = CONTROL_NEEDS(word);
	phv->pass = 0;
	phv->verdict = VERDICT_PASS;
}

/* The loader's position for this program: the next slot, in the first half. Programs that stay when the chain is exchanged may be in another one. */
const volatile __u32 chain_behind = 1;

/* A tail call in a function of its own: otherwise the compiler merges two into one with the slot in a register, and neither is a direct jump. */
#define CHAIN_GO(ctx, slots, slot)                                                                    \
	asm volatile("r1 = %[ctx_]\n\t"                                                               \
		     "r2 = %[slots_]\n\t"                                                             \
		     "r3 = %[slot_]\n\t"                                                              \
		     "call 12"                                                                        \
		     :                                                                                \
		     : [ctx_] "r"(ctx), [slots_] "r"(slots), [slot_] "r"(slot)                        \
		     : "r0", "r1", "r2", "r3", "r4", "r5")

/* A tail call with a constant slot is a direct jump (3 ns in total); with the slot in a register it
 * is an indirect one, which costs 13 ns if the kernel mitigates Spectre. So the slot is compared with the one that the loader
 * expects, in each half, and if it is another one, with every slot in turn. */
#define CHAIN_JUMP(n, before)                                                                         \
	case (n) + (before):                                                                          \
		bpf_tail_call_static(ctx, slots, n);                                                  \
		break
#define CHAIN_JUMPS(n, before) CHAIN_JUMP((n), before); CHAIN_JUMP((n) + 1, before); CHAIN_JUMP((n) + 2, before); CHAIN_JUMP((n) + 3, before)
#define CHAIN_HALF_JUMPS(n, before)                                                                   \
	CHAIN_JUMPS((n), before); CHAIN_JUMPS((n) + 4, before); CHAIN_JUMPS((n) + 8, before); CHAIN_JUMPS((n) + 12, before)

/* Runs the program in the slot that many before where; returns if the slot is empty. where is compared as it was
 * loaded, because the prover tracks words of the vector, not values calculated from them. */
#define CHAIN_CALL(ctx, slots, where, before)                                                         \
	do {                                                                                          \
		__u32 where_ = (where);                                                               \
		if (likely(where_ == chain_behind)) {                                                 \
			CHAIN_GO(ctx, slots, chain_behind - (before));                                \
			break;                                                                        \
		}                                                                                     \
		if (likely(where_ == chain_behind + CHAIN_SLOTS)) {                                   \
			CHAIN_GO(ctx, slots, chain_behind + CHAIN_SLOTS - (before));                  \
			break;                                                                        \
		}                                                                                     \
		switch (where_) {                                                                     \
		CHAIN_HALF_JUMPS(0, before);                                                          \
		CHAIN_HALF_JUMPS(CHAIN_SLOTS, before);                                                \
		}                                                                                     \
	} while (0)

_Static_assert(CHAIN_SLOTS == 16, "CHAIN_HALF_JUMPS names as many slots");

/* Goes to the next algorithm; returns if there is none, or its slot is empty. */
static __always_inline void chain_next(void *ctx, struct phv *phv, void *slots)
{
	__u32 slot = phv->next;

	if (slot == phv->end)
		return;
	phv->next = slot + 1;
	CHAIN_CALL(ctx, slots, slot, 0);
}

static __always_inline int xdp_verdict(const struct phv *phv)
{
	return phv->verdict == VERDICT_DROP ? XDP_DROP : XDP_PASS;
}

#define TC_NEXT (-1) /* TC_ACT_UNSPEC, TCX_NEXT: let the others on this interface see the packet */
#define TC_DROP 2    /* TC_ACT_SHOT, TCX_DROP */

static __always_inline int tc_verdict(const struct phv *phv)
{
	return phv->verdict == VERDICT_DROP ? TC_DROP : TC_NEXT;
}

/* Defines the two programs of an algorithm from the body that follows:
 *
 *	ALGORITHM(fridge) { ... reads *phv, touches registers, returns nothing ... }
 */
#define ALGORITHM(name)                                                                               \
	static __always_inline void name##_run(struct phv *phv);                                      \
	SEC("xdp.frags") int name##_xdp(struct xdp_md *ctx)                                           \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		if (!phv)                                                                             \
			return XDP_PASS;                                                              \
		name##_run(phv);                                                                      \
		chain_next(ctx, phv, &chain_xdp);                                                     \
		return xdp_verdict(phv);                                                              \
	}                                                                                             \
	SEC("tc") int name##_tc(struct __sk_buff *ctx)                                                \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		if (!phv)                                                                             \
			return TC_NEXT;                                                               \
		name##_run(phv);                                                                      \
		chain_next(ctx, phv, &chain_tc);                                                      \
		return tc_verdict(phv);                                                               \
	}                                                                                             \
	static __always_inline void name##_run(struct phv *phv)

/* As ALGORITHM(), for an enforcer: it does not see packets that another one has condemned, and decides with verdict_raise(). */
#define ENFORCER(name)                                                                                \
	static __always_inline void name##_decide(struct phv *phv);                                   \
	ALGORITHM(name)                                                                               \
	{                                                                                             \
		if (!condemned(phv))                                                                  \
			name##_decide(phv);                                                           \
	}                                                                                             \
	static __always_inline void name##_decide(struct phv *phv)
