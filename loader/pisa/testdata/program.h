/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Programs of the prover's tests. A line that ends in a "want" comment with rule and code is where the prover
 * must find that violation; programs without one are accepted. */
#pragma once

#include "recirc.h"
#include "clock.h"
#include "register.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PROGRAM(name)                                                                                 \
	static __always_inline void name##_body(struct xdp_md *ctx, struct phv *phv);                 \
	SEC("xdp.frags") int name(struct xdp_md *ctx)                                                 \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		if (phv)                                                                              \
			name##_body(ctx, phv);                                                        \
		return XDP_PASS;                                                                      \
	}                                                                                             \
	static __always_inline void name##_body(struct xdp_md *ctx, struct phv *phv)

/* What chain_next() does for a chain of any length, in one line. */
#define NEXT()                                                                                        \
	do {                                                                                          \
		__u32 slot_ = phv->next;                                                              \
		phv->next = slot_ + 1;                                                                \
		bpf_tail_call(ctx, &chain_xdp, slot_);                                                \
	} while (0)

#define PROGRAM_TC(name)                                                                              \
	static __always_inline int name##_body(struct __sk_buff *ctx, struct phv *phv);               \
	SEC("tc") int name(struct __sk_buff *ctx)                                                     \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		return phv ? name##_body(ctx, phv) : TC_NEXT;                                         \
	}                                                                                             \
	static __always_inline int name##_body(struct __sk_buff *ctx, struct phv *phv)

#define ENTRIES 1024

/* Two indices and a value of a packet. */
#define index_a(phv) ((__u32)(phv)->ep_src & (ENTRIES - 1))
#define index_b(phv) ((__u32)(phv)->ep_dst & (ENTRIES - 1))
