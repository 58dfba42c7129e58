/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a handshake shows of a connection: who is the server, how windows are scaled, and how long its two legs took.
 *
 * An entry is {signature 16, unused 2, server 2, SYN 1, SYN-ACK 1, upper's scale 5, lower's scale 5}: a scale is the option's value plus 1, 0 without.
 * The newest connection overwrites. Both options are needed for scales to be in force (RFC 7323, section 2.2); of a SYN-ACK with the option the server's is,
 * since it answers one. Of connections whose handshake was not seen the end with the smaller port is the server, and a window
 * above 0 is judged only if it is large unscaled. */
#pragma once

#include "frame.h"

/* stage 0 */
REGISTER(waits_ends, 0, __u32, 1024);
/* stage 4: {signature 16, client's leg 24, server's leg 24}, in 2^14 ns; 0: not seen */
REGISTER(waits_path, 4, __u64, 1024);

#define ENDS_SIGN 16
#define ENDS_SYN (1U << 10)
#define ENDS_SYNACK (1U << 11)
#define ENDS_SERVER 12 /* two bits: 1 the lower end, 2 the upper one */
#define PATH_SIGN 48
#define PATH_CLIENT 24
#define PATH_MASK 0xffffffULL
#define PATH_TICK 14

static __always_inline __u32 sign_of(const struct waits *w)
{
	__u32 sign = (__u32)(w->hash >> 32) & 0xffff;

	return sign + !sign;
}

/* The entry after a packet with SYN. */
static __always_inline __u32 shown(const struct waits *w, const struct phv *phv)
{
	__u32 scale = phv->begin < 15 ? (__u32)phv->begin : 15;
	__u32 server = phv->tcp_flags & TCP_ACK ? w->from : !w->from;
	__u32 seen = phv->tcp_flags & TCP_ACK ? ENDS_SYNACK : ENDS_SYN;

	return sign_of(w) << ENDS_SIGN | (1U + server) << ENDS_SERVER | seen | scale << (w->from ? 5 : 0);
}

/* Stage 0. */
static __always_inline void ends(struct waits *w, const struct phv *phv)
{
	__u32 *entry, old, now;

	if (phv->tcp_flags & TCP_SYN) {
		__u32 answers = phv->tcp_flags & TCP_ACK ? ~0U : 0;

		now = shown(w, phv);
		opaque(answers);
		entry = reg_at(waits_ends, w->slot);
		if (!entry)
			return;
		old = reg_load(entry);
		if (old >> ENDS_SIGN != now >> ENDS_SIGN)
			old = 0;
		now |= old & answers;
		reg_store(entry, now);
		w->entry = now;
	} else {
		entry = reg_at(waits_ends, w->slot);
		if (!entry)
			return;
		w->entry = reg_load(entry);
		if (w->entry >> ENDS_SIGN != sign_of(w))
			w->entry = 0;
	}
	w->shown = w->entry >> ENDS_SERVER & 3;
	w->server = w->shown == 2;
}

/* By how many bits the sender's window is to be shifted; 15: not known. */
static __always_inline __u32 scale_of(const struct waits *w)
{
	__u32 lower = w->entry & 31, upper = w->entry >> 5 & 31, own = w->from ? upper : lower;

	if (!(w->entry & ENDS_SYNACK))
		return 15;
	if ((w->entry & ENDS_SYN) && !(lower && upper))
		return 0;
	return own ? own - 1 : w->entry & ENDS_SYN || w->server == w->from ? 0 : 15;
}

/* Stage 4: the legs of a handshake are stored, and those of another packet's connection read for its report. */
static __always_inline void path(struct waits *w, const struct phv *phv)
{
	__u64 *entry, old, sign = (__u64)sign_of(w) << PATH_SIGN, leg;

	if (!w->measured)
		return;
	leg = (w->measured >> (PATH_TICK - WAITS_TICK)) + 1;
	if (w->leg == LEG_SERVER && (phv->tcp_flags & TCP_SYN)) {
		w->path = w->repeated ? sign : sign | leg;
		entry = reg_at(waits_path, w->slot);
		if (entry)
			reg_store(entry, w->path);
	} else if (w->leg == LEG_CLIENT) {
		opaque(leg);
		entry = reg_at(waits_path, w->slot);
		if (!entry)
			return;
		old = reg_load(entry);
		if (old >> PATH_SIGN << PATH_SIGN != sign)
			old = sign;
		w->path = (old & ~(PATH_MASK << PATH_CLIENT)) | leg << PATH_CLIENT;
		reg_store(entry, w->path);
	} else if (w->ticks) {
		entry = reg_at(waits_path, w->slot);
		if (!entry)
			return;
		old = reg_load(entry);
		w->path = old >> PATH_SIGN << PATH_SIGN == sign ? old : 0;
	}
}
