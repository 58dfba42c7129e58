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
/* stages 4 and 5: {signature 16, client's leg 24, server's leg 24}, in 2^14 ns; 0: not seen. Each connection has a place in both: it is forgotten when both are
 * overwritten */
REGISTER(waits_path0, 4, __u64, 1024);
REGISTER(waits_path1, 5, __u64, 1024);

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
	__u32 scale = (__u32)phv->begin & 15;
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
	w->server = (w->entry >> ENDS_SERVER & 3) == 2;
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

enum path_deed { PATH_NONE, PATH_BEGINS, PATH_ENDS, PATH_READ };

/* One place: the legs of a handshake are stored, and those of another packet's connection read for its report. */
static __always_inline void path_at(struct waits *w, __u64 *entry, int deed, __u64 sign, __u64 leg)
{
	__u64 old;

	if (!entry)
		return;
	if (deed == PATH_BEGINS) {
		reg_store(entry, sign | leg);
		w->path = sign | leg;
		return;
	}
	old = reg_load(entry);
	if (deed == PATH_ENDS) {
		if (old >> PATH_SIGN << PATH_SIGN != sign)
			old = sign;
		old = (old & ~(PATH_MASK << PATH_CLIENT)) | leg << PATH_CLIENT;
		reg_store(entry, old);
		w->path = old;
	} else if (old >> PATH_SIGN << PATH_SIGN == sign) {
		w->path = old;
	}
}

/* Stages 4 and 5. */
static __always_inline void path(struct waits *w, const struct phv *phv)
{
	__u32 second = (__u32)(w->hash >> 48) & (waits_path1_entries - 1);
	__u64 sign = (__u64)sign_of(w) << PATH_SIGN, leg = (w->measured >> (PATH_TICK - WAITS_TICK)) + 1;

	if (!w->measured)
		return;
	if (w->leg == LEG_SERVER) {
		leg = w->repeated ? 0 : leg;
		opaque(leg);
		path_at(w, reg_at(waits_path0, w->slot), PATH_BEGINS, sign, leg);
		path_at(w, reg_at(waits_path1, second), PATH_BEGINS, sign, leg);
	} else if (w->leg == LEG_CLIENT) {
		path_at(w, reg_at(waits_path0, w->slot), PATH_ENDS, sign, leg);
		path_at(w, reg_at(waits_path1, second), PATH_ENDS, sign, leg);
	} else if (w->ticks) {
		path_at(w, reg_at(waits_path0, w->slot), PATH_READ, sign, leg);
		path_at(w, reg_at(waits_path1, second), PATH_READ, sign, leg);
	}
}
