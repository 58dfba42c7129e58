//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* precision: the heaviest flows, by partial recirculation.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 3 (PRECISION).
 *
 * d ways, each a key (one to five words, one register array per word) and a counter, at independent indices. A packet
 * whose key is in one of the ways adds to its counter. One whose key is in none has read the smallest of d counters
 * after the last stage, too late to write: with probability 1/(min + 1) it passes the pipeline
 * once more and takes that entry, with the value min + 1. In expectation every unmatched packet adds one to its flow's
 * count (section 3.3.2).
 *
 * Admission: exact needs a division and is the reference; pow2 tests the bits of the counter's octave; 9/8 multiplies
 * a power of two by a constant from eight (section 3.3.4); deterministic admits every min-th unmatched packet of a
 * row (section 3.3.7), with one index for all ways. bpf/include/ways.h has the arrays, and explains why they are per CPU and
 * how estimates of several cores are added.
 *
 * After the program, phv->carry[1] is the flow's estimate on arrival (figures 3.3 to 3.7): its counter, 0 without one. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "recirc.h"

#define WAYS_NAME(x) precision_##x
#include "ways.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum precision_counter {
	PRECISION_PACKETS,   /* with a key */
	PRECISION_UNITS,     /* what was to be counted: packets or bytes */
	PRECISION_NO_KEY,    /* packets without such a key: family or ports */
	PRECISION_MATCHED,   /* packets whose key was there */
	PRECISION_ADMITTED,  /* packets that asked for a second pass */
	PRECISION_WRITTEN,   /* second passes that took an entry */
	PRECISION_COUNTS = 8
};

const volatile _Bool precision_bytes = 0;

COUNTERS(precision_counts, PRECISION_COUNTS);

const enum precision_counter *unused_counter __attribute__((unused));

ALGORITHM_RECIRC(precision)
{
	struct precision_counts_t *count = counters_of(precision_counts, phv);
	struct pass p;
	__u64 value, matched;

	if (!count)
		return 0;
	if (!key_of(phv, &p.key)) {
		count->c[PRECISION_NO_KEY] += !second_pass(phv);
		return 0;
	}
	ways_rows(phv, &p);
	if (second_pass(phv)) {
		count->c[PRECISION_WRITTEN]++;
		ways_take(phv, &p, phv->carry[0], phv->carry[1]);
		return 0;
	}
	p.units = precision_bytes ? phv->len : phv->segs;
	count->c[PRECISION_PACKETS] += phv->segs;
	count->c[PRECISION_UNITS] += p.units;
	matched = ways_look(phv, &p);
	count->c[PRECISION_MATCHED] += phv->segs & matched;
	if (ways_settled(matched) || !ways_admit(phv, &p, &value) || matched)
		return 0;
	count->c[PRECISION_ADMITTED]++;
	phv->carry[0] = p.way;
	phv->carry[1] = value;
	return 1;
}
