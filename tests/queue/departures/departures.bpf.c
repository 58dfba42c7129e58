//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An algorithm that reports for every packet when it entered its queue and when it left, and what an enforcer before it in the chain drops. */
#include "base.h"
#include "phv.h"
#include "clock.h"
#include "register.h"
#include "trace.h"
#include "verdict.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct departure {
	__u64 enqueued, now; /* now is 0 of a packet that is dropped, which is handed to no queue */
	__u32 flow, len, ifindex;
	__u16 segs, queue, sport, dport;
	__u32 mark;
};

const struct departure *unused_departure __attribute__((unused));

enum departures_count { DEPARTURES_HANDED, DEPARTURES_SENT, DEPARTURES_SEGMENTS, DEPARTURES_LOST, DEPARTURES_COUNTS };

const enum departures_count *unused_count __attribute__((unused));

COUNTERS(departures_counts, DEPARTURES_COUNTS);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} departures_ring SEC(".maps");

const volatile _Bool departures_told = 1;

/* Reports a packet, and counts those for which the ring had no room. */
static __always_inline void departures_report(const struct phv *phv, struct departures_counts_t *counts, __u64 enqueued, __u64 now)
{
	struct departure d = {
		.enqueued = enqueued, .now = now, .flow = phv->flow, .len = phv->len, .ifindex = phv->ifindex,
		.segs = phv->segs, .queue = phv->queue, .sport = phv->sport, .dport = phv->dport, .mark = phv->mark,
	};

	if (departures_told && bpf_ringbuf_output(&departures_ring, &d, sizeof(d), 0))
		counts->c[DEPARTURES_LOST]++;
}

ALGORITHM(departures)
{
	struct departures_counts_t *counts = counters_of(departures_counts, phv);

	if (!counts)
		return;
	counts->c[DEPARTURES_HANDED] += phv->segs;
	if (condemned(phv))
		departures_report(phv, counts, clock_now(phv), 0);
}

START_OF_TRANSMISSION(departures)
{
	struct departures_counts_t *counts = counters_of(departures_counts, phv);

	if (!counts)
		return;
	counts->c[DEPARTURES_SENT]++;
	counts->c[DEPARTURES_SEGMENTS] += phv->segs;
	departures_report(phv, counts, phv->enqueued, phv->now);
}
