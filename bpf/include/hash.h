/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Flow hashes. Two families, chosen when the program is loaded (hash_crc):
 *
 * fast  Seeded 64-bit multiply-xorshift. Each endpoint (address, port) is hashed once a packet, on first use, into
 *       phv->ep_src and phv->ep_dst; the directional, the reverse and the canonical flow hash are one more mix
 *       of the two each, so a response finds its request's hash without hashing addresses again.
 * crc   CRC-32 over the byte string that the P4 twin feeds its Hash externs, with a polynomial a row (rows that
 *       differ only in seed collide together: a CRC is linear). For indices that agree with a switch.
 *
 * Unlikely-collision bound: the 64-bit fast hash of two different flows is equal with probability 2^-64;
 * signatures are 32 bits of it, indices other bits. */
#pragma once

#include "phv.h"

const volatile __u64 hash_seed = 0x9e3779b97f4a7c15ULL;
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

static __always_inline __u64 hash_word(__u64 h, __u64 w)
{
	return hash_mix(h ^ w) + w;
}

/* One endpoint: injective for IPv4 (48 bits into a bijection), 128 + 16 bits folded for IPv6. */
static __always_inline __u64 hash_endpoint(const __u32 *addr, __u16 port, __u8 family)
{
	__u64 low = ((__u64)addr[3] << 16) | port;

	if (family == 4)
		return hash_mix(low ^ hash_seed);
	return hash_word(hash_word(hash_seed ^ low, ((__u64)addr[0] << 32) | addr[1]), addr[2]);
}

/* Hashes both endpoints on first use, at most once a packet: most packets are of no interest to any algorithm. */
static __always_inline void hash_endpoints(const struct phv *vector)
{
	struct phv *phv = (struct phv *)vector;

	if (phv->ep_src)
		return;
	phv->ep_src = hash_endpoint(phv->src, phv->sport, phv->family);
	phv->ep_dst = hash_endpoint(phv->dst, phv->dport, phv->family);
}

static __always_inline __u64 hash_pair(__u64 a, __u64 b, __u64 salt)
{
	return hash_mix(a + ((b << 23) | (b >> 41)) + salt * 0x9e3779b97f4a7c15ULL);
}

/* Directional: (src, sport) -> (dst, dport). salt separates uses; protocol is part of it. */
static __always_inline __u64 hash_flow(const struct phv *phv, __u64 salt)
{
	hash_endpoints(phv);
	return hash_pair(phv->ep_src, phv->ep_dst, salt ^ ((__u64)phv->proto << 56));
}

/* The directional hash of the opposite direction's packets. */
static __always_inline __u64 hash_reverse(const struct phv *phv, __u64 salt)
{
	hash_endpoints(phv);
	return hash_pair(phv->ep_dst, phv->ep_src, salt ^ ((__u64)phv->proto << 56));
}

/* One end alone: (dst, dport). */
static __always_inline __u64 hash_destination(const struct phv *phv, __u64 salt)
{
	hash_endpoints(phv);
	return hash_mix(phv->ep_dst + salt * 0x9e3779b97f4a7c15ULL);
}

/* Canonical: equal for both directions. */
static __always_inline __u64 hash_canonical(const struct phv *phv, __u64 salt)
{
	hash_endpoints(phv);
	return hash_mix((phv->ep_src ^ phv->ep_dst) + (phv->ep_src + phv->ep_dst) * 0x9e3779b97f4a7c15ULL +
			salt + ((__u64)phv->proto << 56));
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

static __always_inline __u32 hash_crc32(const struct hash_input *in, int row)
{
	__u32 zero = 0, crc = ~0U;
	struct hash_tables *t = bpf_map_lookup_elem(&hash_crc_tables, &zero);

	if (!t)
		return 0;
#pragma unroll
	for (int i = 0; i < HASH_WORDS; i++) {
		crc ^= in->w[i];
		crc = t->row[row][3][crc & 255] ^ t->row[row][2][(crc >> 8) & 255] ^
		      t->row[row][1][(crc >> 16) & 255] ^ t->row[row][0][crc >> 24];
	}
	return ~crc;
}
