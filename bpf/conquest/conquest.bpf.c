//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* conquest: who fills the queue, now.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 5 (ConQuest).
 *
 * Every departure is counted in the snapshot of its window. One that waited tau or longer asks how much of what departed while
 * it waited was of its own flow: sums over the snapshots of that time, by the smaller of two rows. A flow that has
 * more than alpha of it is a culprit.
 *
 * What differs from the paper (userspace/conquest has its readings, too, to compare with):
 * - A flow is read in the window that is being written as well: the write's own read-modify-write returns what was there.
 * - The oldest window counts by its overlap with [a, d), and the flow is compared with alpha of all flows' counts in the same windows
 *   with the same weights, not with a queue length that somebody has to know. Rounding then hits both sides alike.
 * - Cells have the number of their window beside them, so nothing is cleaned (snapshots.h).
 *
 * - What waited longer than the snapshots reach back asks coarse ones beside them, to a second (coarse.h).
 *
 * Stages: 1 the way through the queue (source.h), 2 the longest delay of late, 3 to 5 totals and rows of four snapshots (again for each
 * further four), 6 to 8 coarse snapshots, 9 the largest packet of late, 10 what was reported, bursts, 11 their peak, culprits (act.h), 12 drops. Without coarse
 * snapshots three less. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "trace.h"
#include "body.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile _Bool conquest_live = 0; /* source carried: departures are seen at the start of transmission */

ENFORCER(conquest)
{
	if (conquest_live)
		conquest_enter(phv);
	else
		conquest_body(phv);
}

START_OF_TRANSMISSION(conquest)
{
	if (conquest_live)
		conquest_body(phv);
}
