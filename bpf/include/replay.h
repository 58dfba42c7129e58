/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Metadata in front of a replayed packet (data_meta): the virtual clock and data of the capture. */
#pragma once

#include "base.h"

#define REPLAY_SNAP 2024 /* bytes of a frame that are replayed; no header the parser follows lies after them */

struct replay_meta {
	__u64 time;     /* ns, never 0 */
	__u32 len;      /* bytes on the wire */
	__u32 coin;     /* seed of this packet's coin, never 0 */
	__u64 enqueued; /* ns: when the packet entered the queue that it now leaves; 0 if not known */
	__u32 ifindex;
	__u16 queue;
	__u16 shape; /* bytes that the capture holds, and flags; the buffer is never shorter than 14 */
};
_Static_assert(sizeof(struct replay_meta) == 32, "all that kernels before 6.6 take; Go writes it: loader/replay/replay.go");

#define REPLAY_CAPTURED 0x3fff
#define REPLAY_IP 0x4000 /* no Ethernet header */
#define REPLAY_EGRESS 0x8000
