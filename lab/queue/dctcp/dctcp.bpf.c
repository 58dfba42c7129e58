//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DCTCP (RFC 8257) as a congestion control of BPF, for tests on kernels that were built without one.
 *
 * The sender estimates once a round trip which share of its bytes was marked, and lowers its window by half of that. The receiver tells
 * of marks exactly: it acknowledges at once where the mark changes, and echoes what the segments of an acknowledgement had. Windows
 * grow as with Reno. */
#include "base.h"

char LICENSE[] SEC("license") = "GPL";

#define KERNEL __attribute__((preserve_access_index))

struct sock_common {
	unsigned char skc_state;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
} KERNEL;

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
} KERNEL;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt, snd_una, snd_nxt;
	__u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh;
	__u32 delivered, delivered_ce;
	__u8 ecn_flags;
} KERNEL;

enum tcp_ca_event { EVENT_NONE };

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	__u32 flags;
	char name[16];
};

/* Kernel's numbers: include/net/tcp.h, inet_connection_sock.h */
#define NOT_RESTRICTED 1 /* or else network namespaces may not choose it */
#define NEEDS_ECN 2
#define DEMAND_CWR 4
#define ACK_TIMER 2
#define ACK_NOW 16
#define EVENT_NO_CE 4
#define EVENT_CE 5

#define ALPHA_BITS 10
#define ALPHA_GAIN 4 /* RFC 8257: g = 1/16 */

/* In the room that a socket has for its congestion control. */
struct state {
	__u32 delivered, delivered_ce; /* at the beginning of the round trip */
	__u32 until;                   /* sequence number that ends it */
	__u32 alpha;                   /* share of marked segments, in 2^-ALPHA_BITS */
	__u32 before;                  /* window before it was lowered */
	__u32 ce;                      /* receiver: the last segment was marked */
	__u32 received;                /* receiver: what had been received before it */
};

static __always_inline struct state *state_of(struct tcp_sock *tp)
{
	return (struct state *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline void begin(struct tcp_sock *tp, struct state *s)
{
	s->delivered = tp->delivered;
	s->delivered_ce = tp->delivered_ce;
	s->until = tp->snd_nxt;
}

SEC("struct_ops") void dctcp_init(__u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct state *s = state_of(tp);

	begin(tp, s);
	s->alpha = 1 << ALPHA_BITS;
	s->before = 0;
	s->ce = 0;
	s->received = tp->rcv_nxt;
}

/* Once a round trip: alpha = (1 - g) alpha + g * share that was marked. */
SEC("struct_ops") void dctcp_in_ack_event(__u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct state *s = state_of(tp);
	__u32 delivered, marked, alpha = s->alpha;

	if ((__s32)(tp->snd_una - s->until) < 0)
		return;
	delivered = tp->delivered - s->delivered;
	marked = tp->delivered_ce - s->delivered_ce;
	alpha -= alpha >> ALPHA_GAIN ? alpha >> ALPHA_GAIN : alpha;
	if (marked && delivered)
		alpha += ((__u64)marked << (ALPHA_BITS - ALPHA_GAIN)) / delivered;
	s->alpha = alpha < 1 << ALPHA_BITS ? alpha : 1 << ALPHA_BITS;
	begin(tp, s);
}

SEC("struct_ops") __u32 dctcp_ssthresh(__u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct state *s = state_of(tp);
	__u32 window = tp->snd_cwnd, less = (__u64)window * s->alpha >> (ALPHA_BITS + 1);

	s->before = window;
	return window - less > 2 ? window - less : 2;
}

SEC("struct_ops") __u32 dctcp_undo_cwnd(__u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	__u32 before = state_of(tp)->before, window = tp->snd_cwnd;

	return before > window ? before : window;
}

SEC("struct_ops") void dctcp_cong_avoid(__u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	__u32 acked = ctx[2], window = tp->snd_cwnd, count = tp->snd_cwnd_cnt;

	if (window < tp->snd_ssthresh) {
		__u32 grown = window + acked;

		if (grown > tp->snd_ssthresh)
			grown = tp->snd_ssthresh;
		acked -= grown - window;
		window = grown;
	}
	count += acked;
	if (window && count >= window) {
		count -= window;
		window++;
	}
	tp->snd_cwnd_cnt = count;
	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
}

static __always_inline void echo(struct tcp_sock *tp, __u32 ce)
{
	if (ce)
		tp->ecn_flags |= DEMAND_CWR;
	else
		tp->ecn_flags &= ~DEMAND_CWR;
}

/* The receiver: a segment came with a mark or without. */
SEC("struct_ops") void dctcp_cwnd_event(__u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct state *s = state_of(tp);
	__u32 event = ctx[1], ce = event == EVENT_CE;

	if (event != EVENT_CE && event != EVENT_NO_CE)
		return;
	if (s->ce != ce) { /* what came before is acknowledged with what it had */
		if (tp->inet_conn.icsk_ack.pending & ACK_TIMER) {
			echo(tp, s->ce);
			bpf_tcp_send_ack(tp, s->received);
		}
		tp->inet_conn.icsk_ack.pending |= ACK_NOW;
	}
	s->ce = ce;
	s->received = tp->rcv_nxt;
	echo(tp, ce);
}

SEC(".struct_ops.link") struct tcp_congestion_ops dctcp = {
	.init = (void *)dctcp_init,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.flags = NOT_RESTRICTED | NEEDS_ECN,
	.name = "xdpmon_dctcp",
};
