/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What stands in front of a replayed packet (data_meta): the virtual clock and what the capture knows. */
#pragma once

#include "base.h"

#define REPLAY_SNAP 2024 /* bytes of a frame that are replayed; no header the parser follows lies behind them */

struct replay_meta {
	__u64 time;     /* ns, never 0 */
	__u32 len;      /* bytes on the wire */
	__u32 coin;     /* seed of this packet's coin, never 0 */
	__u16 captured; /* bytes that the capture holds; the buffer is never shorter than 14 */
	__u8 link;      /* 0 Ethernet, 1 IP */
	__u8 egress;
	__u32 ifindex;
	__u64 enqueued; /* ns: when the packet was handed to the queue that it now leaves; 0 where nobody knows */
	__u32 queue;
	__u32 spare;
};
_Static_assert(sizeof(struct replay_meta) == 40, "Go writes it: loader/replay.go");
