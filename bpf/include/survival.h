/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Histogram cells by the delay of a request and by its number of survived insertions.
 *
 * The correction factor (1 - 1/M)^-x of a sample (Zheng et al., section 3.2) is an exponential, which a data plane cannot
 * compute. So a sample is counted by its delay and by a coarse bin of x, and the cell also sums the position of x within
 * the bin: userspace then knows each cell's mean x, and with it the factor to a fraction of a per cent
 * (userspace/fridge/delay states the accuracy).
 *
 * A cell: count << RESIDUAL_BITS | sum of the residuals of x, in M / 1024. With M up to 1024 that is x itself, above it
 * x rounded down. A residual is below 2^13, so a window may add 2^23 samples of more than 7 M insertions to one cell
 * and CPU, and 2^26 of fewer, before the sum overflows into the count. */
#pragma once

#include "bins.h"

#define SURVIVAL_UNITS 10    /* log2 of the units in M */
#define SURVIVAL_MANTISSA 2  /* bins: quarters of M below 2 M, then four an octave */
#define SURVIVAL_BINS 16     /* the last one starts at 7 M and is open */
#define RESIDUAL_BITS 36

#define SURVIVAL_LAST (7 << SURVIVAL_UNITS) /* start of the open bin */
#define SURVIVAL_MOST ((8 << SURVIVAL_UNITS) - 1) /* largest residual: beyond 15 M a sample counts as one of 15 M */

/* x in units of M / 1024, M = 2^bits. */
static __always_inline __u32 survival_units(__u32 x, __u32 bits)
{
	return bits >= SURVIVAL_UNITS ? x >> (bits - SURVIVAL_UNITS) : x << (SURVIVAL_UNITS - bits);
}

static __always_inline __u32 survival_bin(__u32 units, __u32 *residual)
{
	__u32 bin, edge, e;

	if (units >= SURVIVAL_LAST) {
		*residual = units - SURVIVAL_LAST > SURVIVAL_MOST ? SURVIVAL_MOST : units - SURVIVAL_LAST;
		return SURVIVAL_BINS - 1;
	}
	bin = bins_index(units >> (SURVIVAL_UNITS - 2), SURVIVAL_MANTISSA);
	e = bin < 4 ? 0 : (bin >> 2) - 1;
	edge = bin < 4 ? bin : (4 + (bin & 3)) << e;
	*residual = units - (edge << (SURVIVAL_UNITS - 2));
	return bin;
}

/* The cell of the plane [survival][delay] for a sample, and the value to be added. */
static __always_inline __u32 survival_cell(__u32 x, __u32 bits, __u32 delay_bin, __u32 delay_bins, __u64 *add)
{
	__u32 residual, bin = survival_bin(survival_units(x, bits), &residual);

	*add = (1ULL << RESIDUAL_BITS) + residual;
	return bin * delay_bins + delay_bin;
}
