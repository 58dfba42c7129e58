/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Retransmissions. */
#pragma once

#include "frame.h"

struct retrans {
	struct lean_event event;
};

static __always_inline void retrans_1(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}
static __always_inline void retrans_2(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}
static __always_inline void retrans_3(struct retrans *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}
