/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the parts of waits share: the packet's connection, the wait that it finishes, counters and reports. */
#pragma once

#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "hash.h"
#include "bins.h"
#include "record.h"
#include "report.h"

enum waits_kind { WAIT_WINDOW, WAIT_ACK, WAIT_HANDSHAKE, WAIT_ANSWER, WAIT_KINDS };

const volatile __u32 waits_small = 2920;     /* bytes: a window below this is small */
const volatile __u32 waits_late = 3906250;   /* ticks of 64 ns: an ACK that takes this or longer is an event; 250 ms */
const volatile __u32 waits_slow = 1562500;   /* ... a leg of a handshake or an answer; 100 ms */
const volatile __u32 waits_share = 65536;    /* of the connections that are followed, in 2^-16 */

#define WAITS_SALT 0x77616974
#define WAITS_TICK 6          /* ns: 2^6 */
#define WAITS_LIVE (1U << 27) /* ticks: 8.6 s, for which a record keeps its place */
#define WAITS_SYN (1U << 24)  /* ... of a handshake: 1.07 s, since a scan leaves many that nobody answers */

enum waits_counter {
	WAITS_PACKETS,    /* TCP packets without RST */
	WAITS_SKIPPED,    /* ... of connections that are not followed */
	WAITS_SYNS,       /* SYN */
	WAITS_HANDSHAKES, /* ... answered */
	WAITS_ZERO,       /* announcements of a zero window */
	WAITS_SMALL,      /* ... of a small one */
	WAITS_UNSCALED,   /* small numbers whose scale is not known: not judged */
	WAITS_STARTED,    /* segments whose ACK is awaited */
	WAITS_REPEATED,   /* ... given up because a segment up to there was sent again */
	WAITS_ASKED,      /* segments of requests */
	WAITS_MISSED,     /* records that found another one in their place, or were overwritten */
	WAITS_TOO_LONG,   /* waits longer than can be measured: 275 s */
	WAITS_REPORTED,   /* words taken */
	WAITS_UNREPORTED, /* ... that the full ring refused */
	WAITS_CROWDED,    /* waits that found no place */
	WAITS_EVENTS = 16, /* [KINDS] finished waits that count */
	WAITS_COUNTS = WAITS_EVENTS + WAIT_KINDS
};

COUNTERS(waits_counts, WAITS_COUNTS);

/* A connection whose wait takes a word, and what the word held before. */
struct waits_report {
	__u64 hash; /* of the connection */
	__u64 word;
	__u64 path; /* what is known of its handshake: ends.h */
	__u32 lower[4]; /* address of the end with the smaller port */
	__u32 upper[4];
	__u16 lport;
	__u16 uport;
	__u8 family;
	__u8 bank;
	__u8 way;
	__u8 kind;   /* enum waits_kind */
	__u8 end;    /* that is waited for: 0 lower, 1 upper */
	__u8 server; /* 0 lower, 1 upper */
	__u8 unused[6];
};

RING(waits_reports, 1 << 20);

const enum waits_counter *unused_counter __attribute__((unused));
const enum waits_kind *unused_kind __attribute__((unused));
const struct waits_report *unused_report __attribute__((unused));

/* Kinds of delay in the distributions. */
enum waits_leg { LEG_SERVER, LEG_CLIENT, LEG_ACK, LEG_ANSWER, LEGS };
const enum waits_leg *unused_leg __attribute__((unused));

struct waits {
	__u64 hash;
	__u64 path;     /* ends.h */
	__u32 slot;
	__u32 ticks;    /* the wait that is finished, in ticks; 0: none, or below the threshold */
	__u32 measured; /* ... that the distributions count: the delay plus 1; 0: none */
	__u32 entry;    /* of the connection: ends.h */
	__u32 missed;    /* records that found no place: handshake, window, answer */
	__u32 torn;      /* ... that the packet has overwritten: ack */
	__u8 from;      /* which end sends: 0 the one with the smaller port */
	__u8 acks;      /* ACK, no SYN */
	__u8 bare;      /* ... without data and FIN */
	__u8 kind;
	__u8 end;       /* that was waited for */
	__u8 leg;
	__u8 server;
	__u8 repeated;  /* the SYN was sent more than once */
};

#define TICKS_SET (1ULL << (RECORD_TIME_BITS - 1))

/* The highest bit of a stored time is set, so that an empty place is told from all others; the bits below wrap in 9.7 hours. */
static __always_inline __u64 ticks_now(struct phv *phv)
{
	return (clock_now(phv) >> WAITS_TICK & (TICKS_SET - 1)) | TICKS_SET;
}

/* A record's name: 24 bits. */
static __always_inline __u32 name_of(const struct waits *w, __u64 what)
{
	return record_id((__u32)(hash_mix(w->hash ^ what * 0x9e3779b97f4a7c15ULL) >> 32));
}

/* Does a record keep its place against another one? */
static __always_inline int keeps(__u64 old, __u64 now, __u32 life)
{
	return (((now - old) & (TICKS_SET - 1)) | (~old & TICKS_SET)) < life;
}

/* Ticks since a record was written, with the tolerance of clock_since. */
static __always_inline __u64 age_of(__u64 now, __u64 old)
{
	__u64 ticks = (now - old) & (TICKS_SET - 1);

	return ticks > TICKS_SET - 1 - CLOCK_BEHIND ? 0 : ticks;
}

/* A wait has finished. */
static __always_inline void finish_wait(struct waits *w, __u64 age, __u32 least, __u8 kind, __u8 end, struct waits_counts_t *count)
{
	if (record_too_long(age)) {
		count->c[WAITS_TOO_LONG]++;
		return;
	}
	w->measured = (__u32)age + 1;
	if (age < least)
		return;
	w->ticks = (__u32)age + !age;
	w->kind = kind;
	w->end = end;
	count->c[WAITS_EVENTS + (kind & 3)]++;
}
