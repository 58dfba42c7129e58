//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* waits: which connections wait, and for whom: the receiver, the path or the server.
 *
 * Liu, Zhou, Rottenstreich, Braverman, Rexford, "Memory-Efficient Performance Monitoring on Programmable Switches with Lean Algorithms", section 8
 * names delayed ACKs and low windows as further statistics, section 2 the handshake as the packets that give the delay of the path. Each is made
 * flow-additive (section 3), as a time that was waited:
 *
 * window     from an announcement of a zero or small window to the next announcement of the same receiver, while it stays closed
 * ack        from a segment to the ACK without data that covers it, one segment of a flow at a time, where it takes waits_late or longer
 * handshake  from SYN to SYN-ACK, and from SYN-ACK to the next packet of the client, where it takes waits_slow or longer
 * answer     from the client's last segment of a request to the first one of the server, where it takes waits_slow or longer
 *
 * A packet finishes at most one wait, the first that applies: window, handshake, answer or ack. Finished waits are added up in keyed counters
 * (words.h). Records of what has not finished are one word each and belong to a connection (ends.h, pending.h): its slot is the same in
 * all tables, so that one tally has what was overwritten there.
 *
 * Keep-alives and RST: a segment of at most one byte starts nothing, since it may be a keep-alive or a probe of a closed window; RST and all its
 * fields are ignored. The answer to a probe is an ACK and announces the window once more, so that a window that stays closed is seen.
 *
 * Many cores: records and counters are single words with one atomic operation each. A record that two cores change at the same moment is
 * lost or kept whole; a counter whose swap fails leaves its wait to the tally of waits without a place, which the upper bound includes. */
#include "frame.h"
#include "ends.h"
#include "pending.h"
#include "words.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A packet's connection; false if it is not followed. */
static __always_inline int connection(struct waits *w, const struct phv *phv)
{
	hash_endpoints(phv);
	w->from = phv->sport != phv->dport ? phv->sport > phv->dport : phv->ep_src > phv->ep_dst;
	w->hash = w->from ? hash_reverse(phv, WAITS_SALT) : hash_flow(phv, WAITS_SALT);
	w->slot = (__u32)(w->hash >> 16) & 0xffff & (waits_ends_entries - 1);
	w->acks = (phv->tcp_flags & (TCP_ACK | TCP_SYN)) == TCP_ACK;
	w->bare = w->acks && !phv->payload && !(phv->tcp_flags & TCP_FIN);
	return (__u32)(w->hash & 0xffff) < waits_share;
}

/* Stages 1 to 3: what the packet starts and finishes. */
static __always_inline void look(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	if (phv->tcp_flags & TCP_SYN) {
		handshake(w, phv, count);
		return;
	}
	window(w, phv, count);
	third(w, phv, count);
	acknowledged(w, phv, count);
	asked(w, phv, count);
}

ALGORITHM(waits)
{
	struct waits_counts_t *count;
	struct waits w = {};

	if (!phv_has(phv, PHV_TCP) || (phv->valid & PHV_FRAGMENT) || (phv->tcp_flags & TCP_RST))
		return;
	count = counters_of(waits_counts, phv);
	if (!count)
		return;
	count->c[WAITS_PACKETS]++;
	if (!connection(&w, phv)) {
		count->c[WAITS_SKIPPED]++;
		return;
	}
	ends(&w, phv);
	look(&w, phv, count);
	path(&w, phv);
	tally(&w, phv, count);
	if (w.ticks)
		place(&w, phv, count);
}
