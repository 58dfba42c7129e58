//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hashpipe: the algorithm that PRECISION is compared with (Algorithm 1 of Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, section 3.3.2).
 *
 * For comparison only: it is loaded with loader.Options.Unproven only, because it breaks the memory rules. A
 * packet writes a key array after it has read the counter array of the next stage: from the second way on, whether the carried
 * key takes an entry depends on the counter there. tests/precision shows that the prover rejects it. It has no P4
 * twin for the same reason.
 *
 * Keys are 5-tuples of IPv4, two words. The first way always inserts; what it evicts is carried on and takes the first entry
 * that is its own, empty or smaller; the smallest falls out at the end. A flow may have an entry in several ways: its
 * estimate is their sum. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "key.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define WAYS 6

const volatile __u32 hashpipe_ways = 2;
const volatile __u32 hashpipe_entries = 1024; /* of a way */
const volatile __u32 hashpipe_estimate = 0;    /* ways whose counts of the packet's flow are added up in phv->carry[1] */

#define WAY(i, stage0, stage1, stage2)                                                                \
	REGISTER_PERCPU_BANKED(hashpipe_a##i, stage0, __u64, 1024);                                   \
	REGISTER_PERCPU_BANKED(hashpipe_b##i, stage1, __u64, 1024);                                   \
	REGISTER_PERCPU_BANKED(hashpipe_c##i, stage2, __u64, 1024)
WAY(0, 1, 2, 3);
WAY(1, 4, 5, 6);
WAY(2, 7, 8, 9);
WAY(3, 10, 11, 12);
WAY(4, 13, 14, 15);
WAY(5, 16, 17, 18);

/* What is carried from way to way. */
struct carried {
	__u64 a, b;
	__u64 count;
};

static __always_inline __u32 slot_of(__u64 a, __u64 b, __u32 way)
{
	__u64 h = hash_word(hash_word(hash_seed + way * 0x9e3779b97f4a7c15ULL, a), b);

	return (__u64)(__u32)h * hashpipe_entries >> 32;
}

/* The first way: the packet's key is stored, and the old one moves on. So far the rules are kept. */
static __always_inline void insert(const struct phv *phv, struct carried *c)
{
	__u32 slot = slot_of(c->a, c->b, 0);
	__u64 *a = reg_bank(hashpipe_a0, phv, slot), *b, *count;
	struct carried old = {0};
	int same;

	if (a) {
		old.a = *a;
		*a = c->a;
	}
	b = reg_bank(hashpipe_b0, phv, slot);
	if (b) {
		old.b = *b;
		*b = c->b;
	}
	same = old.a == c->a && old.b == c->b;
	count = reg_bank(hashpipe_c0, phv, slot);
	if (count) {
		old.count = *count;
		*count = same ? old.count + 1 : 1;
	}
	*c = old;
	if (same)
		c->count = 0;
}

/* Way i: into its own or an empty entry, else change places with a smaller one. */
#define PIPE(i)                                                                                       \
	do {                                                                                          \
		struct carried old;                                                                   \
		__u64 *a, *b, *count;                                                                 \
		__u32 slot;                                                                           \
		if (i < hashpipe_ways && c.count) {                                                   \
			slot = slot_of(c.a, c.b, i);                                                  \
			a = reg_bank(hashpipe_a##i, phv, slot);                                       \
			old.a = a ? *a : 0;                                                           \
			b = reg_bank(hashpipe_b##i, phv, slot);                                       \
			old.b = b ? *b : 0;                                                           \
			count = reg_bank(hashpipe_c##i, phv, slot);                                   \
			if (a && b && count) {                                                        \
				old.count = *count;                                                   \
				if (old.a == c.a && old.b == c.b) {                                   \
					*count += c.count;                                            \
					c.count = 0;                                                  \
				} else if (old.count < c.count) {                                     \
					*a = c.a;                                                     \
					*b = c.b;                                                     \
					*count = c.count;                                             \
					c = old;                                                      \
				}                                                                     \
			}                                                                             \
		}                                                                                     \
	} while (0)

/* What way i knows of the packet's own flow, once everything has moved. */
#define ESTIMATE(i)                                                                                   \
	do {                                                                                          \
		__u64 *a, *b, *count;                                                                 \
		__u32 slot;                                                                           \
		if (i < hashpipe_estimate) {                                                          \
			slot = slot_of(key.w[0], key.w[1], i);                                        \
			a = reg_bank(hashpipe_a##i, phv, slot);                                       \
			b = reg_bank(hashpipe_b##i, phv, slot);                                       \
			count = reg_bank(hashpipe_c##i, phv, slot);                                   \
			if (a && b && count && *a == key.w[0] && *b == key.w[1])                      \
				sum += *count;                                                        \
		}                                                                                     \
	} while (0)

ALGORITHM(hashpipe)
{
	struct carried c;
	struct key key;
	__u64 sum = 0;

	if (!key_of(phv, &key) || phv->family != 4)
		return;
	c.a = key.w[0];
	c.b = key.w[1];
	c.count = 1;
	insert(phv, &c);
	PIPE(1);
	PIPE(2);
	PIPE(3);
	PIPE(4);
	PIPE(5);
	if (!hashpipe_estimate)
		return;
	ESTIMATE(0);
	ESTIMATE(1);
	ESTIMATE(2);
	ESTIMATE(3);
	ESTIMATE(4);
	ESTIMATE(5);
	phv->carry[1] = sum;
}
