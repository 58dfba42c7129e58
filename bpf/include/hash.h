/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flow hashes. Two families, chosen when the program is loaded (hash_crc):
 *
 * fast  Multilinear hashing of 32-bit words by halves (Lemire and Kaser, "Strongly universal string hashing is fast", The
 *       Computer Journal 57, 2014, the family MULTILINEAR (HM)): the sum of (k + a)(k' + b) over pairs of words, modulo 2^64, with
 *       secret 64-bit multipliers, of which the upper 32 bits are taken. Two lanes with multipliers of their own make 64 bits. Each
 *       endpoint (address, port, protocol) is made 64 bits once a packet, on first use, in phv->ep_src and phv->ep_dst; the directional
 *       and the reverse flow hash are hashes of the two, so a response finds its request's hash without hashing
 *       addresses again.
 * crc   CRC-32 over the byte string that the P4 twin passes to its Hash externs, with one polynomial per row (rows that
 *       differ only in seed collide together: a CRC is linear). For indices that agree with a switch.
 *
 * Bound of the fast family, for any two inputs whatever bits they differ in, as long as they were chosen without knowing the
 * multipliers: the 64 bits are strongly universal (all 2^128 pairs of results are equally likely), so any n of them agree with
 * probability 2^-n. An IPv4 endpoint is its own 64 bits, an IPv6 endpoint is hashed to them: two flows over IPv6 agree with at most
 * 2^-n + 2^-63, since an endpoint may have collided before. The final step (hash_mix) is a bijection of 64 bits, which
 * keeps equally likely pairs equally likely: it is needed because strong universality guarantees nothing for three inputs,
 * and ascending addresses must look random. loader/keys.go expands the seed to multipliers. */
#pragma once

#include "phv.h"

#define HASH_LANE 11 /* multipliers of a lane: one initial, two each for five pairs of words */

const volatile __u64 hash_seed = 0x9e3779b97f4a7c15ULL;
const volatile __u64 hash_keys[2 * HASH_LANE] = {1}; /* the loader writes all; without an initial value it would be no constant */
const volatile _Bool hash_crc = 0;

/* A bijection of 64 bits with full avalanche (two xor-shift-multiply rounds). */
static __always_inline __u64 hash_mix(__u64 x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

/* For a few words that an attacker cannot choose: a bijection of each word, but without a bound for pairs of words. */
static __always_inline __u64 hash_word(__u64 h, __u64 w)
{
	return hash_mix(h ^ w) + w;
}

/* ---- multilinear hashing ---- */

/* The sums of both lanes. */
struct hash_sums {
	__u64 a, b;
};

static __always_inline void hash_begin(struct hash_sums *s, int key)
{
	s->a = hash_keys[key];
	s->b = hash_keys[HASH_LANE + key];
}

/* Two words after multipliers key and key + 1. */
static __always_inline void hash_add(struct hash_sums *s, int key, __u32 x, __u32 y)
{
	s->a += (hash_keys[key] + x) * (hash_keys[key + 1] + y);
	s->b += (hash_keys[HASH_LANE + key] + x) * (hash_keys[HASH_LANE + key + 1] + y);
}

/* One word after multiplier key. */
static __always_inline void hash_add_one(struct hash_sums *s, int key, __u32 x)
{
	s->a += hash_keys[key] * x;
	s->b += hash_keys[HASH_LANE + key] * x;
}

static __always_inline __u64 hash_halves(const struct hash_sums *s)
{
	return (s->a >> 32 << 32) | s->b >> 32;
}

/* One endpoint, or an address alone with port and protocol 0: IPv4 as it is, IPv6 hashed with multipliers 0 to 5. Never 0 for
 * IPv4. For hash_pair() and hash_one(), no hash by itself. */
static __always_inline __u64 hash_endpoint(const __u32 *addr, __u16 port, __u8 proto, __u8 family)
{
	__u32 tail = (__u32)family << 24 | (__u32)proto << 16 | port;
	struct hash_sums s;

	if (family == 4)
		return (__u64)addr[3] << 32 | tail;
	hash_begin(&s, 0);
	hash_add(&s, 1, addr[3], tail);
	hash_add(&s, 3, addr[0], addr[1]);
	hash_add_one(&s, 5, addr[2]);
	return hash_halves(&s);
}

/* Hashes both endpoints on first use, at most once per packet: most packets need no hash. */
static __always_inline void hash_endpoints(const struct phv *vector)
{
	struct phv *phv = (struct phv *)vector;

	if (phv->ep_src)
		return;
	phv->ep_src = hash_endpoint(phv->src, phv->sport, phv->proto, phv->family);
	phv->ep_dst = hash_endpoint(phv->dst, phv->dport, phv->proto, phv->family);
}

/* Multipliers 6 to 10 hash endpoints: separate ones, since IPv6 endpoints depend on the others. salt separates uses: it changes a word
 * before it is multiplied, by the same bits for all flows. */
static __always_inline __u64 hash_one(__u64 a, __u32 salt)
{
	struct hash_sums s;

	hash_begin(&s, 6);
	hash_add(&s, 7, (__u32)(a >> 32) ^ salt, (__u32)a);
	return hash_mix(hash_halves(&s));
}

/* Two endpoints in this order. */
static __always_inline __u64 hash_pair(__u64 a, __u64 b, __u32 salt)
{
	struct hash_sums s;

	hash_begin(&s, 6);
	hash_add(&s, 7, (__u32)(a >> 32) ^ salt, (__u32)a);
	hash_add(&s, 9, b >> 32, (__u32)b);
	return hash_mix(hash_halves(&s));
}

/* Directional: (src, sport) -> (dst, dport), and the protocol. */
static __always_inline __u64 hash_flow(const struct phv *phv, __u32 salt)
{
	hash_endpoints(phv);
	return hash_pair(phv->ep_src, phv->ep_dst, salt);
}

/* 32 bits of the directional flow over IPv6, by one lane over addresses and ports: for callers that need no other hash of the packet, a third of
 * hash_flow(). Two flows agree with probability 2^-32. */
static __always_inline __u32 hash_flow6(const struct phv *phv, __u32 salt)
{
	struct hash_sums s;

	hash_begin(&s, 0);
	hash_add(&s, 1, phv->src[0], phv->src[1]);
	hash_add(&s, 3, phv->src[2], phv->src[3]);
	hash_add(&s, 5, phv->dst[0], phv->dst[1]);
	hash_add(&s, 7, phv->dst[2], phv->dst[3]);
	hash_add(&s, 9, (__u32)phv->sport << 16 | phv->dport, salt ^ phv->proto);
	return s.a >> 32;
}

/* The same for both versions, with two of the five products for IPv4. Flows of different versions agree with probability 2^-31 at most: the products
 * that only one of them has are uniform in the upper half unless a factor has 33 zeros at its end. */
static __always_inline __u32 hash_flow_one(const struct phv *phv, __u32 salt)
{
	struct hash_sums s;

	if (phv->family != 4)
		return hash_flow6(phv, salt);
	hash_begin(&s, 0);
	hash_add(&s, 7, phv->src[3], phv->dst[3]);
	hash_add(&s, 9, (__u32)phv->sport << 16 | phv->dport, salt ^ phv->proto);
	return s.a >> 32;
}

/* 64 bits of a flow that one lane made 32 of, by multipliers of the other lane: strongly universal of those 32, so two flows agree in n given bits with
 * probability 2^-n + 2^-32 at most. */
static __always_inline __u64 hash_spread(__u32 flow)
{
	__u64 a = hash_keys[HASH_LANE] + hash_keys[HASH_LANE + 1] * flow, b = hash_keys[HASH_LANE + 2] + hash_keys[HASH_LANE + 3] * flow;

	return hash_mix((a >> 32 << 32) | b >> 32);
}

/* The directional hash of the opposite direction's packets. */
static __always_inline __u64 hash_reverse(const struct phv *phv, __u32 salt)
{
	hash_endpoints(phv);
	return hash_pair(phv->ep_dst, phv->ep_src, salt);
}

/* One end alone: (dst, dport), and the protocol. */
static __always_inline __u64 hash_destination(const struct phv *phv, __u32 salt)
{
	hash_endpoints(phv);
	return hash_one(phv->ep_dst, salt);
}

/* ---- CRC mode ---- */

#define HASH_ROWS 4   /* polynomials, one a row: loader/hash.go and p4/include/hashing.p4 have the same list */
#define HASH_WORDS 11 /* src, dst, ports, 64-bit discriminator: 44 bytes in network order */

struct hash_tables {
	__u32 row[HASH_ROWS][4][256]; /* slicing by four: reflected CRC-32, initial value and final xor all ones */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct hash_tables);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} hash_crc_tables SEC(".maps") TAG("pisa:table") TAG("xdpmon:shared");

/* The twin's field list: {src, dst, sport, dport, discriminator}, of the packet or of its opposite direction. */
struct hash_input {
	__u32 w[HASH_WORDS];
};

static __always_inline void hash_fields(struct hash_input *in, const struct phv *phv, int reverse, __u64 disc)
{
	const __u32 *a = reverse ? phv->dst : phv->src, *b = reverse ? phv->src : phv->dst;
	__u32 sport = reverse ? phv->dport : phv->sport, dport = reverse ? phv->sport : phv->dport;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		in->w[i] = a[i];
		in->w[4 + i] = b[i];
	}
	in->w[8] = bpf_htonl(sport << 16 | dport);
	in->w[9] = bpf_htonl((__u32)(disc >> 32));
	in->w[10] = bpf_htonl((__u32)disc);
}

/* CRC-32 of words as they lie in memory, of a constant number of them. */
static __always_inline __u32 hash_crc32_words(const __u32 *w, int words, int row)
{
	__u32 zero = 0, crc = ~0U;
	struct hash_tables *t = bpf_map_lookup_elem(&hash_crc_tables, &zero);

	if (!t)
		return 0;
#pragma unroll
	for (int i = 0; i < words; i++) {
		crc ^= w[i];
		crc = t->row[row][3][crc & 255] ^ t->row[row][2][(crc >> 8) & 255] ^
		      t->row[row][1][(crc >> 16) & 255] ^ t->row[row][0][crc >> 24];
	}
	return ~crc;
}

static __always_inline __u32 hash_crc32(const struct hash_input *in, int row)
{
	return hash_crc32_words(in->w, HASH_WORDS, row);
}
