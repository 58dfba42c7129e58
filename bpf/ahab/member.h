/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whose packet it is. A membership is one word, which tables hold and every packet looks up once:
 *
 *	bits  0..15  slice, from 1; 0: in none, and of no interest
 *	bits 16..25  the user's weight, 1 to 1000
 *	bits 26..27  what a user is: enum ahab_user
 *	bits 28..33  bits of its IPv4 address that distinguish users
 *	bits 34..41  ... of its IPv6 address */
#pragma once

#include "phv.h"
#include "prefix.h"

enum ahab_user { AHAB_USER_FLOW = 0, AHAB_USER_SOURCE = 1, AHAB_USER_DESTINATION = 2 };

#define AHAB_SLICE(m) ((__u32)(m) & 0xffff)
#define AHAB_WEIGHT(m) ((__u32)((m) >> 16) & 0x3ff)
#define AHAB_USER(m) ((__u32)((m) >> 26) & 3)
#define AHAB_PREFIX4(m) ((__u32)((m) >> 28) & 0x3f)
#define AHAB_PREFIX6(m) ((__u32)((m) >> 34) & 0xff)

/* Not 0: everything is in one slice, and this is the membership. */
const volatile __u64 ahab_everything = 1 | 1 << 16;

/* What decides whose packet it is, in this order: userspace/ahab/slices. The value found in one trie is the slice and the user's weight, bits
 * 0 to 25 of the membership, or names the next field (bits 27 to 29), and in which trie (bits 0 to 26). Trie 0 holds the start.
 * Addresses of IPv6 are looked up in the next trie. */
enum ahab_field { AHAB_INTERFACE, AHAB_VLAN, AHAB_MARK, AHAB_SOURCE, AHAB_DESTINATION, AHAB_FIELDS };

#define AHAB_ONWARD (1U << 30)
#define AHAB_FIELD(v) ((v) >> 27 & 7)
#define AHAB_ROOT(v) ((v) & ((1U << 27) - 1))
#define AHAB_NO_VLAN 0xffff

PREFIX_TABLE(ahab_members, 1 << 12);

const enum ahab_field *unused_field __attribute__((unused));

static __always_inline __u32 member_address(__u64 head, __u32 value, const __u32 *addr, const struct phv *phv)
{
	return prefix_of(&ahab_members, head, AHAB_ROOT(value) + (phv->family == 6), addr, phv->family);
}

static __always_inline __u32 member_next(__u64 head, __u32 value, const struct phv *phv)
{
	__u32 field = AHAB_FIELD(value), key;

	if (field >= AHAB_SOURCE)
		return !phv_has(phv, PHV_IP) ? 0 : member_address(head, value, field == AHAB_SOURCE ? phv->src : phv->dst, phv);
	key = phv->ifindex;
	if (field == AHAB_VLAN)
		key = phv_has(phv, PHV_VLAN) ? phv->vlan : AHAB_NO_VLAN;
	if (field == AHAB_MARK)
		key = phv->mark;
	return prefix_find(&ahab_members, head, AHAB_ROOT(value), (__u64)key << 32, 0);
}

/* Slice and weight; ahab_slices defines what a user is in it. */
static __always_inline __u64 ahab_member(const struct phv *phv)
{
	__u64 head;
	__u32 value;

	if (ahab_everything)
		return ahab_everything;
	head = prefix_head(&ahab_members);
	value = prefix_find(&ahab_members, head, 0, 0, 0);
	for (int i = 0; i < AHAB_FIELDS && value & AHAB_ONWARD; i++)
		value = member_next(head, value, phv);
	return value & AHAB_ONWARD ? 0 : value;
}
