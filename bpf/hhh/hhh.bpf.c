//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hhh: hierarchical heavy hitters, prefixes that send or receive too much (Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, section 3.4).
 *
 * random-prefix  One PRECISION for all levels: every packet draws one level (of each address) and counts its key truncated to it.
 *                Userspace subtracts the initial value and multiplies by the number of levels (section 3.4, RHHH).
 * stacking       One PRECISION per level, updated by every packet (MST), in two ways of one word: up to seven levels, which are 16
 *                to 32 bits of an IPv4 address in bytes, 12 to 32 in nibbles, 16 to 64 of an IPv6 address in bytes. 8 bits are 256
 *                counters, and shorter prefixes are their sums: all exact. Configurations with more instances than stages allow
 *                (two dimensions, longer prefixes) have to draw.
 *
 * whole          One table of whole addresses, which userspace adds up to prefixes of any length (CocoSketch's use of unbiased counts). Every
 *                packet adds its units to the table in expectation, and a key keeps its entry or loses it with such a probability that the
 *                sum of any set of keys is unbiased. A packet without an entry is worth w = max(units, initial, min / 2) with probability units / w:
 *                the second pass adds w to the smallest counter c, and the packet's key replaces the entry's with probability w / (c + w).
 *                In E entries N packets cause about E (2 + 2.5 ln(N / 2 E)) second passes at most, for a counter grows by half with each.
 *                CocoSketch itself adds to the smallest counter in the first pass, which would be a second access to its array.
 *
 * With random-prefix and whole the level is part of the key: bits 8 and 16 of its tag. Records are per CPU and are merged as described in
 * bpf/include/ways.h. Prefixes of up to 8 bits of one address are 256 counters a family there, too (hhh_exact), and no level that is drawn.
 *
 * A packet passes at most twice, so in stacking the second pass writes all levels that have admitted it: eight bits per level
 * contain the way, and for admission pow2 the power. The other admissions add the packet to the counter that they found, which
 * is the value min + 1 again. */
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
const volatile _Bool hhh_whole = 0;
const volatile _Bool hhh_bytes = 0;
const volatile __u32 hhh_exact = 0;    /* random-prefix, whole: levels that hhh_first counts; 0: none */
const volatile __u32 hhh_first6 = 256; /* ... its first counter of IPv6 */
const volatile __u32 hhh_step = 8;     /* bits of a level */
const volatile __u32 hhh_levels4 = 4;  /* levels of an IPv4 address below its root */
const volatile __u32 hhh_levels6 = 8;  /* ... of an IPv6 address */
const volatile __u32 hhh_stack_entries = 1024; /* stacking: of a way of a level, in one bank */
const volatile __u32 hhh_stack_levels = 3;     /* ... levels that are not exact */
const volatile __u32 hhh_stack_first = 16;     /* ... bits of the first of them; each has hhh_step more */

/* stacking: keys of two ways, then their counters; at most four arrays per stage, so that levels 4 to 6 are one stage later */
#define STACK_LEVELS 7
#define STACK_LEVEL(l, stage0, stage1, stage2, stage3)                                                \
	REGISTER_PERCPU_BANKED(hhh_s##l##k0, stage0, __u64, 1);                                       \
	REGISTER_PERCPU_BANKED(hhh_s##l##k1, stage1, __u64, 1);                                       \
	REGISTER_PERCPU_BANKED(hhh_s##l##c0, stage2, __u64, 1);                                       \
	REGISTER_PERCPU_BANKED(hhh_s##l##c1, stage3, __u64, 1)
#define STACK_EARLY(l) STACK_LEVEL(l, 1, 3, 5, 7)
#define STACK_LATE(l) STACK_LEVEL(l, 2, 4, 6, 8)
STACK_EARLY(0);
STACK_EARLY(1);
STACK_EARLY(2);
STACK_EARLY(3);
STACK_LATE(4);
STACK_LATE(5);
STACK_LATE(6);
/* stacking: 8 bits, exact */
REGISTER_PERCPU_BANKED(hhh_byte, 2, __u64, 1);

/* random-prefix, whole: 8 bits, exact */
REGISTER_PERCPU_BANKED(hhh_first, 1, __u64, 1);

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

/* The levels of this packet: from 1 or after the exact ones in one dimension (the root is counted separately), from 0 in two. */
static __always_inline __u32 levels_of(struct phv *phv, int v4)
{
	__u32 n = v4 ? hhh_levels4 : hhh_levels6;

	if (hhh_whole)
		return (key_fields & KEY_ADDRS) == KEY_ADDRS ? n << 8 | n : n;
	if ((key_fields & KEY_ADDRS) == KEY_ADDRS)
		return draw(phv, n + 1) << 8 | draw(phv, n + 1);
	return 1 + hhh_exact + draw(phv, n - hhh_exact);
}

/* Counts the first byte of the address. */
static __always_inline void count_first(struct phv *phv, const struct pass *p)
{
	const __u32 *addr = key_fields & KEY_SRC ? phv->src : phv->dst;
	__u64 *first;

	if (!hhh_exact)
		return;
	if (phv->family == 4)
		first = reg_bank(hhh_first, phv, bpf_ntohl(addr[3]) >> 24);
	else
		first = reg_bank(hhh_first, phv, hhh_first6 + (bpf_ntohl(addr[0]) >> 24));
	if (first)
		*first += p->units;
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

/* Returns whether the packet requests a second pass; the level is in the high half of carry[0]. */
static __always_inline int random_prefix(struct phv *phv, struct pass *p, struct hhh_counts_t *count)
{
	__u32 levels = second_pass(phv) ? phv->carry[0] >> 32 : levels_of(phv, phv->family == 4);
	__u64 value, matched;

	cut(phv, &p->key, levels);
	ways_rows(phv, p);
	if (second_pass(phv)) {
		ways_take(phv, p, (__u32)phv->carry[0], phv->carry[1]);
		return 0;
	}
	count_first(phv, p);
	matched = ways_look(phv, p);
	count->c[HHH_MATCHED] += matched & 1;
	if (ways_settled(matched) || !ways_admit(phv, p, &value) || matched)
		return 0;
	phv->carry[0] = (__u64)levels << 32 | p->way;
	phv->carry[1] = value;
	return 1;
}

/* ---- whole ---- */

#define WHOLE_GROWTH 1       /* a counter grows by half with every second pass */
#define WHOLE_TAKES (1 << 8) /* in carry[0]: the packet's key replaces the entry's */

/* Returns whether the packet requests a second pass, which adds what carry[1] has: the weight, and the note, 1 more than what of the new counter may be of others. */
static __always_inline int whole(struct phv *phv, struct pass *p, struct hhh_counts_t *count)
{
	__u64 matched, counter, weight, guess;

	cut(phv, &p->key, levels_of(phv, phv->family == 4));
	ways_rows(phv, p);
	if (second_pass(phv)) {
		ways_mix(phv, p, phv->carry[0] & 0xff, phv->carry[0] & WHOLE_TAKES, phv->carry[1]);
		return 0;
	}
	count_first(phv, p);
	matched = ways_look(phv, p);
	count->c[HHH_MATCHED] += matched & 1;
	if (ways_settled(matched))
		return 0;
	counter = p->min - p->initial;
	weight = counter >> WHOLE_GROWTH;
	if (weight < p->initial)
		weight = p->initial;
	if (weight < p->units)
		weight = p->units;
	if ((weight > p->units && !ways_chance(phv, p->units, weight)) || matched)
		return 0;
	guess = counter + weight;
	phv->carry[0] = p->way;
	if (ways_chance(phv, weight, guess)) {
		phv->carry[0] |= WHOLE_TAKES;
		guess -= p->units;
	}
	phv->carry[1] = weight | ways_note(guess + 1);
	return 1;
}

/* ---- stacking ---- */

/* One level of the stack. */
struct level {
	__u64 key;
	__u64 min;      /* smallest counter so far, without the initial value */
	__u32 index[2];
	__u32 other[2]; /* 0: the way holds the key */
	__u32 way;      /* of the smallest counter */
};

/* A level's key is the prefix in the high bits and 1 in the rest; 0 is an empty entry. */
static __always_inline void level_of(struct level *l, __u64 high, __u32 bits)
{
	struct hash_sums s;
	__u64 h;

	l->key = high & first_bits(bits);
	if (bits < 64)
		l->key |= 1;
	else if (!l->key)
		l->key = ~0ULL;
	hash_begin(&s, 0);
	hash_add(&s, 1, l->key >> 32, (__u32)l->key);
	h = hash_mix(hash_halves(&s) + bits * 0x9e3779b97f4a7c15ULL);
	l->index[0] = (__u64)(__u32)h * hhh_stack_entries >> 32;
	l->index[1] = (h >> 32) * hhh_stack_entries >> 32;
}

/* 32 bits that are 0 only if all 64 are. */
static __always_inline __u32 stack_fold(__u64 x)
{
	return (__u32)(x >> 32) | (__u32)x;
}

/* All ones for 0, else 0, without a branch: fourteen ways that are either written or not would be too many paths to prove. */
static __always_inline __u64 if_zero(__u32 x)
{
	__u64 below = (__u64)x - 1;

	opaque(below);
	return (__u64)((__s64)below >> 63);
}

#define NO_COUNTER (1ULL << 62) /* above all */

/* Keeps the smallest counter, without a branch. */
static __always_inline void smaller(struct level *l, __u64 counter, __u32 way)
{
	__u64 below = counter - l->min, take;

	opaque(below);
	take = (__u64)((__s64)below >> 63);
	l->min += below & take;
	l->way = (l->way & ~take) | (way & take);
}

/* Level n, way i. */
#define STACK_COMPARE(n, i)                                                                           \
	do {                                                                                          \
		__u64 *word_;                                                                         \
		if (n < hhh_stack_levels) {                                                           \
			word_ = reg_bank(hhh_s##n##k##i, phv, s[n].index[i]);                         \
			s[n].other[i] = word_ ? stack_fold(*word_ ^ s[n].key) : 1;                    \
		}                                                                                     \
	} while (0)

/* Its counter: adds the packet's units if the key matches. */
#define STACK_COUNT(n, i)                                                                             \
	do {                                                                                          \
		__u64 *counter_, old_;                                                                \
		if (n < hhh_stack_levels) {                                                           \
			counter_ = reg_bank(hhh_s##n##c##i, phv, s[n].index[i]);                      \
			if (counter_) {                                                               \
				old_ = *counter_;                                                     \
				*counter_ = old_ + (p->units & if_zero(s[n].other[i]));               \
				smaller(&s[n], old_, i);                                              \
			}                                                                             \
		}                                                                                     \
	} while (0)

/* Second pass: replaces the key and sets the counter, if the level has requested this way. */
#define STACK_KEY(n, i)                                                                               \
	do {                                                                                          \
		__u64 *word_;                                                                         \
		if (n < hhh_stack_levels) {                                                           \
			word_ = reg_bank(hhh_s##n##k##i, phv, s[n].index[i]);                         \
			if (word_)                                                                    \
				*word_ ^= (*word_ ^ s[n].key) & STACK_TAKES(n, i);                    \
		}                                                                                     \
	} while (0)

#define STACK_VALUE(n, i)                                                                             \
	do {                                                                                          \
		__u64 *counter_, old_, new_;                                                          \
		if (n < hhh_stack_levels) {                                                           \
			counter_ = reg_bank(hhh_s##n##c##i, phv, s[n].index[i]);                      \
			if (counter_) {                                                               \
				old_ = *counter_;                                                     \
				new_ = old_ + p->units;                                               \
				if (ways_admission == ADMIT_POW2)                                     \
					new_ = (p->units << STACK_POWER(n)) - ways_initial;           \
				*counter_ = old_ ^ ((old_ ^ new_) & STACK_TAKES(n, i));               \
			}                                                                             \
		}                                                                                     \
	} while (0)

#define STACK_ALL(what, i)                                                                            \
	do {                                                                                          \
		what(0, i);                                                                           \
		what(1, i);                                                                           \
		what(2, i);                                                                           \
		what(3, i);                                                                           \
		what(4, i);                                                                           \
		what(5, i);                                                                           \
		what(6, i);                                                                           \
	} while (0)

/* A level's request for the second pass: bits 0 and 1 the way + 1, from bit 2 the power. */
#define STACK_TAKES(n, i) if_zero((asked >> 8 * (n) & 3) ^ ((i) + 1))
#define STACK_POWER(n) (asked >> (8 * (n) + 2) & 63)

/* Does a level admit the packet, if its smallest counter is min? Bit 0, and from bit 2 on the power of pow2. A separate function,
 * so that the verifier processes it once and not all combinations of all levels' coins. */
__attribute__((noinline)) __u32 hhh_admits(struct phv *phv, __u64 min, __u64 units)
{
	struct pass p = {.min = min + ways_initial, .units = units};
	__u64 value;

	if (!phv || !ways_admit(phv, &p, &value))
		return 0;
	if (ways_admission != ADMIT_POW2)
		return 1;
	return 1 + ((ways_log2(value | 1) - ways_log2(units | 1)) << 2);
}

/* Writes the level's byte of carry[0]: bits 0 and 1 the way + 1, from bit 2 on the power. */
static __always_inline void stack_ask(struct phv *phv, const struct level *l, __u64 units, int n)
{
	__u8 *ask = (__u8 *)&phv->carry[0] + n;
	__u32 admits;

	if (!l->other[0] || !l->other[1])
		return;
	admits = hhh_admits(phv, l->min, units);
	*ask = (admits & ~3U) + (admits & 1) * (l->way + 1);
}

static __always_inline void stack_take(struct phv *phv, const struct pass *p, const struct level *s)
{
	__u64 asked = phv->carry[0];

	STACK_ALL(STACK_KEY, 0);
	STACK_ALL(STACK_KEY, 1);
	STACK_ALL(STACK_VALUE, 0);
	STACK_ALL(STACK_VALUE, 1);
}

static __always_inline int stack_look(struct phv *phv, struct pass *p, struct level *s, __u32 first, struct hhh_counts_t *count)
{
	__u64 *byte, held = 0;

	phv->carry[0] = 0;
	STACK_ALL(STACK_COMPARE, 0);
	byte = reg_bank(hhh_byte, phv, first);
	if (byte)
		*byte += p->units;
	STACK_ALL(STACK_COMPARE, 1);
	STACK_ALL(STACK_COUNT, 0);
	STACK_ALL(STACK_COUNT, 1);
#pragma unroll
	for (int i = 0; i < STACK_LEVELS; i++) {
		if ((__u32)i < hhh_stack_levels) {
			held |= if_zero(s[i].other[0]) | if_zero(s[i].other[1]);
			stack_ask(phv, &s[i], p->units, i);
		}
	}
	count->c[HHH_MATCHED] += held & 1;
	return phv->carry[0] != 0;
}

static __always_inline int stacking(struct phv *phv, struct pass *p, struct hhh_counts_t *count)
{
	const __u32 *addr = key_fields & KEY_SRC ? phv->src : phv->dst;
	__u64 high = phv->family == 4 ? (__u64)bpf_ntohl(addr[3]) << 32 : key_half(addr, 0);
	struct level s[STACK_LEVELS];

#pragma unroll
	for (int i = 0; i < STACK_LEVELS; i++) {
		s[i] = (struct level){.other = {1, 1}, .min = NO_COUNTER};
		if ((__u32)i < hhh_stack_levels)
			level_of(&s[i], high, hhh_stack_first + i * hhh_step);
	}
	if (second_pass(phv)) {
		stack_take(phv, p, s);
		return 0;
	}
	return stack_look(phv, p, s, high >> 56, count);
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
	if (hhh_stacking)
		wanted = stacking(phv, &p, count);
	else
		wanted = hhh_whole ? whole(phv, &p, count) : random_prefix(phv, &p, count);
	count->c[HHH_ADMITTED] += wanted;
	return wanted;
}
