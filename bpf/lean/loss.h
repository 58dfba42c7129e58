/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Loss: the gaps of a flow (section 4.2).
 *
 * gaps  A table of flows' last numbers. A gap before a packet is a loss; a packet that arrives late subtracts it
 *       again. A flow without losses leaves nothing in the sketch.
 * walk  Algorithm 2: of each pair of identifiers the odd one adds a random sign and the even one subtracts it. Every
 *       flow whose packet has no partner leaves a residue of one in each row (docs/lean.md has the variance).
 *
 * The number is TCP's own, in bytes: a hole in the sequence is reliable, whatever else the host sends. Or the IPv4 identification,
 * if the stack advances it by one per packet of the flow: a host that numbers all its packets with one counter seems to lose
 * those that it sends to others. Or RTP's sequence number.
 *
 * A packet that fills a hole of TCP is the missing one, late, or a retransmission, which shows that it was lost.
 * The IPv4 identification decides: packets sent before the one that made the hole have a smaller one, with a counter per
 * connection, per destination, or per host. Without one (IPv6; 0), time decides: what arrives within 3 ms of the
 * youngest hole is late (section 4.3's window). With random identifiers 15 of 16 are taken for retransmissions, late or not.
 *
 * By rate (rate.h) false holes would be rates of flows that lose nothing. The packet that takes an entry may be a repetition, in front of which
 * the flow seems to have leapt: so the next one starts the entry again, and only those after it are compared.
 *
 * An entry is {signature, credit} and {good, identifier}, or TCP's {next number} and {identification of the packet with the highest
 * number, or time of the youngest hole}. Credit increases with each packet of the owner and decreases with each of
 * another flow; at 0 the entry changes its owner: of the flows that share it, the one with most packets keeps it. Good counts
 * consecutive small steps: flows whose identifiers are random or do not advance are never counted. */
#pragma once

#include "frame.h"

enum loss_id_kind { LOSS_IPID, LOSS_RTP, LOSS_BYTES };

#define LOSS_CREDIT 3   /* bits */
#define LOSS_SMALL 64   /* largest step that is no jump, and how late a packet may be */
#define LOSS_SMALL_BYTES 65536
#define LOSS_PROVEN 2   /* small steps in a row before gaps count */
#define LOSS_GOOD 16    /* lowest bit of good in its word */
#define LOSS_NEAR 4096  /* identifications that a host uses up while a packet is late: 10 ms of 400,000 packets a second */
#define LOSS_TICK 16    /* a hole's time counts 2^16 ns */
#define LOSS_LATE 46    /* ticks: 3.01 ms */
#define LOSS_EARLY 16   /* ticks by which another core's hole may be younger than the packet */
#define LOSS_FAR (1U << 26) /* bytes below the next number from which on it is of another connection */

const volatile __u32 lean_loss_id = LOSS_BYTES;
const volatile _Bool lean_loss_walk = 0;

/* stage 1: {signature 13, credit 3}; stage 2: {good 16, identifier 16}, or with TCP's bytes the next sequence number; stage 3:
 * which packet made it */
REGISTER(lean_loss_own, 1, __u16, 4096);
REGISTER(lean_loss_owner, 1, __u32, 1); /* in its place with CRC hashes, of identifications: loss_own_wide() */
REGISTER(lean_loss_last, 2, __u32, 4096);
REGISTER(lean_loss_order, 3, __u16, 4096);

const enum loss_id_kind *unused_loss_id __attribute__((unused));

/* A segment's position relative to its flow's next number. */
enum loss_move {
	LOSS_STAYS,   /* it ends there: a copy, a keep-alive */
	LOSS_GOES_ON, /* it ends after it */
	LOSS_HOLE,    /* ... and starts after it, too */
	LOSS_BELOW    /* it ends in front of it: late, or sent again */
};

struct loss {
	struct lean_event event;
	__u8 move;   /* enum loss_move */
	__u8 mine;   /* the entry is this flow's */
	__u8 taken;  /* ... since this packet */
	__u32 slot;
	__u32 id;
	__u16 last;  /* identifier of an aggregate's last segment: stacks number them on */
};

/* Has the packet an identifier? */
static __always_inline int loss_identifier(struct loss *s, const struct phv *phv)
{
	if (lean_loss_id == LOSS_BYTES) {
		s->id = phv->seq;
		return phv_has(phv, PHV_TCP) && !(phv->valid & PHV_FRAGMENT) &&
		       (phv->payload || phv->tcp_flags & (TCP_SYN | TCP_FIN));
	}
	if (lean_loss_id == LOSS_RTP) {
		s->id = phv->seq;
		s->last = s->id;
		return phv_has(phv, PHV_RTP) && !(phv->valid & PHV_FRAGMENT);
	}
	s->id = phv->ipid;
	s->last = s->id + phv->segs - 1;
	return phv_has(phv, PHV_IPID) && !(phv->valid & PHV_FRAGMENT);
}

/* Algorithm 2: a pair's sign depends on flow and pair. With bytes the pair is a segment's two ends. */
static __always_inline __s32 loss_sign(const struct lean_flow *f, __u32 pair)
{
	return (hash_mix(f->hash ^ pair * 0x9e3779b97f4a7c15ULL) >> 63) ? 1 : -1;
}

static __always_inline void loss_walk(struct loss *s, const struct phv *phv, const struct lean_flow *f)
{
	if (lean_loss_id == LOSS_BYTES)
		s->event.value = loss_sign(f, s->id) - loss_sign(f, s->id + phv->payload);
	else
		s->event.value = s->id & 1 ? loss_sign(f, (s->id + 1) >> 1) : -loss_sign(f, s->id >> 1);
}

/* By rate: does a flow that has credit with this packet start its entry again? No branch, which would be a third condition on the word. */
static __always_inline int loss_starts(__u32 credit)
{
	__u32 starts = (credit - 3) >> 31;

	opaque(starts);
	return starts;
}

/* Is the entry this flow's? */
static __always_inline void loss_own(struct loss *s, __u16 *entry, __u32 mine, struct lean_counts_t *count)
{
	__u32 old = reg_load(entry), credit = (old & ((1 << LOSS_CREDIT) - 1)) + 1;

	if (old >> LOSS_CREDIT == mine) {
		s->mine = 1;
		if (lean_rate_on)
			s->taken = loss_starts(credit);
		count->c[LEAN_OWNED]++;
		reg_store(entry, old + 1 - (credit >> LOSS_CREDIT));
	} else if (credit == 1) {
		s->mine = s->taken = 1;
		count->c[LEAN_OWNED]++;
		count->c[LEAN_TAKEN]++;
		reg_store(entry, mine << LOSS_CREDIT | 1);
	} else {
		count->c[LEAN_REFUSED]++;
		reg_store(entry, old - 1);
	}
}

/* With --hash crc an entry's words are the switch's, whose ALU compares whole words: {signature 16, credit 16}, {good 16,
 * identifier 16}, where credit counts in steps of 2^13 and good in steps of 2^14, and both saturate. A new owner starts
 * without credit, an identifier that arrives late is a jump, and 0 means that nothing is known. */
#define LOSS_WIDE (hash_crc && lean_loss_id == LOSS_IPID && !lean_loss_walk)
#define LOSS_WIDE_CREDIT 0x2000
#define LOSS_WIDE_GOOD 0x4000

/* A sum of 16 bits that saturates. */
static __always_inline __u32 loss_up(__u32 x, __u32 step)
{
	x += step;
	return (x | -(x >> 16)) & 0xffff;
}

static __always_inline void loss_own_wide(struct loss *s, __u32 *entry, __u32 mine)
{
	__u32 old = reg_load(entry), credit = old & 0xffff;

	if (old >> 16 == mine) {
		s->mine = 1;
		reg_store(entry, mine << 16 | loss_up(credit, LOSS_WIDE_CREDIT));
	} else if (credit < LOSS_WIDE_CREDIT) {
		s->mine = s->taken = 1;
		reg_store(entry, mine << 16);
	} else {
		reg_store(entry, old - LOSS_WIDE_CREDIT);
	}
}

static __always_inline void loss_1_wide(struct loss *s, const struct phv *phv)
{
	struct hash_input in;
	__u32 *entry;

	hash_fields(&in, phv, 0, 0);
	s->slot = hash_crc32(&in, 0) & (lean_loss_owner_entries - 1);
	entry = reg_at(lean_loss_owner, s->slot);
	if (entry)
		loss_own_wide(s, entry, hash_crc32(&in, 3) & 0xffff);
}

static __always_inline void loss_1(struct loss *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	__u32 signature;
	__u16 *entry;

	s->mine = s->taken = 0;
	if (!loss_identifier(s, phv))
		return;
	count->c[LEAN_NUMBERED]++;
	if (lean_loss_walk) {
		loss_walk(s, phv, f);
		return;
	}
	if (LOSS_WIDE) {
		loss_1_wide(s, phv);
		return;
	}
	s->slot = (__u32)(f->hash >> 32) & (lean_loss_own_entries - 1);
	signature = f->hash & ((1 << (16 - LOSS_CREDIT)) - 1);
	entry = reg_at(lean_loss_own, s->slot);
	if (!entry)
		return;
	loss_own(s, entry, signature + !signature, count);
}

/* Evaluates a step. Returns the event's value. */
static __always_inline __s32 loss_step(__u16 step, __u32 good, struct lean_counts_t *count)
{
	if (step > LOSS_SMALL && step < 65536 - LOSS_SMALL) {
		count->c[LEAN_JUMPS]++;
		return 0;
	}
	if (good < LOSS_PROVEN || step <= 1)
		return 0;
	if (step <= LOSS_SMALL) {
		count->c[LEAN_GAPS]++;
		count->c[LEAN_GAP_SUM] += step - 1;
		return step - 1;
	}
	count->c[LEAN_GIVEN_BACK]++;
	return -1;
}

static __always_inline void loss_number_wide(struct loss *s, __u32 *last, struct lean_counts_t *count)
{
	__u32 old, good, next;
	__u16 step;

	if (s->taken) {
		reg_store(last, s->last);
		return;
	}
	old = reg_load(last);
	step = s->id - old;
	good = old >> LOSS_GOOD;
	next = loss_up(good, LOSS_WIDE_GOOD);
	if (step > LOSS_SMALL)
		next = 0;
	reg_store(last, next << LOSS_GOOD | s->last);
	if (good < LOSS_PROVEN * LOSS_WIDE_GOOD || !(__u16)old || step < 2 || step > LOSS_SMALL)
		return;
	count->c[LEAN_GAPS]++;
	count->c[LEAN_GAP_SUM] += step - 1;
	s->event.value = step - 1;
}

static __always_inline void loss_number(struct loss *s, __u32 *last, struct lean_counts_t *count)
{
	__u32 old, good;
	__u16 step;

	if (s->taken) {
		reg_store(last, s->last);
		return;
	}
	old = reg_load(last);
	step = s->id - old;
	good = (old >> LOSS_GOOD) + 1;
	if (step < 65536 - LOSS_SMALL) { /* not late */
		if (step <= LOSS_SMALL)
			reg_store(last, (good - (good >> 2)) << LOSS_GOOD | s->last);
		else
			reg_store(last, s->last);
	}
	s->event.value = loss_step(step, old >> LOSS_GOOD, count);
}

/* TCP's bytes: what is missing between the expected next number and this one. A SYN restarts it, and so does a number
 * that is far below. */
static __always_inline void loss_bytes(struct loss *s, const struct phv *phv, __u32 *next, struct lean_counts_t *count)
{
	__u32 end = s->id + phv->payload + (phv->tcp_flags >> 1 & 1) + (phv->tcp_flags & TCP_FIN), old, behind;
	__s32 ahead;

	s->move = LOSS_GOES_ON;
	if (s->taken || phv->tcp_flags & TCP_SYN) {
		reg_store(next, end);
		return;
	}
	old = reg_load(next);
	behind = old - end;
	if (behind < LOSS_FAR) {
		s->move = behind ? LOSS_BELOW : LOSS_STAYS;
		return;
	}
	reg_store(next, end);
	ahead = s->id - old;
	if (ahead > LOSS_SMALL_BYTES) {
		count->c[LEAN_JUMPS]++;
	} else if (ahead > 0) {
		count->c[LEAN_GAPS]++;
		count->c[LEAN_GAP_SUM] += ahead;
		s->event.value = ahead;
		s->move = LOSS_HOLE;
	}
}

static __always_inline void loss_2(struct loss *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	__u32 *last;

	if (!s->mine)
		return;
	last = reg_at(lean_loss_last, s->slot);
	if (!last)
		return;
	if (lean_rate_on && !s->taken) {
		lean_trial(&s->event, phv);
		count->c[LEAN_COMPARED]++;
	}
	if (lean_loss_id == LOSS_BYTES)
		loss_bytes(s, phv, last, count);
	else if (LOSS_WIDE)
		loss_number_wide(s, last, count);
	else
		loss_number(s, last, count);
}

/* Does the packet's identification give its position among those of its host? */
static __always_inline int loss_ordered(const struct phv *phv)
{
	return phv_has(phv, PHV_IPID) && phv->ipid;
}

/* Was a segment below the next number sent before the one that made this number? */
static __always_inline int loss_late(struct phv *phv, __u16 *order)
{
	if (loss_ordered(phv))
		return (__u16)(reg_load(order) - phv->ipid - 1) < LOSS_NEAR - 1;
	return (__u16)((clock_now(phv) >> LOSS_TICK) - reg_load(order) + LOSS_EARLY) <= LOSS_LATE + LOSS_EARLY;
}

/* TCP's bytes: which packet has the highest number, and how to count one below. */
static __always_inline void loss_3(struct loss *s, struct phv *phv, const struct lean_flow *f, struct lean_counts_t *count)
{
	int ordered = loss_ordered(phv);
	__u16 *order;

	if (lean_loss_id != LOSS_BYTES || !s->mine || s->move == LOSS_STAYS || (s->move == LOSS_GOES_ON && !ordered))
		return;
	order = reg_at(lean_loss_order, s->slot);
	if (!order)
		return;
	if (s->move != LOSS_BELOW) {
		reg_store(order, ordered ? phv->ipid : clock_now(phv) >> LOSS_TICK);
	} else if (phv->payload && loss_late(phv, order)) {
		count->c[LEAN_GIVEN_BACK]++;
		s->event.value = -(__s32)phv->payload;
	}
}
