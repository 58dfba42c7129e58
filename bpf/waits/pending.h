/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Records of what has not finished, and the packets that start and finish it.
 *
 * handshake, window and answer: {name 24, time 40} (record.h), in ticks of 64 ns. A record keeps its place until it is answered, for 8.6 s at most, of a handshake 1.07 s:
 * whether a wait is timed does not depend on how long it takes, and who waits longest is not overwritten by those that do not.
 * ack: {signature 16, time 16, end 32}: time in 2^20 ns, so that ages up to 68 s are told apart, and the number after the segment's
 * last byte. One segment of a flow at a time: while it waits no other is stored, so that its waits add up to no more than the window. It is given up when
 * its flow sends up to there again, since an ACK would not tell which of both it answers (Karn). Packets with data answer, too, but
 * are no event: they were sent for what they carry. The newest overwrites: a third condition, on age, is more than a register can have. */
#pragma once

#include "frame.h"
#include "ends.h"

/* stage 1: SYN to SYN-ACK; SYN-ACK to the client's next packet; closed windows of either end */
REGISTER(waits_syn, 1, __u64, 1024);
REGISTER(waits_third, 1, __u64, 1024);
REGISTER(waits_closed, 1, __u64, 1024);
/* stage 2: segments from the lower and from the upper end */
REGISTER(waits_lower, 2, __u64, 1024);
REGISTER(waits_upper, 2, __u64, 1024);
/* stage 3: the client's last segment */
REGISTER(waits_ask, 3, __u64, 1024);

/* What distinguishes the records of a connection. */
#define NAME_THIRD 0x100000000ULL
#define NAME_CLOSED 0x200000000ULL
#define NAME_ASK 0x300000000ULL

/* Removes a record; false if it is not there. */
static __always_inline int taken(__u64 *entry, __u32 name, __u64 *old)
{
	*old = reg_load(entry);
	return record_of(*old, name) && reg_cas(entry, *old, 0) == *old;
}

/* Stores a record, over the connection's own. */
static __always_inline __u64 start(struct waits *w, __u64 *entry, __u64 word, __u64 now, __u32 life)
{
	__u64 old = reg_load(entry);

	if (!record_of(old, (__u32)(word >> RECORD_TIME_BITS)) && keeps(old, now, life)) {
		w->missed++;
		return 0;
	}
	reg_store(entry, word);
	return old;
}

/* A leg of a handshake, or an answer. */
static __always_inline void leg(struct waits *w, __u64 age, __u8 leg, __u8 kind, __u8 end, struct waits_counts_t *count)
{
	w->leg = leg;
	finish_wait(w, age, waits_slow, kind, end, count);
}

#define SENT_AGAIN 1ULL /* lowest bit of a SYN's time */

/* SYN and SYN-ACK. A SYN that is sent again keeps its time, since the user waits since then, and marks it: it is no leg of the path. */
static __always_inline void handshake(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u64 now = ticks_now(phv), *entry, old, word;
	__u32 name;

	if (!(phv->tcp_flags & TCP_ACK)) {
		count->c[WAITS_SYNS]++;
		name = name_of(w, phv->seq + 1);
		word = record_word(name, now) & ~SENT_AGAIN;
		entry = reg_at(waits_syn, w->slot);
		if (!entry)
			return;
		old = reg_load(entry);
		if (record_of(old, name)) {
			reg_store(entry, old | SENT_AGAIN);
			return;
		}
		if (keeps(old, now, WAITS_SYN))
			w->missed++;
		else
			reg_store(entry, word);
		return;
	}
	name = name_of(w, phv->ack);
	word = record_word(name_of(w, NAME_THIRD | phv->ack), now);
	entry = reg_at(waits_syn, w->slot);
	if (entry && taken(entry, name, &old)) {
		count->c[WAITS_HANDSHAKES]++;
		w->repeated = old & SENT_AGAIN;
		leg(w, age_of(now, old), LEG_SERVER, WAIT_HANDSHAKE, w->from, count);
	}
	entry = reg_at(waits_third, w->slot);
	if (!entry)
		return;
	start(w, entry, word, now, WAITS_SYN);
}

/* What a packet announces. */
enum announcement { SAYS_NOTHING, SAYS_OPEN, SAYS_CLOSED };

static __always_inline __u32 announced(const struct waits *w, const struct phv *phv, struct waits_counts_t *count)
{
	__u32 scale;

	if (!phv->window) {
		if (!w->bare)
			return SAYS_NOTHING;
		count->c[WAITS_ZERO]++;
		return SAYS_CLOSED;
	}
	if (phv->window >= waits_small)
		return SAYS_OPEN;
	scale = scale_of(w);
	if (scale == 15) {
		count->c[WAITS_UNSCALED] += w->bare;
		return SAYS_OPEN;
	}
	if ((__u32)phv->window << scale >= waits_small)
		return SAYS_OPEN;
	if (!w->bare)
		return SAYS_NOTHING;
	count->c[WAITS_SMALL]++;
	return SAYS_CLOSED;
}

/* Stage 1: a window that closes, stays closed, or opens. */
static __always_inline void window(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u64 now, *entry, old, word, age;
	__u32 name, says;

	if (!w->acks)
		return;
	says = announced(w, phv, count);
	if (says == SAYS_NOTHING)
		return;
	now = ticks_now(phv);
	name = name_of(w, NAME_CLOSED | w->from);
	if (says == SAYS_OPEN) {
		entry = reg_at(waits_closed, w->slot);
		if (!entry || !taken(entry, name, &old))
			return;
	} else {
		word = record_word(name, now);
		entry = reg_at(waits_closed, w->slot);
		if (!entry)
			return;
		old = start(w, entry, word, now, WAITS_LIVE);
		if (!record_of(old, name))
			return;
	}
	age = age_of(now, old);
	finish_wait(w, age, 0, WAIT_WINDOW, w->from, count);
	w->leg = LEGS;
}

/* Stage 1: the client's first packet after the SYN-ACK has the number that the SYN-ACK acknowledged. */
static __always_inline void third(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u64 *entry, old, now;
	__u32 name;

	if (!w->acks)
		return;
	name = name_of(w, NAME_THIRD | phv->seq);
	entry = reg_at(waits_third, w->slot);
	if (!entry || !taken(entry, name, &old) || w->measured)
		return;
	now = ticks_now(phv);
	leg(w, age_of(now, old), LEG_CLIENT, WAIT_HANDSHAKE, w->from, count);
}

#define SEGMENT_TICK 20
#define SEGMENT_FAR (1U << 24) /* bytes that one ACK covers at most */

static __always_inline __u32 segment_ticks(struct phv *phv)
{
	return (__u32)(clock_now(phv) >> SEGMENT_TICK) & 0xffff;
}

/* A segment of more than a byte. */
static __always_inline void segment(struct waits *w, __u64 *entry, __u64 word, __u32 time, struct waits_counts_t *count)
{
	__u64 old, age;

	if (!entry)
		return;
	old = reg_load(entry);
	if (old >> 48 == word >> 48) {
		if ((__s32)((__u32)word - (__u32)old) > 0)
			return;
		reg_store(entry, 0);
		count->c[WAITS_REPEATED]++;
		return;
	}
	reg_store(entry, word);
	count->c[WAITS_STARTED]++;
	age = (time - (__u32)(old >> 32)) & 0xffff;
	w->torn += old && age < WAITS_LIVE >> (SEGMENT_TICK - WAITS_TICK);
}

/* A packet that acknowledges. */
static __always_inline int covered(__u64 *entry, __u32 sign, __u32 ack, __u64 *old)
{
	if (!entry)
		return 0;
	*old = reg_load(entry);
	return *old >> 48 == sign && ack - (__u32)*old < SEGMENT_FAR && reg_cas(entry, *old, 0) == *old;
}

/* Stage 2. Which array is which is decided by the sender, and a packet touches each once at most. */
static __always_inline void acknowledged(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u32 time = segment_ticks(phv), sign = sign_of(w), got;
	__u64 word = (__u64)sign << 48 | (__u64)time << 32 | (__u32)(phv->seq + phv->payload), old = 0, age;

	if (!w->from) {
		if (phv->payload > 1)
			segment(w, reg_at(waits_lower, w->slot), word, time, count);
		got = w->acks && covered(reg_at(waits_upper, w->slot), sign, phv->ack, &old);
	} else {
		if (phv->payload > 1)
			segment(w, reg_at(waits_upper, w->slot), word, time, count);
		got = w->acks && covered(reg_at(waits_lower, w->slot), sign, phv->ack, &old);
	}
	if (!got || !w->bare || w->ticks || w->measured)
		return;
	age = (time - (__u32)(old >> 32)) & 0xffff;
	w->leg = LEG_ACK;
	finish_wait(w, age << (SEGMENT_TICK - WAITS_TICK), waits_late, WAIT_ACK, w->from, count);
}

/* Stage 3: the client's segments start, and the server's first one finishes. */
static __always_inline void asked(struct waits *w, struct phv *phv, struct waits_counts_t *count)
{
	__u64 now, *entry, old, word;
	__u32 name;

	if (phv->payload <= 1)
		return;
	now = ticks_now(phv);
	name = name_of(w, NAME_ASK);
	if (w->from != w->server) {
		count->c[WAITS_ASKED]++;
		word = record_word(name, now);
		entry = reg_at(waits_ask, w->slot);
		if (!entry)
			return;
		start(w, entry, word, now, WAITS_LIVE);
		return;
	}
	entry = reg_at(waits_ask, w->slot);
	if (!entry || !taken(entry, name, &old) || w->ticks || w->measured)
		return;
	leg(w, age_of(now, old), LEG_ANSWER, WAIT_ANSWER, w->from, count);
}
