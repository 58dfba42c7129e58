//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* carpe: the part of one host in finding flows that are heavy in the whole network but not at any single point.
 *
 * Harrison, Landau Feibish, Gupta, Teixeira, Muthukrishnan, Rexford, "Carpe Elephants: Seize the Global Heavy Hitters", SPIN 2020,
 * sections 3 and 4.
 *
 * A flow without an entry is sampled with probability s per unit, then gets an entry and is counted, starting from 1/s, so that the count is
 * right in expectation (sample and hold: Estan and Varghese, TOCS 21, 2003). When a bundle of tau units is complete it is reported with
 * probability r, and represents tau/r. tau and r are those of the packet's group, a pair of prefixes; a coordinator sets them by how many
 * hosts observe the group. A group is reported to the control plane when a packet reads its parameters, once until the control plane clears
 * carpe_heard.
 *
 * An entry is one word: the flow's signature and, above CARPE_FLOOR, the units missing from the bundle; at or below the floor it is
 * free. Counting down needs no tau, so that a packet reads its group's parameters only if its coin allows it to start a
 * bundle, and when one is complete. Packets that may start one read them before they access an array: this cannot be done
 * between reading and writing an element.
 *
 * A complete bundle frees its entry: the next sampled flow, the same or another, starts there with 1/s. So every
 * bundle, and not only a flow's first, is uncertain by the wait for its first sample, 1/s units. Compared with the bundle's own coin that is
 * small: (1/(s tau))^2 against 1 - r. In return, entries of reported flows need not be removed.
 * Entries of flows that end before their bundle is complete are freed by userspace (userspace/carpe/idle.go).
 *
 * A packet may have more units than the bundle needs: bytes, or an aggregate of segments. Then the bundle is that much larger, and the report
 * states its size. A packet of tau units or more is a bundle by itself, and accesses no array.
 *
 * Several stages: a flow takes the first free entry. If an entry before its own becomes free it may get a second one,
 * and the first stays with its count: less than a bundle, once. A sampled flow that finds no entry
 * is counted, or handed over to the control plane, where it counts as 1/s units (carpe_handover).
 *
 * Many cores: units are subtracted by one atomic addition, whose result shows which core completed the bundle: none is lost, and none is
 * reported twice. Between a core's read of the word and its addition the entry may change its flow; then one packet is counted for
 * another flow. The floor is so high that packets of all cores fit below it. If two cores take one free entry, one of them loses and counts
 * it (raced). */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "spin.h"
#include "hash.h"
#include "key.h"
#include "prefix.h"
#include "report.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CARPE_WAYS 3
#define CARPE_FLOOR (1U << 24)

enum carpe_counter {
	CARPE_PACKETS,      /* with a key */
	CARPE_UNITS,        /* packets or bytes of these */
	CARPE_NO_KEY,       /* packets without such a key: family or ports */
	CARPE_HELD,         /* units that were taken off bundles */
	CARPE_BEGUN,        /* bundles */
	CARPE_FULL,         /* bundles that became full, and packets that are one by themselves */
	CARPE_REPORTED,     /* ... of which the coin chose to report */
	CARPE_LOST_REPORTS, /* the ring was full */
	CARPE_COLLIDED,     /* sampled packets that found no place */
	CARPE_LOST_HANDED,  /* ... and could not be handed over: the ring was full */
	CARPE_RACED,        /* sampled packets that lost a free place to another core */
	CARPE_ASKED,        /* packets that asked for parameters */
	CARPE_DEFAULT,      /* ... of a group without parameters */
	CARPE_TOLD,         /* groups reported to the control plane */
	CARPE_LOST_GROUPS,  /* ... and was not: the ring was full */
	CARPE_COUNTS
};

enum carpe_kind { CARPE_REPORT = 1, CARPE_GROUP, CARPE_HANDED };

struct carpe_group {
	__u32 tau;    /* units of a bundle */
	__u32 chance; /* it is reported if a coin of 32 bits is not above it */
	__u32 observers; /* hosts: r = 1 / observers */
	__u32 unused;
};

struct carpe_event {
	__u64 key[KEY_WORDS];
	__u32 kind;
	__u32 units;     /* of the bundle; of the packet that was handed over */
	__u32 observers; /* that r was made of */
	__u32 family;
};

const volatile __u32 carpe_ways = 2;
const volatile _Bool carpe_bytes = 0;
const volatile _Bool carpe_handover = 0;
const volatile __u64 carpe_chance = 1ULL << 28; /* 2^32 s */
const volatile __u32 carpe_start = 16;          /* 1/s */
const volatile __u32 carpe_least = 17;          /* the smallest tau that there can be */
const volatile __u32 carpe_src4 = 0xffff0000, carpe_dst4 = 0; /* masks of groups, host order */
const volatile __u64 carpe_src6 = 0xffffffff00000000ULL, carpe_dst6 = 0;

/* Element 0 is for unknown groups. */
TABLE(carpe_groups, struct carpe_group, 4097);
PREFIX_TABLE(carpe_prefixes, 1 << 16);

REGISTER(carpe_d0, 1, __u64, 16384);
REGISTER(carpe_d1, 2, __u64, 16384);
REGISTER(carpe_d2, 3, __u64, 16384);
/* Groups that were reported to the control plane: a digest at an index of the group. */
REGISTER(carpe_heard, 4, __u32, 4096);

COUNTERS(carpe_counts, CARPE_COUNTS);
RING(carpe_events, 1 << 20);

const enum carpe_counter *unused_counter __attribute__((unused));
const enum carpe_kind *unused_kind __attribute__((unused));
const struct carpe_event *unused_event __attribute__((unused));
const struct carpe_group *unused_group __attribute__((unused));

/* What a packet stores of itself. */
struct pass {
	struct key key;
	__u32 index[CARPE_WAYS];
	__u32 signature;
	__u32 units;
	__u32 bundle;  /* units of the bundle that this packet made full, beyond tau; tau is added when it is reported */
	__u64 begin;   /* what it would write into a free place; 0: it may not */
	const struct carpe_group *group; /* NULL until it was asked for */
	__u8 found;    /* its place: it needs no other */
	__u8 full;
};

static __always_inline __u32 slot_of(__u32 h)
{
	if (hash_crc)
		return h & (carpe_d0_entries - 1);
	return (__u64)h * carpe_d0_entries >> 32;
}

static __always_inline void place(struct pass *p)
{
	struct hash_input in;
	__u64 h, g;

	if (hash_crc) {
		key_fields_of(&in, &p->key);
		p->index[0] = slot_of(hash_crc32(&in, 0));
		p->index[1] = carpe_ways > 1 ? slot_of(hash_crc32(&in, 1)) : 0;
		p->index[2] = carpe_ways > 2 ? slot_of(hash_crc32(&in, 2)) : 0;
		p->signature = hash_crc32(&in, 3);
		return;
	}
	h = key_hash(&p->key);
	g = carpe_ways > 1 ? hash_mix(h + 0x632be59bd9b4e019ULL) : 0;
	p->signature = h >> 32;
	p->index[0] = slot_of(h);
	p->index[1] = slot_of(g);
	p->index[2] = slot_of(g >> 32);
}

/* The group of a packet: each source prefix has a trie of destination prefixes. */
static __always_inline void ask(struct phv *phv, struct pass *p, struct carpe_counts_t *count)
{
	__u64 head = prefix_head(&carpe_prefixes);
	__u32 value;

	value = prefix_of(&carpe_prefixes, head, phv->family == 6, phv->src, phv->family);
	if (value)
		value = prefix_of(&carpe_prefixes, head, value, phv->dst, phv->family);
	p->group = bpf_map_lookup_elem(&carpe_groups, &value);
	count->c[CARPE_ASKED]++;
	count->c[CARPE_DEFAULT] += !value;
}

/* May this packet start a bundle? Units are sampled one by one: at least one of n is with probability n s, which is right in
 * expectation while it is at most 1; a packet of more than 1/s units counts with its own size. */
static __always_inline void sample(struct phv *phv, struct pass *p, struct carpe_counts_t *count)
{
	__u32 start = carpe_start;

	p->begin = 0;
	p->group = 0;
	if (coin_spin(phv) >= carpe_chance * p->units)
		return;
	ask(phv, p, count);
	if (!p->group)
		return;
	if (start < p->units)
		start = p->units;
	p->begin = (__u64)p->signature << 32 | (CARPE_FLOOR + p->group->tau - start);
}

/* If the entry is this flow's: subtracts the packet's units. */
static __always_inline void take_off(__u64 *word, __u64 old, struct pass *p, struct carpe_counts_t *count)
{
	__u32 left;

	if (old >> 32 != p->signature)
		return;
	left = reg_add(word, -(__u64)p->units);
	p->found = 1;
	count->c[CARPE_HELD] += p->units;
	if (left <= CARPE_FLOOR || left - p->units > CARPE_FLOOR)
		return;
	p->full = 1;
	p->bundle = CARPE_FLOOR - (left - p->units);
}

/* One stage for a packet that may start a bundle, ... */
static __always_inline void visit_sampled(__u64 *word, struct pass *p, struct carpe_counts_t *count)
{
	__u64 old = reg_load(word);

	if ((__u32)old > CARPE_FLOOR) {
		take_off(word, old, p, count);
		return;
	}
	p->found = 1;
	if (reg_cas(word, old, p->begin) == old)
		count->c[CARPE_BEGUN]++;
	else
		count->c[CARPE_RACED]++;
}

/* ... and for one that may not. */
static __always_inline void visit(__u64 *word, struct pass *p, struct carpe_counts_t *count)
{
	__u64 old = reg_load(word);

	if ((__u32)old > CARPE_FLOOR)
		take_off(word, old, p, count);
}

#define VISIT(i)                                                                                      \
	do {                                                                                          \
		if (i < carpe_ways && !p.found) {                                                     \
			__u64 *word_ = reg_at(carpe_d##i, p.index[i]);                                \
			if (word_ && p.begin)                                                         \
				visit_sampled(word_, &p, count);                                      \
			else if (word_)                                                               \
				visit(word_, &p, count);                                              \
		}                                                                                     \
	} while (0)

static __always_inline int send(const struct phv *phv, const struct pass *p, __u32 kind, __u32 units, __u32 observers)
{
	struct carpe_event e = {.kind = kind, .units = units, .observers = observers, .family = phv->family};

#pragma unroll
	for (int i = 0; i < KEY_WORDS; i++)
		e.key[i] = p->key.w[i];
	return ring_send(carpe_events, &e);
}

static __always_inline void report(struct phv *phv, const struct pass *p, struct carpe_counts_t *count)
{
	count->c[CARPE_FULL]++;
	if (coin_spin(phv) > p->group->chance)
		return;
	count->c[CARPE_REPORTED]++;
	if (!send(phv, p, CARPE_REPORT, p->bundle, p->group->observers))
		count->c[CARPE_LOST_REPORTS]++;
}

/* Digest and index of a packet's group. */
static __always_inline __u32 group_of(const struct phv *phv, __u32 *slot)
{
	__u64 src, dst, h;
	__u32 w[2];

	if (hash_crc) {
		w[0] = phv->family == 4 ? phv->src[3] & bpf_htonl(carpe_src4) : phv->src[0] & bpf_htonl(carpe_src6 >> 32);
		w[1] = phv->family == 4 ? phv->dst[3] & bpf_htonl(carpe_dst4) : phv->dst[0] & bpf_htonl(carpe_dst6 >> 32);
		*slot = hash_crc32_words(w, 2, 0) & (carpe_heard_entries - 1);
		return hash_crc32_words(w, 2, 1);
	}
	if (phv->family == 4) {
		src = bpf_ntohl(phv->src[3]) & carpe_src4;
		dst = bpf_ntohl(phv->dst[3]) & carpe_dst4;
	} else {
		src = key_half(phv->src, 0) & carpe_src6;
		dst = key_half(phv->dst, 0) & carpe_dst6;
	}
	h = hash_word(hash_word(hash_seed ^ phv->family, src), dst);
	*slot = h & (carpe_heard_entries - 1);
	return h >> 32;
}

/* Reports a group to the control plane with its first packet: carpe_heard has the digests of groups reported. */
static __always_inline void hello(struct phv *phv, const struct pass *p, struct carpe_counts_t *count)
{
	__u32 slot, digest = group_of(phv, &slot), *heard = reg_at(carpe_heard, slot);

	if (!heard || reg_load(heard) == digest)
		return;
	reg_store(heard, digest);
	count->c[CARPE_TOLD]++;
	if (!send(phv, p, CARPE_GROUP, 0, 0))
		count->c[CARPE_LOST_GROUPS]++;
}

/* A sampled packet without an entry. */
static __always_inline void collide(struct phv *phv, const struct pass *p, struct carpe_counts_t *count)
{
	count->c[CARPE_COLLIDED]++;
	if (carpe_handover && !send(phv, p, CARPE_HANDED, p->units, p->group->observers))
		count->c[CARPE_LOST_HANDED]++;
}

/* A packet that is a bundle by itself. */
static __always_inline int bundle_alone(struct phv *phv, struct pass *p, struct carpe_counts_t *count)
{
	if (likely(p->units < carpe_least))
		return 0;
	ask(phv, p, count);
	if (!p->group || p->units < p->group->tau)
		return 0;
	p->bundle = p->units;
	return 1;
}

ALGORITHM(carpe)
{
	struct carpe_counts_t *count = counters_of(carpe_counts, phv);
	struct pass p;

	if (!count)
		return;
	if (!key_of(phv, &p.key)) {
		count->c[CARPE_NO_KEY]++;
		return;
	}
	p.units = carpe_bytes ? phv->len : phv->segs;
	count->c[CARPE_PACKETS] += phv->segs;
	count->c[CARPE_UNITS] += p.units;
	p.bundle = p.full = p.found = 0;
	if (!bundle_alone(phv, &p, count)) {
		place(&p);
		sample(phv, &p, count);
		VISIT(0);
		VISIT(1);
		VISIT(2);
		if (p.full && !p.group)
			ask(phv, &p, count);
		if (likely(!p.group))
			return;
		if (p.begin && !p.found)
			collide(phv, &p, count);
		p.bundle += p.group->tau;
	} else {
		p.full = 1;
	}
	if (p.full)
		report(phv, &p, count);
	hello(phv, &p, count);
}
