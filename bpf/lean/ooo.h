/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Out of order. */
#pragma once

#include "frame.h"

struct ooo {
	struct lean_event event;
};

static __always_inline void ooo_1(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}
static __always_inline void ooo_2(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}
static __always_inline void ooo_3(struct ooo *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count) {}
