/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Log-linear bins of a 32-bit number: 2^m bins an octave, exact below 2^m. A bin is a prefix of the binary number
 * (leading one, m bits, wildcards), so a switch finds it with one longest-prefix match. The width of a bin is at
 * most 2^-m of its value. Go's inverse: maps/bins.go. */
#pragma once

#include "base.h"

/* 1 for x above a bound, else 0, without a branch, since the result is unpredictable; the compiler would not choose this form. */
static __always_inline __u32 bins_above(__u32 x, __u32 bound)
{
	__u64 rest = (__u64)bound - x;

	opaque(rest);
	return rest >> 63;
}

/* Position of the highest set bit; x is not 0. */
static __always_inline __u32 bins_log2(__u32 x)
{
	__u32 r, s;

	r = bins_above(x, 0xffff) << 4;
	x >>= r;
	s = bins_above(x, 0xff) << 3;
	x >>= s;
	r |= s;
	s = bins_above(x, 0xf) << 2;
	x >>= s;
	r |= s;
	s = bins_above(x, 0x3) << 1;
	x >>= s;
	r |= s;
	return r | (x >> 1);
}

/* Bins of b-bit numbers with m mantissa bits. */
#define BINS(b, m) (((b) - (m) + 1) << (m))

static __always_inline __u32 bins_index(__u32 x, __u32 m)
{
	__u32 e;

	if (x >> m == 0)
		return x;
	e = bins_log2(x);
	return ((e - m) << m) + (x >> (e - m));
}
