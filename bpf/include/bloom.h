/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bloom filter (Bloom 1970) of two banked bit arrays: has this flow been reported in this window?
 *
 * One touch per array and packet: the bit is set and its old value returned. Userspace clears the closed bank at the end of
 * a window. With n flows in it and m bits per array, a flow that was not reported is taken for one that was, and so stays
 * unreported, with probability (1 - exp(-n/m))^2: 1.3 % for a thousand flows in two times 8,192 bits. */
#pragma once

#include "register.h"
#include "phv.h"
#include "sketch.h"

/* name: at most 13 characters. n: words of 32 bits per array, a power of two up to 2048. */
#define BLOOM(name, s0, s1, n)                                                                        \
	REGISTER_BANKED(name##_0, s0, __u32, n);                                                      \
	REGISTER_BANKED(name##_1, s1, __u32, n)

/* Sets one bit; 1 if it was not set. bits: 16 bits of hash. */
#define BLOOM_SET(array, phv, bits)                                                                   \
	({                                                                                            \
		__u32 mask_ = 1U << ((bits) & 31), *word_, fresh_ = 0;                                \
		word_ = reg_bank(array, phv, ((bits) >> 5 & 0x7ff) & (array##_entries - 1));          \
		if (word_)                                                                            \
			fresh_ = !(__sync_fetch_and_or(word_, mask_) & mask_);                        \
		fresh_;                                                                               \
	})
#define BLOOM_BITS(at, i) ((__u32)((at)->rest >> (16 + 16 * (i))) & 0xffff)
