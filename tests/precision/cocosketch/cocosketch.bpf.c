//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* cocosketch: a baseline of PRECISION that needs no second pass (Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, section 3.2; its hardware form, in which the
 * arrays do not wait for each other).
 *
 * d arrays, each a counter followed by a key. Every packet adds one to a counter of every array, and replaces the key
 * next to it with probability 1/counter. A flow's estimate is the mean over the arrays of the counter with its key, 0
 * where it is missing: each is unbiased. Counters count all flows' packets, so PRECISION needs less memory.
 *
 * It keeps the memory rules. Keys are 5-tuples of IPv4, two words; the estimate on arrival, times d, is left in
 * phv->carry[1]. For comparison only: it has no P4 twin. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "coin.h"
#include "key.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define WAYS 4

const volatile __u32 cocosketch_ways = 2;
const volatile __u32 cocosketch_entries = 1024; /* of a way */

#define WAY(i)                                                                                        \
	REGISTER_PERCPU_BANKED(cocosketch_c##i, 1, __u64, 1024);                                      \
	REGISTER_PERCPU_BANKED(cocosketch_a##i, 2, __u64, 1024);                                      \
	REGISTER_PERCPU_BANKED(cocosketch_b##i, 3, __u64, 1024)
WAY(0);
WAY(1);
WAY(2);
WAY(3);

static __always_inline __u32 slot_of(__u64 h)
{
	return (__u64)(__u32)h * cocosketch_entries >> 32;
}

#define COUNT(i)                                                                                      \
	do {                                                                                          \
		__u64 *c;                                                                             \
		count[i] = 0;                                                                         \
		take[i] = 0;                                                                          \
		if (i < cocosketch_ways) {                                                            \
			c = reg_bank(cocosketch_c##i, phv, slot[i]);                                  \
			if (c) {                                                                      \
				count[i] = *c + 1;                                                    \
				*c = count[i];                                                        \
			}                                                                             \
			take[i] = (__u64)coin_flip(phv) * (__u32)count[i] >> 32 == 0;                 \
		}                                                                                     \
	} while (0)

/* One word of way i: taken over, or left and compared. */
#define WORD(i, x, word)                                                                              \
	do {                                                                                          \
		__u64 *w;                                                                             \
		if (i < cocosketch_ways) {                                                            \
			w = reg_bank(cocosketch_##x##i, phv, slot[i]);                                \
			if (w && take[i])                                                             \
				*w = word;                                                            \
			else if (!w || *w != word)                                                    \
				count[i] = 0;                                                         \
		}                                                                                     \
	} while (0)

ALGORITHM(cocosketch)
{
	__u32 slot[WAYS], take[WAYS];
	__u64 count[WAYS], h, g;
	struct key key;

	if (!key_of(phv, &key) || phv->family != 4)
		return;
	h = key_hash(&key);
	g = hash_mix(h + 0x632be59bd9b4e019ULL);
	slot[0] = slot_of(h);
	slot[1] = slot_of(h >> 32);
	slot[2] = slot_of(g);
	slot[3] = slot_of(g >> 32);
	COUNT(0);
	COUNT(1);
	COUNT(2);
	COUNT(3);
	WORD(0, a, key.w[0]);
	WORD(1, a, key.w[0]);
	WORD(2, a, key.w[0]);
	WORD(3, a, key.w[0]);
	WORD(0, b, key.w[1]);
	WORD(1, b, key.w[1]);
	WORD(2, b, key.w[1]);
	WORD(3, b, key.w[1]);
	phv->carry[1] = count[0] + count[1] + count[2] + count[3];
}
