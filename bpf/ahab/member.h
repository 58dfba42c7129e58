/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whose packet it is. A membership is one word, which tables hold and every packet looks up once:
 *
 *	bits  0..15  slice, from 1; 0: in none, and of no interest
 *	bits 16..25  the user's weight, 1 to 1000
 *	bits 26..27  what a user is: enum ahab_user
 *	bits 28..33  bits of its IPv4 address that tell users apart
 *	bits 34..41  ... of its IPv6 address */
#pragma once

#include "phv.h"

enum ahab_user { AHAB_USER_FLOW = 0, AHAB_USER_SOURCE = 1, AHAB_USER_DESTINATION = 2 };

#define AHAB_SLICE(m) ((__u32)(m) & 0xffff)
#define AHAB_WEIGHT(m) ((__u32)((m) >> 16) & 0x3ff)
#define AHAB_USER(m) ((__u32)((m) >> 26) & 3)
#define AHAB_PREFIX4(m) ((__u32)((m) >> 28) & 0x3f)
#define AHAB_PREFIX6(m) ((__u32)((m) >> 34) & 0xff)

/* Not 0: everything is in one slice, and this is the membership. */
const volatile __u64 ahab_everything = 1 | 1 << 16;

static __always_inline __u64 ahab_member(const struct phv *phv)
{
	return ahab_everything;
}
