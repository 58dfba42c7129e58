//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The last slot of a chain that enforces: executes the decision of its algorithms (verdict.h), and counts what was done.
 *
 * A mark sets both ECN bits of the outermost IP header (RFC 3168) of a packet whose sender declared support. Only the
 * IPv4 header checksum covers them: it is updated from the change alone (RFC 1624), and a transport checksum that a device still has to
 * complete is left alone, since no pseudo header contains the bits. An aggregate is marked once, and all its
 * segments have the mark. A packet that cannot be marked (its sender does not support ECN, its header is out of reach) passes
 * and is counted: whether to drop it instead is the enforcer's choice, not this program's. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "parse.h"
#include "chain.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum verdict_count {
	VERDICT_COUNT_DROPPED,
	VERDICT_COUNT_DROPPED_BYTES,
	VERDICT_COUNT_MARKED,       /* ECN bits were set */
	VERDICT_COUNT_MARKED_BEFORE, /* ... were set on arrival */
	VERDICT_COUNT_UNMARKABLE,   /* a mark was wanted and could not be made */
	VERDICT_COUNT_STEERED,      /* got another mark, priority or time of departure of the host's own: TC */
	VERDICT_COUNTS
};

COUNTERS(verdict_counts, VERDICT_COUNTS);

const enum verdict_count *unused_count __attribute__((unused));

enum marking { MARKED, MARKED_BEFORE, UNMARKABLE };

static __always_inline void count(struct phv *phv, enum marking marking)
{
	struct verdict_counts_t *counts = counters_of(verdict_counts, phv);

	if (!counts)
		return;
	if (phv->verdict == VERDICT_DROP) {
		counts->c[VERDICT_COUNT_DROPPED]++;
		counts->c[VERDICT_COUNT_DROPPED_BYTES] += phv->len;
	} else if (marking == MARKED) {
		counts->c[VERDICT_COUNT_MARKED]++;
	} else if (marking == MARKED_BEFORE) {
		counts->c[VERDICT_COUNT_MARKED_BEFORE]++;
	} else {
		counts->c[VERDICT_COUNT_UNMARKABLE]++;
	}
}

/* Is there anything to write? Leaves MARKED for that. */
static __always_inline enum marking markable(const struct phv *phv)
{
	if (!ecn_capable(phv))
		return UNMARKABLE;
	return (phv->tos & ECN_CE) == ECN_CE ? MARKED_BEFORE : MARKED;
}

/* The header checksum after a change of the 16-bit word that holds the bits (RFC 1624, equation 3). */
static __always_inline __u16 check_after(__u16 check, __u16 old, __u16 now)
{
	__u32 sum = (__u16)~check + (__u16)~old + (__u32)now;

	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum;
}

static __always_inline enum marking mark_xdp(struct xdp_md *ctx, const struct phv *phv)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	enum marking marking = markable(phv);
	__u16 *word = data + (phv->l3 & 0x7ff), old;

	if (marking != MARKED)
		return marking;
	if ((void *)(word + 6) > end)
		return UNMARKABLE;
	old = word[0];
	if (old & bpf_htons(0x2000)) { /* version 6: class and flow label */
		word[0] = old | bpf_htons(ECN_CE << 4);
		return MARKED;
	}
	word[0] = old | bpf_htons(ECN_CE);
	word[5] = check_after(word[5], old, word[0]);
	return MARKED;
}

SEC("xdp.frags") int verdict_xdp(struct xdp_md *ctx)
{
	struct phv *phv = phv_get();
	enum marking marking = UNMARKABLE;

	if (!phv)
		return XDP_PASS;
	if (phv->verdict == VERDICT_PASS)
		return XDP_PASS;
	if (phv->verdict == VERDICT_MARK)
		marking = mark_xdp(ctx, phv);
	count(phv, marking);
	return xdp_verdict(phv);
}

/* The helpers reach headers after the linear part, unshare a clone, and keep a checksum that the device computed over the
 * whole packet. */
static __always_inline enum marking mark_tc(struct __sk_buff *skb, const struct phv *phv)
{
	enum marking marking = markable(phv);
	__u32 at = phv->l3 & 0x7ff;
	__u16 old, now;

	if (marking != MARKED)
		return marking;
	if (bpf_skb_load_bytes(skb, at, &old, sizeof(old)))
		return UNMARKABLE;
	if (old & bpf_htons(0x2000)) {
		now = old | bpf_htons(ECN_CE << 4);
		return bpf_skb_store_bytes(skb, at, &now, sizeof(now), BPF_F_RECOMPUTE_CSUM) ? UNMARKABLE : MARKED;
	}
	now = old | bpf_htons(ECN_CE);
	/* header and checksum change by the same amount, so the sum over the whole packet stays */
	if (bpf_l3_csum_replace(skb, at + 10, old, now, sizeof(now)))
		return UNMARKABLE;
	return bpf_skb_store_bytes(skb, at, &now, sizeof(now), 0) ? UNMARKABLE : MARKED;
}

/* The later of two departure times: the packet's own, set by TCP or another pacer, and that of the chain. Only a packet that leaves has one; on arrival
 * the word is its receive timestamp. 0: unchanged. */
static __always_inline __u64 departure(const struct __sk_buff *skb, const struct phv *phv)
{
	__u64 due = phv->now + phv->steer;

	return phv_has(phv, PHV_EGRESS) && due > skb->tstamp ? due : 0;
}

/* The mark is for filters and routing, the priority for the queue: class MAJOR:MINOR of one that has classes. */
static __always_inline void steer(struct __sk_buff *skb, struct phv *phv)
{
	struct verdict_counts_t *counts = counters_of(verdict_counts, phv);
	__u64 due;

	if (phv->steering == STEER_DEPART) {
		due = departure(skb, phv);
		if (!due)
			return;
		skb->tstamp = due;
	} else if (phv->steering == STEER_MARK) {
		skb->mark = phv->steer;
		asm volatile("" ::: "memory"); /* two stores of a context are not made one through a pointer that depends */
	} else {
		skb->priority = phv->steer;
	}
	if (counts)
		counts->c[VERDICT_COUNT_STEERED]++;
}

SEC("tc") int verdict_tc(struct __sk_buff *skb)
{
	struct phv *phv = phv_get();
	enum marking marking = UNMARKABLE;

	if (!phv)
		return TC_NEXT;
	if (unlikely(phv->steering) && !condemned(phv))
		steer(skb, phv);
	if (phv->verdict == VERDICT_PASS)
		return TC_NEXT;
	if (phv->verdict == VERDICT_MARK)
		marking = mark_tc(skb, phv);
	count(phv, marking);
	return tc_verdict(phv);
}
