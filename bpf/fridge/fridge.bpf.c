//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* fridge: the unbiased distribution of delays between requests and their responses.
 *
 * Zheng, Braverman, Chen, Rexford, "Unbiased Delay Measurement in the Data Plane", sections 3, 4.2 and 6.
 *
 * A request enters a hash-indexed array with probability p and overwrites the record there. A response that finds its
 * request gives a delay and the number x of insertions that the request has survived; it represents
 * 1/q = 1/p (1 - 1/M)^-x requests, because a request like it was evicted with that probability. x counts *insertions*, not
 * arrivals, hence 1/M and not p/M (section 3.2.1 counts arrivals, section 6.1 insertions).
 *
 * Differences from the paper, and why they do not change the estimate:
 * - The record is {id, time} in one 64-bit word (record.h), so that no core ever reads the id of one request with the time
 *   of another, and {x, tag} in a 32-bit word of the next stages. x is stored modulo 2^24: a request survives 2^24
 *   insertions with probability exp(-2^24 / M), 1e-7 for M = 2^20. If two cores insert into one slot at the same
 *   time, x may be the other's: the tag shows it (torn), and such a sample counts with x = 0.
 * - The insertion counter is split into shards by the high bits of the slot's index: shard and slots are a fridge of
 *   M / shards entries with its own counter, so the factor is exact and no cache line is hit by every core.
 * - A request may be repeated. The paper's request has one occurrence; here every occurrence enters the table, as the
 *   first did, and a sample survives from the *last* occurrence on: if its record had been overwritten before, the last
 *   occurrence restored it. So x counts from there, whatever happened to the record in between, and a request that is
 *   sent k times and answered once counts once (fridge_restart: its delay as well; without it the delay counts from the
 *   first occurrence that the record has survived).
 * - A record can be overwritten only by *different* requests since then, and one that was repeated in between has only one
 *   slot. The data plane counts occurrences and their number between two of the same request (fridge_repeats): from
 *   these gaps userspace estimates how many different requests x occurrences are (userspace/fridge/delay, Repeats). A record
 *   that was answered leaves its id in the slot, so that a repetition after the answer is recognized, too.
 * - The coin is a hash of the id: a retransmission has the same coin as the first attempt. With a new coin for each, a
 *   request sent k times would enter with probability 1 - (1 - p)^k and slow delays would count too much.
 *
 * The entry probability may change while packets pass (fridge_auto, section 5.2). What must hold then:
 * - A record never moves: the array is cut into FRIDGES equal parts, and which part and slot a request has depends on its hash
 *   only. "How many fridges" is how many different probabilities the parts have. So a record of an earlier setting is found as before.
 * - x counts insertions, so a record's survival is (1 - 1/M)^-x whatever probability those that came after it were admitted with. Only
 *   the chance to enter is of the setting: its number is stored with x, and a sample is counted in a plane of its setting and part,
 *   with the weight of its survival alone; userspace divides each plane by its own share times p.
 * - Number and probabilities are one word, read once a packet: coin and stored number are of the same setting on every core, whatever
 *   the moment of the change. A sample belongs to the setting of its request, not to that of the moment, so no packet in flight is
 *   counted with the wrong p.
 * - LIVE_SETTINGS are told apart, in planes modulo SETTINGS: the plane of a new setting was used by none of them and is empty. A record
 *   of an older setting is counted as stale instead of with the wrong p; userspace changes the setting only when such ones are out.
 * - The last occurrence of a request decides (see above). One that loses the coin where an earlier one, under a larger p, had won it
 *   removes that record (fridge_withdrawn): else such a request had a second chance to be sampled.
 *
 * Handshakes: SYN, SYN-ACK and ACK carry the same id (client, server, the client's first sequence number + 1), so one
 * record yields both legs and their sum. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "clock.h"
#include "gcra.h"
#include "hash.h"
#include "match.h"
#include "record.h"
#include "report.h"
#include "survival.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FRIDGES 4

enum fridge_group_kind { GROUP_NONE, GROUP_SRC, GROUP_DST, GROUP_DPORT, GROUP_VLAN };

enum fridge_counter {
	FRIDGE_REQUESTS = 0,   /* packets that ask */
	FRIDGE_LOST_COIN,      /* ... not admitted (1 - p) */
	FRIDGE_REPEATED,       /* ... that found their own record waiting: retransmissions */
	FRIDGE_INSERTED,       /* ... written where it was not */
	FRIDGE_EVICTED,        /* records overwritten before their response */
	FRIDGE_RESPONSES,      /* packets that answer */
	FRIDGE_MATCHED,        /* ... that found their request */
	FRIDGE_TORN,           /* ... whose x was written by another core's request: counted as x = 0 */
	FRIDGE_REPEATED_REPLY, /* ... that found it already answered (SYN-ACK sent again) */
	FRIDGE_FINALS,         /* third packets of a handshake that found their record */
	FRIDGE_GROUP_FULL,     /* samples of a group whose row belongs to another: row 0 */
	FRIDGE_UPDATES,        /* tcp-duration: packets added to a record */
	FRIDGE_INSERTED_BY = 12, /* .. + FRIDGES: admitted requests, repetitions included, by fridge */
	FRIDGE_TOO_LONG = 16,  /* responses to a request that is older than can be measured */
	FRIDGE_ZERO_WINDOWS,   /* tcp-data: packets of a receiver that takes nothing more */
	FRIDGE_COUNTS
};

/* Of fridge_sampling, where samples are sent: windows without them keep the counters that they have. */
enum fridge_sampling_counter {
	SAMPLES_SENT,
	SAMPLES_REFUSED, /* beyond the rate of the stream */
	SAMPLES_LOST,    /* the ring was full */
	SAMPLES_COUNTS
};

/* Of fridge_changes, with fridge_auto: windows without it keep the counters that they have. */
enum fridge_change_counter {
	CHANGE_STALE,     /* responses to a request of a setting that is no longer known */
	CHANGE_WITHDRAWN, /* records that were removed, since their request was repeated and lost the coin of a later setting */
	CHANGE_COUNTS
};

/* One fridge: slots [base, base + 2^bits), shards [shard, shard + 2^shard_bits). */
struct fridge_part {
	__u32 base;
	__u32 bits;
	__u32 shard;
	__u32 shard_bits;
	__u32 admit; /* p in 2^-16: admitted if 16 bits of hash are below it */
	__u32 route; /* routed here if the next 16 bits of hash are below it: cumulative share */
};

const volatile struct fridge_part fridge_parts[FRIDGES] = {{0, 16, 0, 8, 65536, 65536}};
const volatile __u32 fridge_count = 1;
const volatile __u32 fridge_tick = 6;       /* a stored time counts 2^tick ns */
const volatile __u32 fridge_mantissa = 5;   /* delay bins an octave: 2^mantissa */
const volatile _Bool fridge_recorded = 1;   /* x is recorded; else userspace infers it from the delay */
const volatile _Bool fridge_restart = 1;    /* a request that is sent again starts its clock again */
const volatile _Bool fridge_table = 0;      /* weights from fridge_weights are added up in the data plane */
const volatile __u32 fridge_group = GROUP_NONE;
const volatile __u32 fridge_rows = 1;       /* rows of the histograms; row 0 takes what fits nowhere */
const volatile __u64 fridge_group_mask4 = 0; /* prefix of an IPv4 address, host order */
const volatile __u64 fridge_group_mask6 = 0; /* prefix of the first 64 bits of an IPv6 address */
const volatile _Bool fridge_samples = 0;    /* single samples are sent to userspace */
const volatile _Bool fridge_auto = 0;       /* probabilities are those of fridge_setting, and may change */

#define SETTINGS 4      /* planes of a histogram: settings modulo 4 */
#define LIVE_SETTINGS 3 /* the present one and the two before it; the fourth plane is empty */
#define CLASS_BITS 4    /* a class c of requests enters with probability 2^-c */
#define CLASS_MASK ((1U << CLASS_BITS) - 1)
#define AUTO_SHIFT 12   /* the word of fridge_survived: x modulo 2^20, number of the setting modulo 16, low byte of id */

#define WEIGHT_MANTISSA 5
#define WEIGHT_BINS BINS(24, WEIGHT_MANTISSA)
#define DELAY_BITS 32
#define REPEAT_MANTISSA 3
#define REPEAT_BINS BINS(32, REPEAT_MANTISSA)

/* A flow's volume, in one word: bit 63: whether its SYN is from the larger endpoint hash to the smaller one. */
#define VOLUME_BYTES 38   /* low bits: bytes on the wire, up to 256 GiB */
#define VOLUME_PACKETS 25 /* above them: segments, up to 33 M */
#define VOLUME_REVERSE 63

/* stage 1: {id, time} of record.h */
REGISTER(fridge_entries, 1, __u64, 65536);
/* stage 2: insertions, one word per shard; {direction, packets, bytes} of a flow */
REGISTER(fridge_inserts, 2, __u32, 256);
REGISTER(fridge_volume, 2, __u64, 1);
/* stage 3: {x modulo 2^24, low byte of id}; time of the SYN-ACK */
REGISTER(fridge_survived, 3, __u32, 65536);
REGISTER(fridge_middle, 3, __u32, 65536);
/* stage 4: the group of a row of the histograms, by window */
REGISTER_BANKED(fridge_groups, 4, __u64, 1);
/* stage 5: read by userspace only. exact: [row][fridge][survival][delay]; table, or x not recorded: [row][fridge][delay] */
TALLY(fridge_hist, 5, __u64, 14336);
TALLY(fridge_second, 5, __u64, 14336);
TALLY(fridge_hits, 5, __u64, 1);
/* stage 5: requests that found an earlier occurrence of themselves, by the number of insertions since then (counter
 * inferred: by ticks). [fridge][bin] */
TALLY(fridge_repeats, 5, __u64, REPEAT_BINS);
TALLY(fridge_sizes, 6, __u64, 1);
TALLY(fridge_lengths, 6, __u64, 1);
/* stage 6, tcp-data with groups: zero windows, by row */
TALLY(fridge_shut, 6, __u64, 1);
/* stage 7: until when the samples that were sent are paid for, ns: gcra.h */
REGISTER(fridge_sent, 7, __u64, 1);

/* By log-linear bin of x, [fridge][bin], the prefix table of section 6.2: 1/q in 2^-8, and above its 32 bits the exponent of the
 * survival, the logarithm of what 1/q is beyond the chance to enter, in 2^-8. */
TABLE(fridge_weights, __u64, FRIDGES *WEIGHT_BINS);

/* The setting of fridge_auto, in one word: FRIDGES classes from bit 0 on; from bit 16 on, for each part, the least class of the live settings: no
 * record that waits was admitted with a larger probability; from bit 32 on the setting's number modulo 16. */
TABLE(fridge_setting, __u64, 1);

COUNTERS(fridge_counters, FRIDGE_COUNTS);

COUNTERS(fridge_changes, CHANGE_COUNTS);

/* Single samples (section 6.2: the samples are produced by the data plane and corrected by a server): delay, x and key of those that are worth
 * a report. Worth it are delays from fridge_choice's floor on, which userspace keeps at the least delay of its list, and those whose id has only
 * zeros under its mask: a share of all, drawn independently of the delay. GCRA bounds both together to SAMPLE_RATE a second and SAMPLE_BURST at
 * once, so that a list that is empty (its floor is 0) floods neither ring nor reader. A switch sends them as digests.
 *
 * Many cores: one word for all (gcra.h states what races do to it). With a rate far below that of the samples, nearly all cores find it
 * closed and only read it. */
#define SAMPLE_RATE 2048 /* samples a second */
#define SAMPLE_BURST 1024
#define SAMPLE_COST (1000000000ULL / SAMPLE_RATE)

struct fridge_choice_word {
	__u32 floor; /* ticks */
	__u32 mask;  /* of the id's bits */
};

TABLE(fridge_choice, struct fridge_choice_word, 1);

struct fridge_sample {
	__u64 time;   /* of the response, ns */
	__u32 delay;  /* ticks */
	__u32 x;      /* insertions survived */
	__u32 src[4]; /* who sent the request, as in the vector */
	__u32 dst[4];
	__u16 sport;
	__u16 dport;
	__u8 proto;
	__u8 family;
	__u8 fridge;  /* auto: and above its two bits the plane of its setting */
	__u8 flags;   /* enum fridge_sample_flag */
};

enum fridge_sample_flag {
	SAMPLE_BANK = 1,  /* bank of the window that it belongs to */
	SAMPLE_DRAWN = 2, /* by its id */
};

RING(fridge_stream, 1 << 18); /* 4,096 records: a second and a half without a reader */

COUNTERS(fridge_sampling, SAMPLES_COUNTS);

const enum fridge_counter *unused_counter __attribute__((unused));
const enum match_kind *unused_match __attribute__((unused));
const enum fridge_group_kind *unused_group __attribute__((unused));
const enum match_side_kind *unused_side __attribute__((unused));
const enum fridge_change_counter *unused_change __attribute__((unused));
const enum fridge_sampling_counter *unused_sampling __attribute__((unused));
const struct fridge_sample *unused_sample __attribute__((unused));
const enum fridge_sample_flag *unused_flag __attribute__((unused));

/* Position of a request's record. */
struct place {
	__u32 id;     /* 24 bits, never 0 */
	__u32 index;  /* slot in the arrays of stages 1 and 3 */
	__u32 shard;  /* in fridge_inserts */
	__u32 fridge;
	__u32 bits;   /* log2 of the slots of a shard */
	__u32 admitted;
	__u32 sought;  /* a record of it may wait */
	__u32 setting; /* number modulo 16 */
};

struct sample {
	__u32 delay; /* ticks */
	__u32 x;
	__u32 plane; /* of its setting */
	__u32 stale; /* ... which is no longer known */
};

/* The coin of the present setting, and of all that are live. A setting that cannot be read admits nothing. */
static __always_inline void draw(struct place *at, __u32 coin)
{
	__u32 zero = 0, shift = at->fridge * CLASS_BITS;
	__u64 *word = bpf_map_lookup_elem(&fridge_setting, &zero), setting;

	at->admitted = at->sought = at->setting = 0;
	if (!word)
		return;
	setting = *(volatile __u64 *)word;
	at->admitted = coin < 65536U >> ((__u32)setting >> shift & CLASS_MASK);
	at->sought = coin < 65536U >> ((__u32)setting >> (16 + shift) & CLASS_MASK);
	at->setting = (__u32)(setting >> 32) & 15;
}

static __always_inline void locate(const struct phv *phv, const struct question *q, struct place *at)
{
	struct match_hashes h;
	__u32 slot, k = 0;

	match_hash(&h, phv, q, fridge_auto || fridge_count > 1 || fridge_parts[0].admit < 65536);
#pragma unroll
	for (int i = 0; i < FRIDGES - 1; i++)
		k += (__u32)i + 1 < fridge_count && (h.luck >> 16) >= fridge_parts[i].route;
	k &= FRIDGES - 1;
	slot = h.slot & ((1U << fridge_parts[k].bits) - 1);
	at->id = record_id(h.id);
	at->fridge = k;
	at->index = fridge_parts[k].base + slot;
	at->bits = fridge_parts[k].bits - fridge_parts[k].shard_bits;
	at->shard = fridge_parts[k].shard + (slot >> at->bits);
	if (fridge_auto) {
		draw(at, h.luck & 0xffff);
		return;
	}
	at->admitted = at->sought = (h.luck & 0xffff) < fridge_parts[k].admit;
	at->setting = 0;
}

static __always_inline __u64 ticks(struct phv *phv)
{
	return clock_now(phv) >> fridge_tick;
}

/* A packet's contribution to its flow's word. */
static __always_inline __u64 volume_of(const struct phv *phv)
{
	return (__u64)phv->segs << VOLUME_BYTES | phv->len;
}

#define FATE_WRITTEN 1 /* the record is new, or its clock starts again */
#define FATE_AGAIN 2   /* the slot still knew the request */

/* Stage 1 for a request: its outcome, and the age of the occurrence that it found. */
static __always_inline int insert(struct phv *phv, const struct place *at, struct fridge_counters_t *count, __u32 *age)
{
	__u64 now = ticks(phv), word = record_word(at->id, now), old = 0, ago;
	__u64 *entry = reg_at(fridge_entries, at->index);

	if (!entry)
		return 0;
	if (!fridge_restart)
		old = reg_load(entry);
	if (fridge_restart || !record_of(old, at->id) || !record_waits(old))
		old = reg_swap(entry, word);
	if (likely(!record_of(old, at->id))) {
		count->c[FRIDGE_INSERTED]++;
		count->c[FRIDGE_EVICTED] += record_waits(old);
		return FATE_WRITTEN;
	}
	if (!record_waits(old)) {
		count->c[FRIDGE_INSERTED]++;
		return FATE_WRITTEN | FATE_AGAIN;
	}
	count->c[FRIDGE_REPEATED]++;
	ago = record_age(now, old);
	*age = record_too_long(ago) ? ~0U : ago;
	return fridge_restart ? FATE_WRITTEN | FATE_AGAIN : FATE_AGAIN;
}

/* x is stored modulo this. */
static __always_inline __u32 x_period(void)
{
	return 1U << (fridge_auto ? 32 - AUTO_SHIFT : 24);
}

static __always_inline __u32 survived_word(const struct place *at, __u32 inserts)
{
	if (fridge_auto)
		return inserts << AUTO_SHIFT | at->setting << 8 | (at->id & 0xff);
	return inserts << 8 | (at->id & 0xff);
}

/* Stages 2 and 3: the insertion count when the record was written, this one included. gap: the insertions since
 * the occurrence that this one found, this one included; returns 0 if there is none to report. */
static __always_inline int remember(const struct place *at, int fate, __u32 *gap)
{
	__u32 *inserts = reg_at(fridge_inserts, at->shard), *survived, word, old, known = 0;

	if (!inserts)
		return 0;
	word = survived_word(at, reg_add(inserts, 1) + 1);
	survived = reg_at(fridge_survived, at->index);
	if (!survived)
		return 0;
	if (unlikely(fate & FATE_AGAIN)) {
		old = reg_load(survived);
		known = !((old ^ word) & 0xff);
		old = fridge_auto ? (word >> AUTO_SHIFT) - (old >> AUTO_SHIFT) : (word - old) >> 8;
		*gap = old & (x_period() - 1);
		known = known && *gap < x_period() / 2;
	}
	reg_store(survived, word);
	return known;
}

/* Stage 5: this request is a repetition, after so many insertions (or ticks). */
static __always_inline void tally_repeat(const struct phv *phv, const struct place *at, __u32 gap)
{
	__u64 *sum = reg_bank(fridge_repeats, phv, at->fridge * REPEAT_BINS + bins_index(gap, REPEAT_MANTISSA));

	if (sum)
		*sum += 1;
}

/* Stage 1 for a response: the request's record if it waits there. remove: the record is cleared except for its id. */
static __always_inline int take(const struct place *at, int remove, __u64 *record)
{
	__u64 *entry = reg_at(fridge_entries, at->index), word;

	if (!entry)
		return 0;
	word = reg_load(entry);
	*record = word;
	if (!record_of(word, at->id) || !record_waits(word))
		return 0;
	return !remove || reg_cas(entry, word, word & ~(__u64)~0U) == word;
}

static __always_inline void changed(const struct phv *phv, enum fridge_change_counter which)
{
	struct fridge_changes_t *count = counters_of(fridge_changes, phv);

	if (count)
		count->c[which]++;
}

static __always_inline void request(struct phv *phv, const struct question *q, const struct place *at,
				    struct fridge_counters_t *count)
{
	__u32 *middle, gap = 0;
	__u64 *volume, record;
	int fate, again;

	count->c[FRIDGE_REQUESTS]++;
	if (!at->admitted) {
		count->c[FRIDGE_LOST_COIN]++;
		if (fridge_auto && unlikely(at->sought) && take(at, 1, &record))
			changed(phv, CHANGE_WITHDRAWN);
		return;
	}
	fate = insert(phv, at, count, &gap);
	count->c[FRIDGE_INSERTED_BY + at->fridge]++;
	if (match_rule == MATCH_TCP_DURATION && (fate & FATE_WRITTEN)) {
		volume = reg_at(fridge_volume, at->index);
		if (volume)
			reg_store(volume, (__u64)q->reverse << VOLUME_REVERSE | volume_of(phv));
	}
	again = fridge_recorded ? remember(at, fate, &gap) : gap != 0;
	if (match_rule == MATCH_TCP_HANDSHAKE && match_finals && (fate & FATE_WRITTEN)) {
		middle = reg_at(fridge_middle, at->index);
		if (middle)
			reg_store(middle, 0);
	}
	if (unlikely(again))
		tally_repeat(phv, at, gap);
}

/* Stages 2 and 3: insertions that the record has survived, and the plane of its setting. A torn x cannot be used for correction (a negative one
 * would be 2^24 - 1, and the sample would represent millions): id and time are the sample's own, so it counts with x = 0, and in the plane of
 * the present setting. */
static __always_inline void survived(const struct place *at, struct fridge_counters_t *count, struct sample *s)
{
	__u32 *inserts, *then, now, word;

	s->x = 0;
	s->stale = 0;
	s->plane = at->setting & (SETTINGS - 1);
	if (!fridge_recorded)
		return;
	inserts = reg_at(fridge_inserts, at->shard);
	if (!inserts)
		return;
	now = reg_load(inserts);
	then = reg_at(fridge_survived, at->index);
	if (!then)
		return;
	word = reg_load(then);
	if ((word ^ at->id) & 0xff) {
		count->c[FRIDGE_TORN]++;
		return;
	}
	s->x = (now - (word >> (fridge_auto ? AUTO_SHIFT : 8))) & (x_period() - 1);
	if (s->x >= x_period() / 2)
		s->x = 0; /* another core's request with the same tag: from the future */
	if (!fridge_auto)
		return;
	s->plane = word >> 8 & (SETTINGS - 1);
	s->stale = ((at->setting - (word >> 8)) & 15) >= LIVE_SETTINGS;
}

/* Is the request's setting known? Settings that stay are. */
static __always_inline int current(const struct phv *phv, const struct sample *s)
{
	if (!fridge_auto || likely(!s->stale))
		return 1;
	changed(phv, CHANGE_STALE);
	return 0;
}

/* Stage 4: the row of this sample's group. The first group in a window owns the row. */
static __always_inline __u64 group_key(const struct phv *phv, int reverse)
{
	const __u32 *addr;

	if (fridge_group == GROUP_DPORT)
		return 1ULL << 60 | (reverse ? phv->sport : phv->dport);
	if (fridge_group == GROUP_VLAN)
		return 2ULL << 60 | (phv->valid & PHV_VLAN ? phv->vlan : 4096);
	addr = (fridge_group == GROUP_SRC) == !reverse ? phv->src : phv->dst;
	if (phv->family == 4)
		return 4ULL << 60 | (bpf_ntohl(addr[3]) & fridge_group_mask4);
	return 6ULL << 60 |
	       ((((__u64)bpf_ntohl(addr[0]) << 32 | bpf_ntohl(addr[1])) & fridge_group_mask6) >> 4);
}

static __always_inline __u32 group_row(const struct phv *phv, int reverse, struct fridge_counters_t *count)
{
	__u64 key, *owner, old;
	__u32 row;

	if (fridge_group == GROUP_NONE)
		return 0;
	key = group_key(phv, reverse);
	row = 1 + (((hash_mix(key ^ hash_seed) >> 32) * (fridge_rows - 1)) >> 32);
	owner = reg_bank(fridge_groups, phv, row);
	if (!owner)
		return 0;
	old = reg_cas(owner, 0, key);
	if (old == 0 || old == key)
		return row;
	count->c[FRIDGE_GROUP_FULL]++;
	return 0;
}

/* A sample's contribution, and its cell in the plane [survival][delay] (exact) or [delay] (table). Returns its contribution to the
 * cell of fridge_hits. */
static __always_inline __u64 cell_of(const struct place *at, const struct sample *s, __u32 *cell, __u64 *add)
{
	__u32 delay = bins_index(s->delay, fridge_mantissa), key;
	__u64 *weight;

	if (fridge_table) {
		key = at->fridge * WEIGHT_BINS + bins_index(s->x & 0xffffff, WEIGHT_MANTISSA);
		weight = bpf_map_lookup_elem(&fridge_weights, &key);
		*cell = delay;
		*add = weight ? (__u32)*weight : 0;
		return (1ULL << RESIDUAL_BITS) + (weight ? *weight >> 32 : 0);
	}
	*cell = survival_cell(s->x, at->bits, delay, BINS(DELAY_BITS, fridge_mantissa), add);
	return 0;
}

/* Planes of a row, and which of them is a sample's: [setting][fridge]. */
static __always_inline __u32 planes(void)
{
	return fridge_auto ? SETTINGS * FRIDGES : fridge_count;
}

static __always_inline __u32 plane_of(const struct place *at, const struct sample *s)
{
	return fridge_auto ? s->plane * FRIDGES + at->fridge : at->fridge;
}

static __always_inline __u32 plane(void)
{
	return (fridge_table || !fridge_recorded ? 1 : SURVIVAL_BINS) * BINS(DELAY_BITS, fridge_mantissa);
}

/* One element of fridge_hist; in table mode also the number of samples in the weights, and the sum of their exponents. */
static __always_inline void tally(const struct phv *phv, const struct place *at, const struct sample *s, __u32 row)
{
	__u32 cell, base = row * planes() + plane_of(at, s);
	__u64 add, samples = cell_of(at, s, &cell, &add), *sum, *hits;

	sum = reg_bank(fridge_hist, phv, base * plane() + cell);
	if (sum)
		*sum += add;
	if (!fridge_table)
		return;
	hits = reg_bank(fridge_hits, phv, base * plane() + cell);
	if (hits)
		*hits += samples;
}

static __always_inline void tally_second(const struct phv *phv, const struct place *at, const struct sample *s)
{
	__u64 add, *sum;
	__u32 cell;

	cell_of(at, s, &cell, &add);
	sum = reg_bank(fridge_second, phv, plane_of(at, s) * plane() + cell);
	if (sum)
		*sum += add;
}

/* The finished flow's bytes and packets, with the same weight as its duration (section 8). */
static __always_inline void tally_volume(const struct phv *phv, const struct place *at, __u64 volume, const struct sample *s)
{
	struct sample bytes = *s, packets = *s;
	__u64 octets = volume & ((1ULL << VOLUME_BYTES) - 1), add, *sum;
	__u32 cell;

	packets.delay = (volume >> VOLUME_BYTES) & ((1U << VOLUME_PACKETS) - 1);
	bytes.delay = octets > ~0U ? ~0U : octets;
	cell_of(at, &bytes, &cell, &add);
	sum = reg_bank(fridge_sizes, phv, plane_of(at, s) * plane() + cell);
	if (sum)
		*sum += add;
	cell_of(at, &packets, &cell, &add);
	sum = reg_bank(fridge_lengths, phv, plane_of(at, s) * plane() + cell);
	if (sum)
		*sum += add;
}

/* The first response to a request: its sample, and the volume of the flow that it ends. */
static __always_inline int answer(struct phv *phv, const struct place *at, struct fridge_counters_t *count, struct sample *s, __u64 *total)
{
	int keep = match_rule == MATCH_TCP_HANDSHAKE && match_finals;
	__u64 *volume, record, age;
	__u32 *middle;

	if (!at->sought || !take(at, !keep, &record))
		return 0;
	age = record_age(ticks(phv), record);
	if (record_too_long(age)) {
		count->c[FRIDGE_TOO_LONG]++;
		return 0;
	}
	if (match_rule == MATCH_TCP_DURATION) {
		volume = reg_at(fridge_volume, at->index);
		if (volume)
			*total = reg_load(volume) + volume_of(phv);
	}
	s->delay = age;
	survived(at, count, s);
	if (keep) {
		middle = reg_at(fridge_middle, at->index);
		if (!middle || reg_cas(middle, 0, ((__u32)record + s->delay) | 1) != 0) {
			count->c[FRIDGE_REPEATED_REPLY]++;
			return 0;
		}
	}
	if (!current(phv, s))
		return 0;
	count->c[FRIDGE_MATCHED]++;
	return 1;
}

/* A receiver whose buffer is full advertises a window of 0 until its application reads. Its answers to probes of the closed
 * window count as well: as long as the window is closed, it is seen. The windows of SYN, FIN and RST are not used. */
static __always_inline int shuts(const struct phv *phv)
{
	return match_rule == MATCH_TCP_DATA && !phv->window && (phv->tcp_flags & (TCP_ACK | TCP_SYN | TCP_FIN | TCP_RST)) == TCP_ACK;
}

/* Stage 7, and the ring: this sample by itself, if it is worth a report and the rate allows it. reverse: the request has the other direction. */
static __always_inline void send_sample(struct phv *phv, const struct place *at, const struct sample *s, int reverse)
{
	const __u32 *src = reverse ? phv->dst : phv->src, *dst = reverse ? phv->src : phv->dst;
	struct fridge_choice_word *choice;
	struct fridge_sample r = {.delay = s->delay, .x = s->x, .proto = phv->proto, .family = phv->family, .fridge = plane_of(at, s),
				  .flags = phv->bank & SAMPLE_BANK};
	struct fridge_sampling_t *count;
	__u64 *sent, ahead;
	__u32 zero = 0;

	choice = bpf_map_lookup_elem(&fridge_choice, &zero);
	if (!choice)
		return;
	if (!(at->id & choice->mask))
		r.flags |= SAMPLE_DRAWN;
	else if (s->delay < choice->floor)
		return;
	count = counters_of(fridge_sampling, phv);
	sent = reg_at(fridge_sent, 0);
	if (!count || !sent)
		return;
	r.time = clock_now(phv);
	if (gcra_ask(sent, r.time, SAMPLE_COST, SAMPLE_COST << GCRA_SHIFT, SAMPLE_BURST * SAMPLE_COST, SAMPLE_BURST * SAMPLE_COST, &ahead) ==
	    GCRA_REFUSES) {
		count->c[SAMPLES_REFUSED]++;
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		r.src[i] = src[i];
		r.dst[i] = dst[i];
	}
	r.sport = reverse ? phv->dport : phv->sport;
	r.dport = reverse ? phv->sport : phv->dport;
	if (ring_send(fridge_stream, &r))
		count->c[SAMPLES_SENT]++;
	else
		count->c[SAMPLES_LOST]++;
}

/* Rows of fridge_hist: with legs, row 0 is the first leg and row 1 the sum of both. A zero window counts in the row of the network
 * that sends it, as if it were a response. The row is looked up once for both. */
static __always_inline void response(struct phv *phv, const struct question *q, const struct place *at,
				     struct fridge_counters_t *count)
{
	int found, closed = shuts(phv), reverse = q->reverse;
	__u64 total = 0, *sum;
	struct sample s = {};
	__u32 row;

	count->c[FRIDGE_RESPONSES]++;
	found = answer(phv, at, count, &s, &total);
	if (!found && likely(!closed))
		return;
	if (match_rule == MATCH_TCP_DURATION)
		reverse ^= total >> VOLUME_REVERSE; /* did the SYN go the other way than this packet? */
	row = group_row(phv, reverse, count);
	if (found)
		tally(phv, at, &s, row);
	if (found && match_rule == MATCH_TCP_DURATION)
		tally_volume(phv, at, total, &s);
	if (unlikely(closed)) {
		count->c[FRIDGE_ZERO_WINDOWS]++;
		sum = reg_bank(fridge_shut, phv, row);
		if (sum)
			*sum += 1;
	}
	if (fridge_samples && found)
		send_sample(phv, at, &s, reverse);
}

/* The ACK that ends a handshake: second leg and sum. */
static __always_inline void final(struct phv *phv, const struct place *at, struct fridge_counters_t *count)
{
	struct sample sum, second;
	__u32 *middle, then;
	__u64 record, age;

	if (!at->sought || !take(at, 1, &record))
		return;
	age = record_age(ticks(phv), record);
	sum.delay = age;
	survived(at, count, &sum);
	middle = reg_at(fridge_middle, at->index);
	if (!middle)
		return;
	then = reg_load(middle);
	if (!then || !current(phv, &sum))
		return;
	if (record_too_long(age)) {
		count->c[FRIDGE_TOO_LONG]++;
		return;
	}
	count->c[FRIDGE_FINALS]++;
	second.delay = (__u32)record + sum.delay - then;
	if (second.delay > sum.delay) /* the stored time is odd: never before itself */
		second.delay = 0;
	second.x = sum.x;
	second.plane = sum.plane;
	tally(phv, at, &sum, 1);
	tally_second(phv, at, &second);
}

static __always_inline void update(struct phv *phv, const struct place *at, struct fridge_counters_t *count)
{
	__u64 *volume, record;

	if (!at->sought || !take(at, 0, &record))
		return;
	count->c[FRIDGE_UPDATES]++;
	volume = reg_at(fridge_volume, at->index);
	if (volume)
		reg_add(volume, volume_of(phv));
}

ALGORITHM(fridge)
{
	struct fridge_counters_t *count;
	struct question q;
	struct place at;

	classify(&q, phv);
	if (likely(q.role == ROLE_NONE))
		return;
	count = counters_of(fridge_counters, phv);
	if (!count)
		return;
	locate(phv, &q, &at);
	if (q.role == ROLE_REQUEST)
		request(phv, &q, &at, count);
	else if (q.role == ROLE_RESPONSE)
		response(phv, &q, &at, count);
	else if (q.role == ROLE_FINAL)
		final(phv, &at, count);
	else
		update(phv, &at, count);
}
