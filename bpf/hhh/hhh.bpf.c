//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hhh: hierarchical heavy hitters, prefixes that send or receive too much (dissertation, section 3.4).
 *
 * random-prefix  One PRECISION for all levels: every packet draws one level (of each address) and counts its key cut to it.
 *                Userspace subtracts the initial value and multiplies by the number of levels (section 3.4, RHHH).
 * stacking       One PRECISION a level, updated by every packet (MST): 16, 24 and 32 bits of an IPv4 address, in two ways of
 *                one word; 8 bits are 256 counters and 0 bits one, both exact. What needs more instances than a
 *                stage has room for (two dimensions, nibbles, IPv6) has to draw.
 *
 * The level is part of the key: bits 8 and 16 of its tag. Records are per CPU and add up as bpf/include/ways.h says.
 *
 * A packet passes twice at most, so in stacking the second pass writes all instances that have admitted it: which way,
 * and 40 bits of value each. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "recirc.h"

#define WAYS_NAME(x) hhh_##x
#include "ways.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum hhh_counter {
	HHH_IPV4,     /* units of IPv4: the root of its tree */
	HHH_IPV6,
	HHH_PACKETS,  /* with a key */
	HHH_NO_KEY,   /* of a family that is not counted */
	HHH_MATCHED,  /* packets whose prefix was there; stacking: at one level at least */
	HHH_ADMITTED, /* packets that asked for a second pass */
	HHH_WRITTEN,  /* second passes */
	HHH_COUNTS = 8
};

const volatile _Bool hhh_stacking = 0;
const volatile _Bool hhh_bytes = 0;
const volatile __u32 hhh_step = 8;     /* bits of a level */
const volatile __u32 hhh_levels4 = 4;  /* levels of an IPv4 address below its root */
const volatile __u32 hhh_levels6 = 8;  /* ... of an IPv6 address */
const volatile __u32 hhh_stack_entries = 1024; /* stacking: of a way of a level, in one bank */

/* stacking: levels 2, 3, 4 (16, 24, 32 bits), ways 0 and 1 */
#define STACK_LEVEL(l)                                                                                \
	REGISTER_PERCPU_BANKED(hhh_s##l##k0, 1, __u64, 1);                                            \
	REGISTER_PERCPU_BANKED(hhh_s##l##k1, 2, __u64, 1);                                            \
	REGISTER_PERCPU_BANKED(hhh_s##l##c0, 3, __u64, 1);                                            \
	REGISTER_PERCPU_BANKED(hhh_s##l##c1, 4, __u64, 1)
STACK_LEVEL(2);
STACK_LEVEL(3);
STACK_LEVEL(4);
/* stacking: 8 bits, exact */
REGISTER_PERCPU_BANKED(hhh_byte, 1, __u64, 1);

COUNTERS(hhh_counts, HHH_COUNTS);

const enum hhh_counter *unused_counter __attribute__((unused));

/* ---- random prefix ---- */

/* The first n bits of 64; n may be below 0 and above 64. */
static __always_inline __u64 first_bits(int n)
{
	if (n <= 0)
		return 0;
	return n >= 64 ? ~0ULL : ~0ULL << (64 - n);
}

static __always_inline __u32 draw(struct phv *phv, __u32 n)
{
	return (__u64)coin_spin(phv) * n >> 32;
}

static __always_inline void cut_v4(struct key *key, __u32 src, __u32 dst)
{
	__u64 keep = 0;

	if (key_fields & KEY_SRC)
		keep = first_bits(src * hhh_step) & 0xffffffff00000000ULL;
	if (key_fields & KEY_DST)
		keep |= first_bits(dst * hhh_step) >> 32;
	else
		keep |= 1;
	key->w[0] &= keep;
}

static __always_inline void cut_v6(struct key *key, __u32 src, __u32 dst)
{
	__u32 first = key_fields & KEY_SRC ? src : dst;

	key->w[0] &= first_bits((int)(first * hhh_step) - 64);
	if ((key_fields & KEY_ADDRS) != KEY_ADDRS) {
		key->w[2] &= first_bits(first * hhh_step);
		return;
	}
	key->w[3] &= first_bits(src * hhh_step);
	key->w[2] &= first_bits((int)(dst * hhh_step) - 64);
	key->w[4] &= first_bits(dst * hhh_step);
}

/* The levels of this packet: from 1 in one dimension (the root is counted by itself), from 0 in two. */
static __always_inline __u32 levels_of(struct phv *phv, int v4)
{
	__u32 n = v4 ? hhh_levels4 : hhh_levels6;

	if ((key_fields & KEY_ADDRS) == KEY_ADDRS)
		return draw(phv, n + 1) << 8 | draw(phv, n + 1);
	return 1 + draw(phv, n);
}

static __always_inline void cut(struct phv *phv, struct key *key, __u32 levels)
{
	__u32 src = key_fields & KEY_SRC ? levels & 0xff : 0, dst = key_fields & KEY_SRC ? levels >> 8 : levels & 0xff;

	key->w[1] |= (__u64)src << 8 | dst << 16;
	if (phv->family == 4)
		cut_v4(key, src, dst);
	else
		cut_v6(key, src, dst);
}

/* Returns whether the packet wants a second pass; the level travels with it, in the high half of carry[0]. */
static __always_inline int random_prefix(struct phv *phv, struct pass *p, struct hhh_counts_t *count)
{
	__u32 levels = second_pass(phv) ? phv->carry[0] >> 32 : levels_of(phv, phv->family == 4);
	__u64 value;

	cut(phv, &p->key, levels);
	ways_rows(p);
	if (second_pass(phv)) {
		ways_take(phv, p, (__u32)phv->carry[0], phv->carry[1]);
		return 0;
	}
	phv->carry[1] = 0;
	if (ways_look(phv, p)) {
		count->c[HHH_MATCHED]++;
		return 0;
	}
	if (!ways_admit(phv, p, &value))
		return 0;
	phv->carry[0] = (__u64)levels << 32 | p->way;
	phv->carry[1] = value;
	return 1;
}

/* ---- stacking ---- */

#define VALUE_BITS 40
#define VALUE_MASK ((1ULL << VALUE_BITS) - 1)

/* One level of the stack. */
struct level {
	__u64 key;
	__u32 index[2];
	__u64 other[2]; /* 0: the way holds the key */
	__u64 count[2];
};

static __always_inline void level_of(struct level *l, __u32 addr, __u32 bits)
{
	__u64 h;

	l->key = (__u64)(addr & ~0U << (32 - bits)) << 32 | bits;
	h = hash_word(hash_seed, l->key);
	l->index[0] = (__u64)(__u32)h * hhh_stack_entries >> 32;
	l->index[1] = (h >> 32) * hhh_stack_entries >> 32;
}

/* Level n (s[n - 2]), way i. */
#define STACK_COMPARE(n, i)                                                                           \
	do {                                                                                          \
		__u64 *word_ = reg_bank(hhh_s##n##k##i, phv, s[n - 2].index[i]);                      \
		s[n - 2].other[i] = word_ ? *word_ ^ s[n - 2].key : 1;                                \
	} while (0)

#define STACK_COUNT(n, i)                                                                             \
	do {                                                                                          \
		__u64 *counter_ = reg_bank(hhh_s##n##c##i, phv, s[n - 2].index[i]);                   \
		s[n - 2].count[i] = 0;                                                                \
		if (counter_ && !s[n - 2].other[i])                                                   \
			*counter_ += p->units;                                                        \
		else if (counter_)                                                                    \
			s[n - 2].count[i] = *counter_;                                                \
	} while (0)

#define STACK_WRITE(n, x, i, way, value)                                                              \
	do {                                                                                          \
		__u64 *word_;                                                                         \
		if ((way) == i + 1) {                                                                 \
			word_ = reg_bank(hhh_s##n##x##i, phv, s[n - 2].index[i]);                     \
			if (word_)                                                                    \
				*word_ = value;                                                       \
		}                                                                                     \
	} while (0)

/* Does the packet take an entry of this level? 0: no, else its way + 1; *value is without the initial one. */
static __always_inline __u64 stack_admit(struct phv *phv, const struct level *l, struct pass *p, __u64 *value)
{
	__u64 second = l->count[1] < l->count[0];

	*value = 0;
	if (!l->other[0] || !l->other[1])
		return 0;
	p->min = (second ? l->count[1] : l->count[0]) + ways_initial;
	if (!ways_admit(phv, p, value))
		return 0;
	*value = (*value - ways_initial) & VALUE_MASK;
	return 1 + second;
}

/* carry[0]: from bit 0 two bits a level, from bit 8 the value of level 2, from bit 48 the high 16 bits of level 4's;
 * carry[1]: the value of level 3, from bit 40 the low 24 bits of level 4's. */
static __always_inline void stack_take(struct phv *phv, const struct level *s)
{
	__u64 low = phv->carry[0], high = phv->carry[1];
	__u64 value = high >> VALUE_BITS | low >> 48 << 24;

	STACK_WRITE(2, k, 0, low & 3, s[0].key);
	STACK_WRITE(3, k, 0, low >> 2 & 3, s[1].key);
	STACK_WRITE(4, k, 0, low >> 4 & 3, s[2].key);
	STACK_WRITE(2, k, 1, low & 3, s[0].key);
	STACK_WRITE(3, k, 1, low >> 2 & 3, s[1].key);
	STACK_WRITE(4, k, 1, low >> 4 & 3, s[2].key);
	STACK_WRITE(2, c, 0, low & 3, low >> 8 & VALUE_MASK);
	STACK_WRITE(3, c, 0, low >> 2 & 3, high & VALUE_MASK);
	STACK_WRITE(4, c, 0, low >> 4 & 3, value);
	STACK_WRITE(2, c, 1, low & 3, low >> 8 & VALUE_MASK);
	STACK_WRITE(3, c, 1, low >> 2 & 3, high & VALUE_MASK);
	STACK_WRITE(4, c, 1, low >> 4 & 3, value);
}

static __always_inline int stack_look(struct phv *phv, struct pass *p, struct level *s, struct hhh_counts_t *count)
{
	__u64 way[3], value[3];

	STACK_COMPARE(2, 0);
	STACK_COMPARE(3, 0);
	STACK_COMPARE(4, 0);
	STACK_COMPARE(2, 1);
	STACK_COMPARE(3, 1);
	STACK_COMPARE(4, 1);
	STACK_COUNT(2, 0);
	STACK_COUNT(3, 0);
	STACK_COUNT(4, 0);
	STACK_COUNT(2, 1);
	STACK_COUNT(3, 1);
	STACK_COUNT(4, 1);
	count->c[HHH_MATCHED] += !s[0].other[0] || !s[0].other[1];
#pragma unroll
	for (int i = 0; i < 3; i++)
		way[i] = stack_admit(phv, &s[i], p, &value[i]);
	phv->carry[0] = way[0] | way[1] << 2 | way[2] << 4 | value[0] << 8 | value[2] >> 24 << 48;
	phv->carry[1] = value[1] | value[2] << VALUE_BITS;
	return (way[0] | way[1] | way[2]) != 0;
}

static __always_inline int stacking(struct phv *phv, struct pass *p, struct hhh_counts_t *count)
{
	__u32 addr = bpf_ntohl(key_fields & KEY_SRC ? phv->src[3] : phv->dst[3]);
	struct level s[3];
	__u64 *byte;

	level_of(&s[0], addr, 16);
	level_of(&s[1], addr, 24);
	level_of(&s[2], addr, 32);
	if (second_pass(phv)) {
		stack_take(phv, s);
		return 0;
	}
	byte = reg_bank(hhh_byte, phv, addr >> 24);
	if (byte)
		*byte += p->units;
	return stack_look(phv, p, s, count);
}

ALGORITHM_RECIRC(hhh)
{
	struct hhh_counts_t *count = counters_of(hhh_counts, phv);
	struct pass p;
	int wanted;

	if (!count)
		return 0;
	if (!key_of(phv, &p.key)) {
		count->c[HHH_NO_KEY] += !second_pass(phv);
		return 0;
	}
	p.units = hhh_bytes ? phv->len : phv->segs;
	if (second_pass(phv)) {
		count->c[HHH_WRITTEN]++;
	} else {
		count->c[HHH_PACKETS] += phv->segs;
		count->c[phv->family == 4 ? HHH_IPV4 : HHH_IPV6] += p.units;
	}
	wanted = hhh_stacking ? stacking(phv, &p, count) : random_prefix(phv, &p, count);
	count->c[HHH_ADMITTED] += wanted;
	return wanted;
}
