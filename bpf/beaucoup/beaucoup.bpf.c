//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* beaucoup: many "how many distinct A per B passed T" queries at once, with at most one table touch per packet.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 4 (BeauCoup).
 *
 * A query counts distinct attributes by collecting coupons: an attribute's hash draws coupon c of query q with probability
 * p_q, always the same one, and an alert is sent when n_q of m_q coupons are collected (section 4.2). Queries on the same
 * attribute share its hash and have disjoint ranges of it. If two attributes of one packet draw, a fair coin decides; if
 * more do, none collects (section 4.4.1), and userspace's compiler corrects the probabilities for that.
 *
 * No query is compiled in. The vector's fields are eight words; an attribute and a key are a mask of each, a
 * filter is a mask and a value of the word with protocol and flags. All of this is in tables with two halves, selected by
 * one word that a packet reads once: a set of queries is exchanged between two packets.
 *
 * The coupons of an attribute are consecutive from 0 in the range of its hash, in steps of 2^-grain. A packet first compares
 * its hash with their end, so most packets stop there and the cost does not depend on the number of queries.
 *
 * Several coupons a packet (section 4.6, beaucoup.tables): the attributes are divided among up to three tables of collectors, and each table takes
 * one coupon a packet, of those that its attributes draw one at random. A field of a key that draws for another query does so in every packet of
 * that key, and so takes half of its coupons; userspace/beaucoup/compile/tables.go puts such attributes into different tables.
 * A second place (beaucoup.places): a coupon whose slot belongs to another key goes to one more table, at most one a packet. A key there
 * restarts in its first place once the other key's window has ended, and its alert is late by the coupons that it had. Every array is touched once, for one
 * coupon; on a switch tables lie side by side in the same stages, here each has stages of its own, because a packet's coupons take turns.
 *
 * Userspace may end a slot's collector by writing 0 to its end (userspace/beaucoup/evict.go): the next coupon of any key
 * takes the slot.
 *
 * Three registers (section 4.4.2): the end of the collector's window, its key, and its coupons. The end of the
 * window is stored and not its start, so that a query with a short window does not end the collector of one with a long
 * window that has the same slot.
 *
 * Collecting continues after the alert, and userspace reads how many attributes there were from the coupons that are set. All of
 * them soon are, so a fourth register has the collector's tail: TAILS rarer coupons. Other bits of the hash that drew the
 * coupon choose one of them, at one of TAIL_LEVELS levels, each half as probable as the one before (1/96 to 1/12288 of the coupons each). One coupon in eight draws
 * from the tail; a packet without a coupon never does. 27 % is what a tail's count errs by, as far as its rarest coupons
 * reach: 100 times a threshold and more.
 * userspace/beaucoup/compile/total.go has the same numbers. A tail bears 16 bits of the end of its window and restarts
 * where they differ, so that a collector's start does not touch it; two cores that restart it at once may lose one of their two bits.
 *
 * Two cores may access a slot while it changes its key: one has started a collector in stage 1, and the other reads stage 3
 * before the first one has. So a vector of 32 coupons has the end of its window in its upper half: coupons of
 * the window before do not count, cause no alert, and a coupon that arrives too early is lost and counted (lost.raced). What
 * remains: a core that has read its window's vector and is overtaken by the start of the next window adds its coupon to that: one
 * coupon in n, between two instructions. Vectors of 64 coupons have no space for the end: there a core between the
 * stages adds to the coupons of the window before, and if they were n - 1 or more, it alerts. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "coin.h"
#include "hash.h"
#include "report.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ATTRIBUTES 16
#define QUERIES 128
#define COUPONS 65536 /* steps of all attributes of one half */
#define QUERY_BITS 7
#define TAILS 48
#define TAIL_LEVELS 8
#define WORDS 8

/* The vector as words, to which masks apply. userspace/beaucoup/compile/fields.go names the fields. */
enum beaucoup_word {
	WORD_SRC_HIGH, WORD_SRC_LOW, WORD_DST_HIGH, WORD_DST_LOW,
	WORD_PORTS,  /* sport 48.., dport 32.., proto 24.., tcp flags 16.., family (4 or 6) 12.., vlan 0.. */
	WORD_PACKET, /* different for every packet: the attribute `timestamp` */
	WORD_APP,    /* DNS or NTP identifier: userspace names it dns.id */
	WORD_QNAME,  /* hash of the name that a DNS message asks for */
};

enum beaucoup_counter {
	BEAUCOUP_PACKETS,
	BEAUCOUP_DRAWN,     /* coupons drawn by attributes */
	BEAUCOUP_TIES,      /* packets with two: one of them lost */
	BEAUCOUP_CROWDS,    /* packets with three or more: all lost; with several tables, those of a table but one */
	BEAUCOUP_COLLECTED, /* coupons added to a collector */
	BEAUCOUP_NEW,       /* ... for the first time */
	BEAUCOUP_STARTED,   /* collectors started */
	BEAUCOUP_COLLIDED,  /* coupons lost because the slot belongs to another key */
	BEAUCOUP_ALERTS,
	BEAUCOUP_LOST_ALERTS, /* the ring was full */
	BEAUCOUP_LOST_EXPORTS,
	BEAUCOUP_AGGREGATES, /* packets of several segments: `timestamp` counts them once */
	BEAUCOUP_NO_KEY,     /* coupons lost because the packet has no such key (no ports, ...) */
	BEAUCOUP_RACED,      /* coupons lost because another core was just beginning the collector */
	BEAUCOUP_SECOND,     /* coupons that went to the second place, since another key has the first */
	BEAUCOUP_COUNTS
};

struct beaucoup_attribute {
	__u64 mask[WORDS];
	__u64 salt;
	__u64 filter_mask, filter_value; /* of WORD_PORTS */
	__u32 limit; /* hashes below it, in steps, draw */
	__u32 shift; /* 32 - grain */
	__u32 base;  /* its first step in beaucoup_coupons */
	__u16 valid; /* enum phv_valid bits, and HAS_APP, that a packet must have */
	__u16 used;
};

struct beaucoup_query {
	__u64 mask[WORDS]; /* of the key */
	__u64 salt;
	__u32 window;  /* ticks */
	__u32 horizon; /* the longest window of the set, and what two cores' clocks may differ by, in ticks */
	__u32 n;       /* coupons for an alert */
	__u32 id;      /* of the query, the same in both halves: the low QUERY_BITS of its collectors' checksums */
	__u16 valid;
	__u16 pad[3];
};

struct beaucoup_event {
	__u64 time; /* ns */
	__u64 age;  /* ns since the collector's first coupon, within a tick */
	__u64 key[WORDS];
	__u64 coupons; /* after this one */
	__u32 query;   /* its id */
	__u32 coupon;
	__u32 alert;   /* 1: the query's threshold; 0: a new coupon (export) */
	__u32 ifindex;
	__u32 slot; /* where the collector is; 24..: in which table */
	__u32 end;  /* of its window, as the slot has it */
};

const volatile __u64 beaucoup_multipliers[WORDS] = {
	0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL, 0x94d049bb133111ebULL, 0xd6e8feb86659fd93ULL,
	0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL, 0x8ebc6af09c88c6e3ULL, 0x589965cc75374cc3ULL,
};
const volatile __u32 beaucoup_tick = 10; /* collectors' clocks count 2^tick ns: 73 minutes in 32 bits */
const volatile _Bool beaucoup_export = 0;
const volatile _Bool beaucoup_dated = 1; /* collectors have 32 coupons or fewer, and their window's end in the upper half */
const volatile _Bool beaucoup_total = 1; /* collectors have a tail */
const volatile __u32 beaucoup_tables = 1;
const volatile _Bool beaucoup_second = 0; /* there is a second place */
const volatile _Bool beaucoup_keyed = 0; /* attributes are hashed by SipHash-1-3 with this key: section 4.6, security */
const volatile __u64 beaucoup_key[2] = {0x736f6d6570736575ULL, 0x646f72616e646f6dULL};

/* One word: bit 0 which half, bits 8..15 attributes in use, bit 16 whether one of them is `timestamp`; with several tables, bits 17..21 the first
 * attribute of the second, and bits 22..26 the one after its last. */
TABLE(beaucoup_active, __u32, 1);
TABLE(beaucoup_attributes, struct beaucoup_attribute, 2 * ATTRIBUTES);
TABLE(beaucoup_coupons, __u32, 2 * COUPONS); /* 0: none; else 1 << 16 | query << 8 | coupon */
TABLE(beaucoup_queries, struct beaucoup_query, 2 * QUERIES);

/* Packets of a core, for the attribute `timestamp`: clocks and captures repeat a microsecond, a number does not repeat
 * before 2^32 packets. */
REGISTER_PERCPU_BANKED(beaucoup_packets, 0, __u32, 1);
REGISTER(beaucoup_ends, 1, __u32, 65536);
REGISTER(beaucoup_keys, 2, __u32, 65536);
REGISTER(beaucoup_vectors, 3, __u64, 65536);
REGISTER(beaucoup_tails, 4, __u64, 65536); /* end of the window 48..63, coupons of the tail 0..47 */
REGISTER(beaucoup_ends1, 5, __u32, 1); /* the second table */
REGISTER(beaucoup_keys1, 6, __u32, 1);
REGISTER(beaucoup_vectors1, 7, __u64, 1);
REGISTER(beaucoup_tails1, 8, __u64, 1);
REGISTER(beaucoup_ends2, 9, __u32, 1); /* the third */
REGISTER(beaucoup_keys2, 10, __u32, 1);
REGISTER(beaucoup_vectors2, 11, __u64, 1);
REGISTER(beaucoup_tails2, 12, __u64, 1);
REGISTER(beaucoup_ends3, 13, __u32, 1); /* the second place */
REGISTER(beaucoup_keys3, 14, __u32, 1);
REGISTER(beaucoup_vectors3, 15, __u64, 1);
REGISTER(beaucoup_tails3, 16, __u64, 1);

COUNTERS(beaucoup_counts, BEAUCOUP_COUNTS);

RING(beaucoup_events, 1 << 20);

const enum beaucoup_counter *unused_counter __attribute__((unused));
const enum beaucoup_word *unused_word __attribute__((unused));
const struct beaucoup_event *unused_event __attribute__((unused));

/* Replaces PHV_RTP, which no query uses: the packet has an identifier, of a request or of a response. */
#define HAS_APP (1 << 15)

struct words {
	__u64 w[WORDS];
	__u16 valid; /* enum phv_valid, HAS_APP */
};

static __always_inline int has(const struct words *v, __u16 bits)
{
	return (v->valid & bits) == bits;
}

/* Stage 0: a unique number of the packet. A replay has one core, and the same numbers on any of them. */
static __always_inline __u64 number_of(const struct phv *phv)
{
	__u32 *packets = reg_bank(beaucoup_packets, phv, 0), number;

	if (!packets)
		return 0;
	number = reg_load(packets) + 1;
	reg_store(packets, number);
	return (coin_seeded ? 0 : (__u64)bpf_get_smp_processor_id() << 33) | (__u64)phv->bank << 32 | number;
}

static __always_inline void words_of(struct phv *phv, struct words *v)
{
	v->w[WORD_SRC_HIGH] = (__u64)bpf_ntohl(phv->src[0]) << 32 | bpf_ntohl(phv->src[1]);
	v->w[WORD_SRC_LOW] = (__u64)bpf_ntohl(phv->src[2]) << 32 | bpf_ntohl(phv->src[3]);
	v->w[WORD_DST_HIGH] = (__u64)bpf_ntohl(phv->dst[0]) << 32 | bpf_ntohl(phv->dst[1]);
	v->w[WORD_DST_LOW] = (__u64)bpf_ntohl(phv->dst[2]) << 32 | bpf_ntohl(phv->dst[3]);
	v->w[WORD_PORTS] = (__u64)phv->sport << 48 | (__u64)phv->dport << 32 | (__u64)phv->proto << 24 |
			   (__u64)(phv->valid & PHV_TCP ? phv->tcp_flags : 0) << 16 | (__u64)(phv->family & 15) << 12 |
			   (phv->valid & PHV_VLAN ? phv->vlan : 0);
	v->w[WORD_PACKET] = 0;
	v->w[WORD_APP] = 0;
	v->valid = phv->valid & ~HAS_APP;
	if (phv->valid & (PHV_APP_REQUEST | PHV_APP_RESPONSE)) {
		v->w[WORD_APP] = phv->app_id;
		v->valid |= HAS_APP;
	}
	v->w[WORD_QNAME] = phv->valid & PHV_QNAME ? phv->qname : 0;
}

/* Multilinear hash of the masked words with secret odd multipliers, finished by a mix. */
static __always_inline __u64 hash_words(const struct words *v, const __u64 *mask, __u64 salt)
{
	__u64 sum = salt;

#pragma unroll
	for (int i = 0; i < WORDS; i++)
		sum += (v->w[i] & mask[i]) * beaucoup_multipliers[i];
	return hash_mix(sum);
}

#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

static __always_inline void sip_round(__u64 *a, __u64 *b, __u64 *c, __u64 *d)
{
	*a += *b;
	*c += *d;
	*b = ROTATE(*b, 13) ^ *a;
	*d = ROTATE(*d, 16) ^ *c;
	*a = ROTATE(*a, 32);
	*c += *b;
	*a += *d;
	*b = ROTATE(*b, 17) ^ *c;
	*d = ROTATE(*d, 21) ^ *a;
	*c = ROTATE(*c, 32);
}

/* SipHash-1-3 (Aumasson and Bernstein 2012) of the salt and the masked words: which attributes draw reveals
 * nothing about the others. A multilinear hash is faster and also unpredictable, but only to those who see no results. */
static __always_inline __u64 hash_keyed(const struct words *v, const __u64 *mask, __u64 salt)
{
	__u64 k0 = beaucoup_key[0], k1 = beaucoup_key[1];
	__u64 a = k0 ^ 0x736f6d6570736575ULL, b = k1 ^ 0x646f72616e646f6dULL;
	__u64 c = k0 ^ 0x6c7967656e657261ULL, d = k1 ^ 0x7465646279746573ULL;

#pragma unroll
	for (int i = -1; i <= WORDS; i++) {
		__u64 m = i < 0 ? salt : i < WORDS ? v->w[i] & mask[i] : 8ULL * (WORDS + 1) << 56;

		d ^= m;
		sip_round(&a, &b, &c, &d);
		a ^= m;
	}
	c ^= 0xff;
#pragma unroll
	for (int i = 0; i < 3; i++)
		sip_round(&a, &b, &c, &d);
	return a ^ b ^ c ^ d;
}

/* --hash crc: the twin's hash input. An IPv4 address and an IPv6 address have separate fields, of which one is zeros, and so
 * have their protocols: a switch has them in different headers. userspace/beaucoup/compile/p4.go writes the same list of fields. */
#define CRC_ADDRESS 5 /* words: IPv4, IPv6 */

static __always_inline void crc_address(__u32 *w, const struct words *v, const __u64 *mask, int high)
{
	int four = (v->w[WORD_PORTS] >> 12 & 15) == 4;
	__u64 a = v->w[high] & mask[high], b = v->w[high + 1] & mask[high + 1];

	w[0] = four ? bpf_htonl((__u32)b) : 0;
	w[1] = four ? 0 : bpf_htonl((__u32)(a >> 32));
	w[2] = four ? 0 : bpf_htonl((__u32)a);
	w[3] = four ? 0 : bpf_htonl((__u32)(b >> 32));
	w[4] = four ? 0 : bpf_htonl((__u32)b);
}

#define CRC_ATTRIBUTE (2 * CRC_ADDRESS + 4) /* ports; protocols of both versions, TCP flags, 0; time and IPv4 identification */

static __noinline __u64 crc_attribute(const struct words *v, const __u64 *mask, __u32 row)
{
	__u32 w[CRC_ATTRIBUTE], proto, crc;
	__u64 ports;

	if (!v || !mask)
		return 0;
	ports = v->w[WORD_PORTS] & mask[WORD_PORTS];
	proto = ports >> 24 & 255;
	crc_address(w, v, mask, WORD_SRC_HIGH);
	crc_address(w + CRC_ADDRESS, v, mask, WORD_DST_HIGH);
	w[10] = bpf_htonl(ports >> 32);
	w[11] = bpf_htonl(((v->w[WORD_PORTS] >> 12 & 15) == 4 ? proto << 24 : proto << 16) | (ports >> 16 & 255) << 8);
	w[12] = bpf_htonl((v->w[WORD_PACKET] & mask[WORD_PACKET]) >> 32);
	w[13] = bpf_htonl((__u32)(v->w[WORD_PACKET] & mask[WORD_PACKET]));
	crc = hash_crc32_words(w, CRC_ATTRIBUTE, row & (HASH_ROWS - 1));
	return (__u64)(crc << 16 | crc >> 16) << 32; /* the twin matches the lower half */
}

#define CRC_KEY 10 /* both addresses, 128 bits each, IPv4 after zeros; ports; protocol, query, 0 */

static __always_inline __u32 crc_key(const struct words *v, const struct beaucoup_query *q, int row)
{
	int four = (v->w[WORD_PORTS] >> 12 & 15) == 4;
	__u64 ports = v->w[WORD_PORTS] & q->mask[WORD_PORTS];
	__u32 w[CRC_KEY];

#pragma unroll
	for (int i = 0; i < 4; i++) {
		__u64 a = v->w[WORD_SRC_HIGH + i] & q->mask[WORD_SRC_HIGH + i];

		w[2 * i] = four ? 0 : bpf_htonl((__u32)(a >> 32));
		w[2 * i + 1] = four && !(i & 1) ? 0 : bpf_htonl((__u32)a);
	}
	w[8] = bpf_htonl(ports >> 32);
	w[9] = bpf_htonl((ports >> 24 & 255) << 24 | (q->id & 255) << 16);
	return hash_crc32_words(w, CRC_KEY, row);
}

static __always_inline __u64 hash_key(const struct words *v, const struct beaucoup_query *q)
{
	return hash_crc ? (__u64)crc_key(v, q, 3) << 32 | crc_key(v, q, 1) : hash_words(v, q->mask, q->salt);
}

static __always_inline __u64 hash_attribute(const struct words *v, const __u64 *mask, __u64 salt, __u32 row)
{
	if (hash_crc)
		return crc_attribute(v, mask, row);
	return beaucoup_keyed ? hash_keyed(v, mask, salt) : hash_words(v, mask, salt);
}

/* The coupon that one attribute of the packet draws, and in the upper half the bits of its hash that have not chosen it; 0: none. */
static __always_inline __u64 draw(const struct words *v, __u32 half, __u32 i)
{
	__u32 slot = half * ATTRIBUTES + i, step, *coupon;
	struct beaucoup_attribute *a = bpf_map_lookup_elem(&beaucoup_attributes, &slot);
	__u64 hash;

	if (!a || !has(v, a->valid) || (v->w[WORD_PORTS] & a->filter_mask) != a->filter_value)
		return 0;
	hash = hash_attribute(v, a->mask, a->salt, i);
	step = (__u32)(hash >> 32) >> (a->shift & 31);
	if (step >= a->limit)
		return 0;
	step += half * COUPONS + a->base;
	coupon = bpf_map_lookup_elem(&beaucoup_coupons, &step);
	return coupon ? hash << 32 | *coupon : 0;
}

#define TABLES 3
#define SECOND_PLACE TABLES

/* At most one coupon per packet and table (section 4.6), of the attributes of a table, which are consecutive: one at random of those drawn,
 * for the nth takes the place of the one before with probability 1/n. */
static __always_inline __u64 choose_of(struct phv *phv, struct words *v, __u32 half, __u32 from, __u32 to, struct beaucoup_counts_t *count)
{
	__u32 any = phv->needs;
	__u64 hits = 0, chosen = 0;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < ATTRIBUTES; i++) {
		__u64 coupon;

		if (from + i >= to)
			break;
		forget(hits, any);
		forget(chosen, any);
		coupon = draw(v, half, from + i);
		if (!(__u32)coupon)
			continue;
		hits++;
		if (hits == 1 || (__u64)coin_flip(phv) * hits >> 32 == 0)
			chosen = coupon;
	}
	if (likely(!hits))
		return 0;
	count->c[BEAUCOUP_DRAWN] += hits;
	count->c[BEAUCOUP_TIES] += hits == 2;
	count->c[BEAUCOUP_CROWDS] += hits > 2;
	return chosen;
}

/* At most one coupon per packet: section 4.4.1. */
static __always_inline __u64 choose(struct phv *phv, struct words *v, __u32 active, struct beaucoup_counts_t *count)
{
	__u32 half = active & 1, used = active >> 8 & 0xff, any = phv->needs;
	__u64 hits = 0, first = 0, second = 0;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < ATTRIBUTES; i++) {
		__u64 coupon;

		if (i >= used)
			break;
		forget(hits, any); /* how many there were so far makes no other path */
		forget(first, any);
		forget(second, any);
		coupon = draw(v, half, i);
		if (!(__u32)coupon)
			continue;
		hits++;
		second = coupon;
		if (hits == 1)
			first = coupon;
	}
	if (likely(!hits))
		return 0;
	count->c[BEAUCOUP_DRAWN] += hits;
	if (hits == 1)
		return first;
	if (hits > 2) {
		count->c[BEAUCOUP_CROWDS]++;
		return 0;
	}
	count->c[BEAUCOUP_TIES]++;
	return coin_flip(phv) >> 31 ? first : second;
}

/* The end of a collector that starts now; 0 means no collector. A switch's ends are not after the wrap of the clock. */
static __always_inline __u32 end_of(__u32 now, const struct beaucoup_query *q)
{
	__u32 end = now + q->window;

	return hash_crc ? end | -(__u32)(end < now) : end | 1;
}

/* The maximum of a collector's remaining time. A switch compares numbers, and has no ends after the wrap. */
static __always_inline __u32 left_at_most(__u32 now, const struct beaucoup_query *q)
{
	return hash_crc && ~now < q->horizon ? ~now : q->horizon;
}

/* Stage 1: is this the first coupon of a collector? An expired one restarts. end: the end of the window, in ticks; of another
 * core's collector if that was first. */
static __always_inline int starts(__u32 *word, __u32 now, __u32 begun, __u32 most, __u32 *end)
{
	__u32 old = reg_load(word);

	*end = old;
	if (old && old - now <= most)
		return 0;
	*end = reg_cas(word, old, begun);
	if (*end != old)
		return 0;
	*end = begun;
	return 1;
}

/* Stage 2: does the slot belong to this key? */
static __always_inline int owns(__u32 *owner, __u32 check, int fresh)
{
	if (!fresh)
		return reg_load(owner) == check;
	reg_store(owner, check);
	return 1;
}

/* Stage 3: the coupons before this one; false for none, because the vector is still that of the window before. Most coupons are already
 * set, and an atomic operation waits for memory. */
static __always_inline int collect_into(__u64 *vector, __u64 onehot, int fresh, __u32 end, __u64 *old)
{
	__u64 date = beaucoup_dated ? (__u64)end << 32 : 0;

	*old = 0;
	if (fresh) {
		reg_store(vector, date | onehot);
		return 1;
	}
	*old = reg_load(vector);
	if (beaucoup_dated && *old >> 32 != end)
		return 0;
	if (!(*old & onehot))
		*old = __sync_fetch_and_or(vector, onehot);
	if (beaucoup_dated)
		*old = (__u32)*old;
	return 1;
}

/* The coupon of the tail that the rest of an attribute's hash draws, as a bit; 0: none. */
static __always_inline __u64 tail_of(__u32 rest)
{
	__u64 scaled = (__u64)rest * TAILS;
	__u32 place = scaled >> 32, level = 1 + place % TAIL_LEVELS;

	return (__u32)scaled >> (32 - level) ? 0 : 1ULL << place;
}

/* Stage 4. */
static __always_inline void follow(__u64 *tail, __u64 onehot, __u32 end)
{
	__u64 old = reg_load(tail), date = (__u64)end << 47 & ~0ULL << TAILS; /* the last bit of an end is always set */

	if ((old ^ date) >> TAILS)
		reg_store(tail, date | onehot);
	else if (!(old & onehot))
		__sync_fetch_and_or(tail, onehot);
}

static __always_inline __u32 ones(__u64 x)
{
	x -= (x >> 1) & 0x5555555555555555ULL;
	x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	x += x >> 8;
	x += x >> 16;
	x += x >> 32;
	return x & 127;
}

static __always_inline void report(struct phv *phv, const struct words *v, const struct beaucoup_query *q,
				   __u64 coupons, __u32 coupon, __u32 left, int alert, __u32 slot, __u32 end,
				   struct beaucoup_counts_t *count)
{
	struct beaucoup_event e = {.time = clock_now(phv), .coupons = coupons, .query = q->id, .coupon = coupon,
				   .alert = alert, .ifindex = phv->ifindex, .slot = slot, .end = end};

	e.age = left < q->window ? (__u64)(q->window - left) << beaucoup_tick : 0;
#pragma unroll
	for (int i = 0; i < WORDS; i++)
		e.key[i] = v->w[i] & q->mask[i];
	if (!ring_send(beaucoup_events, &e))
		count->c[alert ? BEAUCOUP_LOST_ALERTS : BEAUCOUP_LOST_EXPORTS]++;
}

/* The arrays of a table. */
struct table {
	void *ends, *keys, *vectors, *tails;
	__u32 entries, number;
};

#define TABLE_OF(suffix, n)                                                                           \
	((struct table){&beaucoup_ends##suffix, &beaucoup_keys##suffix, &beaucoup_vectors##suffix, &beaucoup_tails##suffix, \
			beaucoup_ends##suffix##_entries, n})

#define at(array, slot)                                                                               \
	({                                                                                            \
		__u32 key_ = (slot);                                                                  \
		bpf_map_lookup_elem(array, &key_);                                                    \
	})

/* Returns whether the slot belongs to another key. */
static __always_inline int collect(struct phv *phv, const struct words *v, const struct beaucoup_query *q, __u32 coupon,
				   __u32 rest, struct table t, struct beaucoup_counts_t *count)
{
	__u64 hash = hash_key(v, q), onehot = 1ULL << (coupon & 63), old, *vector;
	__u32 slot = (t.number == SECOND_PLACE ? (__u32)hash >> 16 : (__u32)hash) & (t.entries - 1);
	__u32 *word, *owner, now = clock_now(phv) >> beaucoup_tick, end;
	__u32 begun = end_of(now, q), most = left_at_most(now, q);
	__u32 check = ((__u32)(hash >> 32) << QUERY_BITS) | q->id;
	__u64 onetail = beaucoup_total ? tail_of(rest) : 0, *tail;
	int fresh;

	word = at(t.ends, slot);
	if (!word)
		return 0;
	fresh = starts(word, now, begun, most, &end);
	owner = at(t.keys, slot);
	if (!owner)
		return 0;
	if (!owns(owner, check, fresh))
		return 1;
	vector = at(t.vectors, slot);
	if (!vector)
		return 0;
	if (!collect_into(vector, onehot, fresh, end, &old)) {
		count->c[BEAUCOUP_RACED]++;
		return 0;
	}
	if (onetail) {
		tail = at(t.tails, slot);
		if (!tail)
			return 0;
		follow(tail, onetail, end);
	}
	count->c[BEAUCOUP_STARTED] += fresh;
	count->c[BEAUCOUP_COLLECTED]++;
	if (old & onehot)
		return 0;
	count->c[BEAUCOUP_NEW]++;
	slot |= t.number << 24;
	if (ones(old | onehot) == q->n) {
		count->c[BEAUCOUP_ALERTS]++;
		report(phv, v, q, old | onehot, coupon, end - now, 1, slot, end, count);
	} else if (beaucoup_export) {
		report(phv, v, q, old | onehot, coupon, end - now, 0, slot, end, count);
	}
	return 0;
}

/* Collects a coupon in a table; returns whether the slot belongs to another key. half: of the tables. */
static __always_inline int take(struct phv *phv, const struct words *v, __u64 coupon, __u32 half, struct table t, struct beaucoup_counts_t *count)
{
	__u32 slot = half * QUERIES + ((coupon >> 8) & (QUERIES - 1));
	struct beaucoup_query *q = bpf_map_lookup_elem(&beaucoup_queries, &slot);

	if (!q)
		return 0;
	if (has(v, q->valid))
		return collect(phv, v, q, coupon & 0xff, coupon >> 32, t, count);
	count->c[BEAUCOUP_NO_KEY]++;
	return 0;
}

/* A coupon whose slot belongs to another key. late: the one that goes to the second place. */
static __always_inline void collide(__u64 coupon, __u64 *late, struct beaucoup_counts_t *count)
{
	if (beaucoup_second && !*late)
		*late = coupon;
	else
		count->c[BEAUCOUP_COLLIDED]++;
}

static __always_inline void take_second(struct phv *phv, const struct words *v, __u64 coupon, __u32 half, struct beaucoup_counts_t *count)
{
	if (!beaucoup_second || !coupon)
		return;
	count->c[BEAUCOUP_SECOND]++;
	if (take(phv, v, coupon, half, TABLE_OF(3, SECOND_PLACE), count))
		count->c[BEAUCOUP_COLLIDED]++;
}

ALGORITHM(beaucoup)
{
	struct beaucoup_counts_t *count = counters_of(beaucoup_counts, phv);
	__u32 zero = 0, *active = bpf_map_lookup_elem(&beaucoup_active, &zero), now;
	__u32 any = phv->needs;
	__u64 coupon, late = 0;
	struct words v;

	if (!count || !active)
		return;
	now = READ_ONCE(*active);
	words_of(phv, &v);
	if (now & 1 << 16) {
		if (hash_crc)
			v.w[WORD_PACKET] = clock_now(phv) << 16 | (phv->family == 4 ? phv->ipid : 0);
		else
			v.w[WORD_PACKET] = number_of(phv);
	}
	count->c[BEAUCOUP_PACKETS]++;
	count->c[BEAUCOUP_AGGREGATES] += !!(phv->valid & PHV_AGGREGATE);
	if (beaucoup_tables == 1) {
		coupon = choose(phv, &v, now, count);
		if (likely(!(__u32)coupon))
			return;
		if (take(phv, &v, coupon, now & 1, TABLE_OF(, 0), count))
			collide(coupon, &late, count);
	} else {
		__u64 picks[TABLES] = {};

		picks[0] = choose_of(phv, &v, now & 1, 0, now >> 17 & 31, count);
		forget(picks[0], any);
		picks[1] = choose_of(phv, &v, now & 1, now >> 17 & 31, now >> 22 & 31, count);
		forget(picks[1], any);
		if (beaucoup_tables > 2)
			picks[2] = choose_of(phv, &v, now & 1, now >> 22 & 31, now >> 8 & 0xff, count);
		forget(picks[2], any);
		if (likely(!(__u32)(picks[0] | picks[1] | picks[2])))
			return;
		if ((__u32)picks[0] && take(phv, &v, picks[0], now & 1, TABLE_OF(, 0), count))
			collide(picks[0], &late, count);
		forget(late, any);
		if ((__u32)picks[1] && take(phv, &v, picks[1], now & 1, TABLE_OF(1, 1), count))
			collide(picks[1], &late, count);
		forget(late, any);
		if (beaucoup_tables > 2 && (__u32)picks[2] && take(phv, &v, picks[2], now & 1, TABLE_OF(2, 2), count))
			collide(picks[2], &late, count);
		forget(late, any);
	}
	take_second(phv, &v, late, now & 1, count);
}
