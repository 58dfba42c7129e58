/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rare reports to userspace, as a switch sends digests: one ring for all cores, read by polling (maps/ring.go), so that a
 * report causes no wakeup. A full ring refuses reports; the program counts them. */
#pragma once

#include "base.h"

/* bytes: a power of two, at least a page; the loader may choose another size. */
#define RING(name, bytes)                                                                             \
	struct {                                                                                      \
		__uint(type, BPF_MAP_TYPE_RINGBUF);                                                   \
		__uint(max_entries, bytes);                                                           \
	} name SEC(".maps")

/* Sends a record; false if the ring is full. */
#define ring_send(name, record) (bpf_ringbuf_output(&name, record, sizeof(*(record)), BPF_RB_NO_WAKEUP) == 0)
