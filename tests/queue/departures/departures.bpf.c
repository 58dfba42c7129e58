//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* An algorithm that reports for every packet when it entered its queue and when it left. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "trace.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct departure {
	__u64 enqueued, now;
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

ALGORITHM(departures)
{
	struct departures_counts_t *counts = counters_of(departures_counts, phv);

	if (counts)
		counts->c[DEPARTURES_HANDED] += phv->segs;
}

START_OF_TRANSMISSION(departures)
{
	struct departures_counts_t *counts = counters_of(departures_counts, phv);
	struct departure d = {
		.enqueued = phv->enqueued, .now = phv->now, .flow = phv->flow, .len = phv->len, .ifindex = phv->ifindex,
		.segs = phv->segs, .queue = phv->queue, .sport = phv->sport, .dport = phv->dport, .mark = phv->mark,
	};

	if (!counts)
		return;
	counts->c[DEPARTURES_SENT]++;
	counts->c[DEPARTURES_SEGMENTS] += phv->segs;
	if (departures_told && bpf_ringbuf_output(&departures_ring, &d, sizeof(d), 0))
		counts->c[DEPARTURES_LOST]++;
}
