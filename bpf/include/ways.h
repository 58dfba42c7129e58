/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ways of PRECISION (Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, section 3.3): d register arrays of keys and counters, and the admission of keys.
 *
 * Before including this, define WAYS_NAME(x), the name of its arrays (x is w0 .. w3 of k00 .. k34 and c0 .. c3, and t).
 *
 * Ways are stacked (figure 3.1), at most four arrays per stage, and a program accesses them in that order: words of way 0 in stages
 * 1 to 5, of way 1 in 3 to 7, of way 2 in 5 to 9 and of way 3 in 6 to 10; counters in 6, 8, 10 and 11. Two ways of two words
 * (IPv4) have one stage per array, which is what the memory of a stage allows at 65,536 entries. A way whose word differs is
 * not accessed again. Unused words and ways of a configuration have one entry and no code. Deterministic
 * admission counts turns in stage 12, which a Tofino 1 does not have.
 *
 * A stored counter is the value minus the initial one, so an empty array is the initial state; the initial value bounds the
 * share of second passes to 1/(initial + 1) (section 3.3.3). Whatever it is, N packets cause at most sqrt(2 N E) second passes in E entries
 * on average, since an entry grows from v to v + 1 by one in v + 1 packets: with few packets, 1 is cheap enough. So
 * with ways_adapts userspace sets it for every bank while that is closed, by the load of the last window (userspace/heavy).
 *
 * Above the counter, in WAYS_NOTE and higher bits, is the value with which the entry was taken, to 1/16: the uncertainty of an estimate.
 * Programs that must leave the same words as their twins disable it (ways_noted).
 *
 * Records are per CPU: a record is longer than a word, and a torn key must never be reported as a flow. Every core runs its
 * own instance over its packets. Every packet adds one to its flow's estimate, in expectation: exactly if the
 * flow has an entry, min + 1 with probability 1/(min + 1) if it has none. A core's estimate of a flow that has not lost an
 * entry (0 while it has none) is therefore unbiased for the packets of that core, and the sum over the cores for the packets
 * of all. A flow that lost its entry on one core lacks that core's count. tests/precision measures both. */
#pragma once

#include "phv.h"
#include "register.h"
#include "spin.h"
#include "bins.h"
#include "key.h"

#define WAYS 4

enum ways_admission_kind { ADMIT_EXACT, ADMIT_POW2, ADMIT_NINE_EIGHTHS, ADMIT_DETERMINISTIC };

const volatile __u32 ways_count = 2;
const volatile __u32 ways_entries = 1024; /* of a way, in one bank */
const volatile __u32 ways_admission = ADMIT_NINE_EIGHTHS;
const volatile __u64 ways_initial = 100;
const volatile _Bool ways_adapts = 0; /* the initial value is ways_starts' */
const volatile _Bool ways_noted = 1;

/* Initial values of both banks. */
TABLE(ways_starts, __u64, 2);

#define WAYS_NOTE 54
#define WAYS_COUNT ((1ULL << WAYS_NOTE) - 1)

#define WAYS_ARRAY_(name, stage) REGISTER_PERCPU_BANKED(name, stage, __u64, 1024)
#define WAYS_ARRAY(x, stage) WAYS_ARRAY_(WAYS_NAME(x), stage)
#define WAYS_AT_(name, phv, index) reg_bank(name, phv, index)
#define WAYS_AT(x, phv, index) WAYS_AT_(WAYS_NAME(x), phv, index)

/* A way's arrays are in one map, the counter first: word j of the key is after it. Two lookups for two ways. */
#define WAYS_ROW_WORDS (1 + KEY_WORDS)
#define WAYS_ROW_(name, names) REGISTERS_PERCPU_BANKED(name, __u64, 1024, WAYS_ROW_WORDS, names)
#define WAYS_IN(x, stage) STR(WAYS_NAME(x)) "@" #stage
#define WAYS_ROW(x, c, k0, k1, k2, k3, k4) WAYS_ROW_(WAYS_NAME(x), c "," k0 "," k1 "," k2 "," k3 "," k4)

WAYS_ROW(w0, WAYS_IN(c0, 6), WAYS_IN(k00, 1), WAYS_IN(k01, 2), WAYS_IN(k02, 3), WAYS_IN(k03, 4), WAYS_IN(k04, 5));
WAYS_ROW(w1, WAYS_IN(c1, 8), WAYS_IN(k10, 3), WAYS_IN(k11, 4), WAYS_IN(k12, 5), WAYS_IN(k13, 6), WAYS_IN(k14, 7));
WAYS_ROW(w2, WAYS_IN(c2, 10), WAYS_IN(k20, 5), WAYS_IN(k21, 6), WAYS_IN(k22, 7), WAYS_IN(k23, 8), WAYS_IN(k24, 9));
WAYS_ROW(w3, WAYS_IN(c3, 11), WAYS_IN(k30, 6), WAYS_IN(k31, 7), WAYS_IN(k32, 8), WAYS_IN(k33, 9), WAYS_IN(k34, 10));
/* deterministic admission: unmatched packets of a row since its last admission */
WAYS_ARRAY(t, 12);

const enum ways_admission_kind *unused_admission __attribute__((unused));
const enum key_field *unused_field __attribute__((unused));

/* What a pass stores of its packet. */
struct pass {
	struct key key;
	__u32 index[WAYS];
	__u64 other[WAYS]; /* 0: way i holds this key, as far as its words have been compared */
	__u64 initial; /* value of an empty entry */
	__u64 units; /* to add: 1, or bytes */
	__u64 min;   /* smallest counter among the ways, initial value included */
	__u32 way;   /* ... and where it is */
};

/* An index from 32 bits of hash: the high bits for any number of entries; low bits of a CRC, as on a switch. */
static __always_inline __u32 ways_slot(__u32 h)
{
	if (hash_crc)
		return h & (ways_entries - 1);
	return (__u64)h * ways_entries >> 32;
}

static __always_inline void ways_rows_crc(struct pass *p)
{
	struct hash_input in;

	key_fields_of(&in, &p->key);
	p->index[0] = ways_slot(hash_crc32(&in, 0));
	p->index[1] = ways_slot(hash_crc32(&in, 1));
	p->index[2] = ways_count > 2 ? ways_slot(hash_crc32(&in, 2)) : 0;
	p->index[3] = ways_count > 3 ? ways_slot(hash_crc32(&in, 3)) : 0;
}

static __always_inline __u64 ways_start(const struct phv *phv)
{
	__u64 *start;

	if (!ways_adapts)
		return ways_initial;
	start = reg_at(ways_starts, phv->bank);
	return start ? *start : ways_initial;
}

static __always_inline void ways_rows(const struct phv *phv, struct pass *p)
{
	__u64 h, g;

	p->initial = ways_start(phv);
	if (hash_crc) {
		ways_rows_crc(p);
	} else {
		h = key_hash(&p->key);
		g = ways_count > 2 ? hash_mix(h + 0x632be59bd9b4e019ULL) : 0;
		p->index[0] = ways_slot(h);
		p->index[1] = ways_slot(h >> 32);
		p->index[2] = ways_slot(g);
		p->index[3] = ways_slot(g >> 32);
	}
	if (ways_admission != ADMIT_DETERMINISTIC)
		return;
	p->index[1] = p->index[0];
	p->index[2] = p->index[0];
	p->index[3] = p->index[0];
}

/* Way i's record: the counter, after it the key's words. */
#define ROW_OF(i) ((__u64 *)WAYS_AT(w##i, phv, p->index[i]))
#define ROW(i)                                                                                        \
	do {                                                                                          \
		row[i] = 0;                                                                           \
		if (i < ways_count) {                                                                 \
			row[i] = ROW_OF(i);                                                           \
			if (!row[i])                                                                  \
				return 0;                                                             \
		}                                                                                     \
	} while (0)

/* All ones for 0, else 0. The content of a record is unpredictable: a branch on it costs this program and, since it pollutes the processor's branch
 * predictor, all that run after it. */
static __always_inline __u64 ways_if_zero(__u64 x)
{
	__u64 any = x | -x;

	opaque(any);
	return ~(__u64)((__s64)any >> 63);
}

static __always_inline __u64 ways_counted(__u64 word)
{
	return ways_noted ? word & WAYS_COUNT : word;
}

/* Keys of more words than two are of IPv6. */
#define WAYS_SHORT 2

/* Way i, word j: still this key? */
#define COMPARE(i, j)                                                                                 \
	do {                                                                                          \
		if (i < ways_count && j < key_words)                                                  \
			p->other[i] |= reg_load(&row[i][1 + j]) ^ p->key.w[j];                        \
	} while (0)

/* The same for a long key: few packets get here, and most of these match. */
#define COMPARE_REST(i, j)                                                                            \
	do {                                                                                          \
		if (i < ways_count && j < key_words && !p->other[i])                                  \
			p->other[i] |= reg_load(&row[i][1 + j]) ^ p->key.w[j];                        \
	} while (0)

/* Way i's counter: adds if the key matches, else updates the minimum. */
#define COUNT(i)                                                                                      \
	do {                                                                                          \
		if (i < ways_count)                                                                   \
			done |= ways_count_in(p, row[i], i, done, &mine);                             \
	} while (0)

static __always_inline __u64 ways_count_in(struct pass *p, __u64 *counter, __u32 way, __u64 done, __u64 *mine)
{
	__u64 word = reg_load(counter), counted = ways_counted(word), here = ways_if_zero(p->other[way]) & ~done, less, take;

	reg_store(counter, word + (p->units & here));
	*mine |= counted & here;
	less = counted - p->min;
	opaque(less);
	take = (__u64)((__s64)less >> 63);
	p->min += less & take;
	p->way = (p->way & ~(__u32)take) | (way & (__u32)take);
	return here;
}

#define WAYS_NO_COUNTER (1ULL << 62) /* above all */

/* First pass, in stage order. Returns all ones if the packet was counted, else 0. */
static __always_inline __u64 ways_look(struct phv *phv, struct pass *p)
{
	__u64 *row[WAYS], done = 0, mine = 0;

	p->other[0] = p->other[1] = p->other[2] = p->other[3] = 0;
	p->min = WAYS_NO_COUNTER;
	p->way = 0;
	ROW(0);
	ROW(1);
	ROW(2);
	ROW(3);
	if (p->key.words <= WAYS_SHORT) {
		COMPARE(0, 0);
		COMPARE(0, 1);
		COMPARE(1, 0);
		COMPARE(1, 1);
		COMPARE(2, 0);
		COUNT(0);
		COMPARE(2, 1);
		COMPARE(3, 0);
		COMPARE(3, 1);
	} else {
		COMPARE(0, 0);
		COMPARE(0, 1);
		COMPARE_REST(0, 2);
		COMPARE(1, 0);
		COMPARE_REST(0, 3);
		COMPARE(1, 1);
		COMPARE_REST(0, 4);
		COMPARE_REST(1, 2);
		COMPARE(2, 0);
		COUNT(0);
		COMPARE_REST(1, 3);
		COMPARE(2, 1);
		COMPARE(3, 0);
		COMPARE_REST(1, 4);
		COMPARE_REST(2, 2);
		COMPARE(3, 1);
	}
	COUNT(1);
	if (p->key.words > WAYS_SHORT) {
		COMPARE_REST(2, 3);
		COMPARE_REST(3, 2);
		COMPARE_REST(2, 4);
		COMPARE_REST(3, 3);
	}
	COUNT(2);
	if (p->key.words > WAYS_SHORT)
		COMPARE_REST(3, 4);
	COUNT(3);
	p->min += p->initial;
	phv->carry[1] = (mine + p->units + p->initial) & done;
	return done;
}

/* True with probability a / b, for a <= b < 2^63: one coin and one product while b has 32 bits. */
static __always_inline int ways_chance(struct phv *phv, __u64 a, __u64 b)
{
	__u64 high = coin_spin(phv), low;

	if (b >> 32 == 0)
		return (high * b) >> 32 < a;
	low = coin_spin(phv);
	return high * (b >> 32) + (high * (__u32)b >> 32) + (low * (b >> 32) >> 32) < a;
}

/* Position of the highest set bit; x is not 0. */
static __always_inline __u32 ways_log2(__u64 x)
{
	return x >> 32 ? 32 + bins_log2(x >> 32) : bins_log2(x);
}

/* Smallest y with 2^y >= x. */
static __always_inline __u32 ways_log2_up(__u64 x)
{
	return x <= 1 ? 0 : ways_log2(x - 1) + 1;
}

/* 2^32 / k for k = 8 .. 15: the lookup table of the 9/8 approximation. */
const volatile __u32 ways_one_in[8] = {536870912, 477218588, 429496730, 390451572, 357913941, 330382100, 306783378, 286331153};

/* units / (2^y floor(T)) for next = 2^y T, T in [8, 16). A switch draws two coins, one for 2^-y and one for the table's
 * constant; here one of 50 bits is compared with their product, whose probability is the same. Its low bits are drawn only
 * if the high ones do not decide. Nearly all coins are above twice units / next, which is the maximum of the product. */
static __always_inline int ways_nine_eighths(struct phv *phv, __u64 units, __u64 next)
{
	__u64 limit, high;
	__u32 y;

	if (unlikely(next < 8 * units || units >> 16))
		return ways_chance(phv, units, next);
	high = coin_spin(phv);
	if (likely(next >> 32 == 0 && high * next >= units << 33))
		return 0;
	y = ways_log2(next) - 3;
	limit = (ways_one_in[(next >> y) & 7] * units << 18) >> y;
	if (high != limit >> 18)
		return high < limit >> 18;
	return coin_spin(phv) >> 14 < (limit & 0x3ffff);
}

/* Stage 12: the row's turn is after as many unmatched units as its smallest counter. */
static __always_inline int ways_in_turn(struct phv *phv, const struct pass *p)
{
	__u64 *turns = WAYS_AT(t, phv, p->index[0]), n, due = p->min;

	if (!turns)
		return 0;
	n = *turns;
	if (n >= due) {
		*turns = 0;
		return 1;
	}
	*turns = n + p->units;
	return 0;
}

/* Is the packet known to be no newcomer before its coin is drawn? Live the coin is drawn first, and most newcomers lose it: no branch depends on the content of a record. A replay
 * draws coins for newcomers only, as a switch does, and turns count only these. */
static __always_inline int ways_settled(__u64 matched)
{
	return (coin_seeded || ways_admission == ADMIT_DETERMINISTIC) && matched;
}

/* Does this packet take the smallest entry, and with which value? In expectation it adds its units. */
static __always_inline int ways_admit(struct phv *phv, const struct pass *p, __u64 *value)
{
	__u64 next = p->min + p->units;
	__u32 y;

	*value = next;
	if (ways_admission == ADMIT_DETERMINISTIC)
		return ways_in_turn(phv, p);
	if (ways_admission == ADMIT_EXACT)
		return ways_chance(phv, p->units, next);
	if (ways_admission == ADMIT_POW2) {
		y = ways_log2_up((p->min + p->units - 1) >> ways_log2(p->units | 1));
		*value = p->units << y;
		return ways_chance(phv, 1, 1ULL << y);
	}
	return ways_nine_eighths(phv, p->units, next);
}

/* An entry's note of its initial value: five leading bits and their position. */
static __always_inline __u64 ways_note(__u64 value)
{
	__u32 e;

	if (!ways_noted || !value)
		return 0;
	e = ways_log2(value);
	return ((__u64)e << 4 | ((e < 4 ? value << (4 - e) : value >> (e - 4)) & 15)) << WAYS_NOTE;
}

#define WRITE_WORD(j)                                                                                 \
	do {                                                                                          \
		if (j < key_words)                                                                    \
			reg_store(&row_[1 + j], p->key.w[j]);                                         \
	} while (0)
#define WRITE_WAY(i)                                                                                  \
	do {                                                                                          \
		__u64 *row_;                                                                          \
		if (i < ways_count && way == i) {                                                     \
			row_ = ROW_OF(i);                                                             \
			if (!row_)                                                                    \
				return;                                                               \
			WRITE_WORD(0);                                                                \
			WRITE_WORD(1);                                                                \
			if (p->key.words > WAYS_SHORT) {                                              \
				WRITE_WORD(2);                                                        \
				WRITE_WORD(3);                                                        \
				WRITE_WORD(4);                                                        \
			}                                                                             \
			reg_store(row_, (value - p->initial) | ways_note(value));                     \
		}                                                                                     \
	} while (0)

/* Second pass: the entry that the first one chose. */
static __always_inline void ways_take(struct phv *phv, const struct pass *p, __u32 way, __u64 value)
{
	WRITE_WAY(0);
	WRITE_WAY(1);
	WRITE_WAY(2);
	WRITE_WAY(3);
}

#define MIX_WAY(i)                                                                                    \
	do {                                                                                          \
		__u64 *row_;                                                                          \
		if (i < ways_count && way == i) {                                                     \
			row_ = ROW_OF(i);                                                             \
			if (!row_)                                                                    \
				return;                                                               \
			if (takes) {                                                                  \
				WRITE_WORD(0);                                                        \
				WRITE_WORD(1);                                                        \
				if (p->key.words > WAYS_SHORT) {                                      \
					WRITE_WORD(2);                                                \
					WRITE_WORD(3);                                                \
					WRITE_WORD(4);                                                \
				}                                                                     \
			}                                                                             \
			reg_store(row_, ways_counted(reg_load(row_)) + adds);                         \
		}                                                                                     \
	} while (0)

/* Second pass of a table whose sums over any keys are unbiased: the entry grows, whether its key stays or not. adds holds a note above a count. */
static __always_inline void ways_mix(struct phv *phv, const struct pass *p, __u32 way, int takes, __u64 adds)
{
	MIX_WAY(0);
	MIX_WAY(1);
	MIX_WAY(2);
	MIX_WAY(3);
}
