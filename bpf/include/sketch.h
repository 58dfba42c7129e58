/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Count Sketch (Charikar, Chen, Farach-Colton 2002) of five rows, whose estimate the data plane itself can compare with a limit.
 *
 * A flow of value v adds +v or -v to one cell of each row; the median of the five signed cells estimates it. With B columns
 * a cell's error has the variance F2 / B, F2 the sum of the squares of all flows' values, so it depends on the
 * largest flows: only values of finished events must be added (docs/lean.md).
 *
 * The rows are shared words with atomic additions, because the sum is read back: the median is at least a limit exactly if
 * three of the five rows are. So a packet counts the rows that reach the limit, and no row is sorted. Cells are
 * two's complement modulo 2^32.
 *
 * Every row uses 16 bits of hash: 15 for the index, one for the sign. Two banks: a window's sums. */
#pragma once

#include "register.h"
#include "phv.h"

#define SKETCH_ROWS 5
#define SKETCH_INDEX 0x7fff
#define SKETCH_SIGN 15

/* name: at most 13 characters. s0..s4: the rows' stages. n: columns, a power of two up to 32768. */
#define SKETCH(name, s0, s1, s2, s3, s4, n)                                                           \
	REGISTER_BANKED(name##_0, s0, __u32, n);                                                      \
	REGISTER_BANKED(name##_1, s1, __u32, n);                                                      \
	REGISTER_BANKED(name##_2, s2, __u32, n);                                                      \
	REGISTER_BANKED(name##_3, s3, __u32, n);                                                      \
	REGISTER_BANKED(name##_4, s4, __u32, n)

/* Positions of a flow in a sketch and in a Bloom filter. */
struct sketch_place {
	__u64 rows; /* 16 bits each: rows 0 to 3 */
	__u64 rest; /* 16 bits each: row 4, then bloom.h's two */
};

static __always_inline __u32 sketch_bits(const struct sketch_place *at, int row)
{
	return (__u32)(row < 4 ? at->rows >> (16 * row) : at->rest) & 0xffff;
}

static __always_inline __s32 sketch_signed(__u32 bits, __s32 value)
{
	__s32 flip = -(__s32)(bits >> SKETCH_SIGN);

	return (value ^ flip) - flip;
}

/* Adds a value to one row and returns the row's new estimate of the flow. */
#define SKETCH_ADD(name, row, phv, at, value)                                                         \
	({                                                                                            \
		__u32 bits_ = sketch_bits(at, row);                                                   \
		__s32 add_ = sketch_signed(bits_, value), now_ = 0;                                   \
		__u32 *cell_ = reg_bank(name##_##row, phv, bits_ & SKETCH_INDEX & (name##_##row##_entries - 1)); \
		if (cell_)                                                                            \
			now_ = (__s32)reg_add(cell_, (__u32)add_) + add_;                             \
		sketch_signed(bits_, now_);                                                           \
	})
