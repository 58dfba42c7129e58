//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Looks up the addresses in the packet, in two tries of one version, and writes the results after them. */
#include "base.h"
#include "prefix.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

PREFIX_TABLE(probe_prefixes, 1 << 16);

struct question {
	__u32 root, other;
	__u64 high, low;
	__u32 found, beside;
	__u64 runs, torn; /* how often it ran, and found two values that are not of one version */
};

const struct question *unused_question __attribute__((unused));

SEC("xdp") int probe(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct question *q = data;
	__u64 head;

	if ((void *)(q + 1) > end)
		return XDP_ABORTED;
	head = prefix_head(&probe_prefixes);
	q->found = prefix_find(&probe_prefixes, head, q->root, q->high, q->low);
	q->beside = prefix_find(&probe_prefixes, head, q->other, q->high, q->low);
	q->runs++;
	if (q->found != q->beside)
		q->torn++;
	return XDP_PASS;
}
