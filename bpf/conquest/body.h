/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One departure: count it in the snapshot of its window, and if it waited long, ask how much of the queue was its own flow's. */
#pragma once

#include "source.h"
#include "snapshots.h"
#include "coarse.h"
#include "act.h"
#include "burst.h"
#include "key.h"
#include "report.h"

enum conquest_reading_kind {
	READING_OVERLAP, /* the oldest window by overlap, and the one that is written */
	READING_NEAREST, /* the same, the oldest wholly or not at all: what a switch can do */
	READING_INNER,   /* section 5.3.3: windows wholly inside of [a, d), at least the last one */
	READING_OUTER,   /* ... and the one that a lies in */
};

enum conquest_event_kind { EVENT_CULPRIT, EVENT_BEGIN, EVENT_WINDOW, EVENT_END, EVENT_RAMP, EVENT_PACKET };

enum conquest_counter {
	CONQUEST_FATE = 0,        /* .. + FATES: packets by what is known of their way through the queue */
	CONQUEST_NO_KEY = 8,      /* packets that no flow was made of: counted in the total alone */
	CONQUEST_UNITS,           /* what was counted in snapshots: bytes or packets */
	CONQUEST_CONGESTED,       /* departures after a delay of tau or more */
	CONQUEST_CULPRIT,         /* ... of flows that had more than alpha of the queue */
	CONQUEST_BEYOND,          /* ... that waited longer than the snapshots reach back */
	CONQUEST_BURSTS,          /* bursts that began */
	CONQUEST_RACED,           /* packets that one cell or more lacks: another core began the window at the same time */
	CONQUEST_LATE,            /* packets that another core's clock had overtaken by a window */
	CONQUEST_LOST,            /* reports that the ring had no room for */
	CONQUEST_DELAY,           /* sum of the delays, ns */
	CONQUEST_ACTED,           /* packets before the queue that were to be marked, dropped or sent another way */
	CONQUEST_COUNTS = 24
};

/* What is reported to userspace. */
struct conquest_event {
	__u64 time;      /* departure, ns */
	__u64 delay;     /* ns */
	__u64 key[KEY_WORDS];
	__u64 size;      /* the flow while the packet waited; a ramp: in the last window */
	__u64 total;     /* all flows; a ramp: the flow in the window before */
	__u64 burst;     /* an end: {begin, last} in ticks; a flow: the packet itself, which is in neither of both sums */
	__u32 oldest;    /* the flow in the oldest window that was read, */
	__u32 edge;      /* of which so much counts, in 2^-16 */
	__u32 kind;
	__u16 queue;
	__u16 wide;      /* windows are coarse ones */
	__u32 culprit;   /* its share was above alpha */
	__u32 reach;     /* windows that were read */
	__u32 largest;   /* packet of late that was larger than a full one: an aggregate leaves at once; 0: none */
	__u32 oldest_total; /* all flows in the oldest window that was read */
};

const volatile _Bool conquest_bytes = 1;    /* sizes in bytes, else in packets */
const volatile _Bool conquest_classes = 0;  /* the key is the traffic class */
const volatile _Bool conquest_widest = 0;   /* the longest delay of late, not the packet's own: several classes (section 5.3.6) */
const volatile __u32 conquest_reading = READING_OVERLAP;
const volatile __u64 conquest_ask = 250000;    /* ns: who waited so long asks; userspace makes it a quarter of tau */
const volatile __u64 conquest_history = ~0ULL; /* ns: what departed before is no answer */
const volatile __u32 conquest_packet = 1514;   /* a full one, in units of the snapshots */
const volatile __u32 conquest_collide = 1392;  /* of all that is counted: what collides with a flow, in 2^-20; e/columns */
const volatile __u32 conquest_collide_wide = 5567; /* ... in coarse windows */
const volatile __u32 conquest_line = 0;     /* inner, outer: what a queue of 2^20 ns holds, in units of the snapshots */

/* {window; size; tag; count} of the last report of a flow: told_again(); with readings that a switch or the paper has {tag, window} */
REGISTER(conquest_told, 7, __u64, 1024);
/* ... and of its last ramp */
REGISTER(conquest_ramped, 6, __u64, 1024);
/* {when, largest packet of late}: of those that are larger than a full one. What is older than 8.6 s gives way */
REGISTER(conquest_large, 6, __u64, 1);
/* when the longest delay of late is forgotten, ns: it shrinks by 1 ns in 2 */
REGISTER(conquest_until, 2, __u64, 1);

COUNTERS(conquest_counts, CONQUEST_COUNTS);
RING(conquest_events, 1 << 20);

const enum conquest_counter *unused_counter __attribute__((unused));
const enum conquest_event_kind *unused_event_kind __attribute__((unused));
const enum conquest_source_kind *unused_source __attribute__((unused));
const enum conquest_action_kind *unused_action __attribute__((unused));
const enum conquest_chance_kind *unused_chance __attribute__((unused));
const enum conquest_reading_kind *unused_reading __attribute__((unused));
const struct conquest_event *unused_event __attribute__((unused));

/* Where a flow lies. Its key is put together again where it is reported. */
struct flow {
	__u32 column[2]; /* of its queue */
	__u64 hash;
};

static __always_inline int flow_key(const struct phv *phv, struct key *key)
{
	if (!key_of(phv, key))
		return 0;
	if (conquest_classes)
		key->w[0] |= (__u64)(phv->tos >> 2) << 8;
	return 1;
}

/* Two words of an address at once. */
static __always_inline __u64 flow_half(const __u32 *addr)
{
	return bpf_be64_to_cpu(*(const __u64 *)addr);
}

static __always_inline void flow_add(struct hash_sums *s, int word, __u64 w)
{
	hash_add(s, 1 + 2 * word, w >> 32, (__u32)w);
}

/* key_hash() of the key that there is by default, all five fields of both families, without what asking for each field costs. */
static __always_inline __u64 flow_plain(const struct phv *phv)
{
	__u64 ports = (__u64)phv->sport << 48 | (__u64)phv->dport << 32 | (__u64)phv->proto << 24;
	struct hash_sums s;

	hash_begin(&s, 0);
	if (phv->family == 4) {
		hash_add(&s, 1, bpf_ntohl(phv->src[3]), bpf_ntohl(phv->dst[3]));
		flow_add(&s, 1, ports | 1);
	} else {
		flow_add(&s, 0, flow_half(phv->src + 2));
		flow_add(&s, 1, ports | 3);
		flow_add(&s, 2, flow_half(phv->dst + 2));
		flow_add(&s, 3, flow_half(phv->src));
		flow_add(&s, 4, flow_half(phv->dst));
	}
	return hash_mix(hash_halves(&s));
}

#define KEY_PLAIN (KEY_ADDRS | KEY_PORTS | KEY_PROTO)

static __always_inline int flow_hash(const struct phv *phv, __u64 *h)
{
	struct hash_input in;
	struct key key;

	if (key_fields == KEY_PLAIN && key_family == FAMILY_BOTH && !conquest_classes && !hash_crc) {
		*h = phv->flow ? hash_spread(phv->flow) : flow_plain(phv);
		return phv_has(phv, PHV_IP);
	}
	if (!flow_key(phv, &key))
		return 0;
	if (hash_crc) {
		key_fields_of(&in, &key);
		*h = (__u64)hash_crc32(&in, 1) << 32 | hash_crc32(&in, 0);
	} else {
		*h = key_hash(&key);
	}
	return 1;
}

static __always_inline int flow_of(const struct phv *phv, __u32 queue, struct flow *f)
{
	__u32 columns = conquest_columns;

	if (!flow_hash(phv, &f->hash))
		return 0;
	f->column[0] = queue * columns + ((__u32)f->hash & (columns - 1));
	f->column[1] = queue * columns + ((__u32)(f->hash >> 32) & (columns - 1));
	return 1;
}

/* The longest delay of packets that left lately, this one included. */
static __always_inline __u64 widest(__u32 queue, const struct passage *p)
{
	__u64 *until = reg_at(conquest_until, queue), old, mine = p->departure + 2 * p->delay;

	if (!until)
		return p->delay;
	old = reg_load(until);
	if (old >= mine)
		return (old - p->departure) / 2;
	reg_cas(until, old, mine);
	return p->delay;
}

/* The readings of section 5.3.3. */
static __always_inline int paper(void)
{
	return conquest_reading >= READING_INNER;
}

/* The same of coarse windows. Of a flow's fine cells those count that lie in the wait wholly, of totals all since the oldest coarse window began: a lower bound and an upper one, and
 * what a coarse window and the fine cells of it have together does not hang on who has overwritten which of them. */
static __always_inline void span_wide(struct span *s, __u64 departure, __u64 delay, struct conquest_counts_t *count)
{
	__u32 fine = conquest_shift, shift = fine + conquest_coarse;
	__u64 arrival = departure - delay, mask = (1ULL << shift) - 1, reach = (departure >> shift) - (arrival >> shift), inside = mask + 1 - (arrival & mask);

	s->wide = 1;
	s->many = (departure >> fine) - (arrival >> fine);
	if (reach > COARSE - 1) {
		reach = COARSE - 1;
		s->beyond = 1;
		count->c[CONQUEST_BEYOND]++;
	} else if (reach) {
		s->edge = (inside << 16) >> shift;
	}
	s->every = ((departure & mask) >> fine) + (reach << conquest_coarse) + 1;
	if (s->beyond)
		s->many = s->every;
	s->reach = reach;
}

/* The windows that lie in [departure - delay, departure). */
static __always_inline void span_of(struct span *s, __u64 departure, __u64 delay, struct conquest_counts_t *count)
{
	__u32 shift = conquest_shift, reading = conquest_reading, most = conquest_snapshots - 1;
	__u64 arrival = departure - delay, mask = (1ULL << shift) - 1, reach = (departure >> shift) - (arrival >> shift), inside = mask + 1 - (arrival & mask);

	s->edge = SPAN_ONE;
	if (reading >= READING_INNER)
		most--; /* one is cleaned */
	if (reading == READING_INNER && (arrival & mask) && reach)
		reach--;
	if (conquest_coarse && reach > most) {
		span_wide(s, departure, delay, count);
		return;
	}
	if (reach > most) {
		reach = most;
		s->beyond = 1;
		count->c[CONQUEST_BEYOND]++;
	} else if (reading == READING_OVERLAP) {
		s->edge = (inside << 16) >> shift;
	} else if (reading == READING_NEAREST && inside <= mask / 2 && reach) {
		reach--;
	}
	if (reading >= READING_INNER && !reach)
		reach = 1;
	s->reach = reach;
}

/* Sketches only ever count too much: the smaller row is the better one. */
static __always_inline __u64 smaller(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Does the flow have more than alpha of what departed meanwhile? The paper compares with alpha of the queue's length. */
static __always_inline int above(const struct answer *a, __u64 delay)
{
	__u64 limit = a->limit;

	if (paper())
		limit = (delay * conquest_line >> 20) * conquest_alpha >> 20;
	return a->sum[0] > limit && a->sum[1] > limit;
}

#define LARGE_TICK 20
#define LARGE_HELD 8192U /* ticks */

/* The largest packet of late; size: this one's, if it is larger than a full one, else 0. */
static __always_inline __u32 largest(__u32 queue, __u64 now, __u32 size)
{
	__u64 *word = reg_at(conquest_large, queue), old, mine = (now >> LARGE_TICK) << 32 | size;
	__u32 age, held;

	if (!word)
		return size;
	old = reg_load(word);
	held = old;
	age = (__u32)(now >> LARGE_TICK) - (__u32)(old >> 32);
	if (age > LARGE_HELD || size > held) {
		reg_store(word, mine);
		held = size;
	}
	opaque(held); /* or what follows would be written twice, once for each, and hang on what was read */
	return held;
}

/* Has the flow alpha of the queue for certain? What lies in the wait wholly is all that it is taken to have had, and of others all that there is: those of the oldest window may have left
 * after the packet's arrival. That a link is as fast at all times is not supposed: one that stands still, since its host was held up, lets nobody leave, and a share of what
 * left before is no evidence of the wait. So a wait inside of one fine window is no evidence, and one inside of a coarse window by its fine cells alone. Of a packet that waited longer than
 * there are windows nothing is certain. What collides may add to a flow. */
static __always_inline int certain(const struct answer *a, const struct span *s, __u64 size, __u64 fine)
{
	__u64 total = a->sum[SUM_ALL], near = total * conquest_collide >> 20, extra = s->wide ? total * conquest_collide_wide >> 20 : near, mine = s->wide ? fine : 0, others, old, part;

	if (s->beyond)
		return 0;
	others = total > size ? total - size : 0;
	if (s->reach) {
		old = conquest_rows < 2 ? a->oldest[0] : smaller(a->oldest[0], a->oldest[1]);
		part = old * s->edge >> 16;
		mine = size > part ? size - part : 0;
		total = span_rest(s, a->oldest[SUM_ALL]);
		old -= part;
		others += total > old ? total - old : 0;
		near = extra;
	}
	if (mine <= near)
		return 0;
	mine -= near;
	return mine > (mine + others + extra) * conquest_alpha >> 20;
}

/* Section 5.4.2: w_f >= w_T. Has the flow conquest_weight in the queue for certain? What left in windows that lie in the wait wholly is its own, so that the answer holds however much longer
 * the packet waited than there are windows: a lower bound of a weight needs no total. */
static __always_inline int weighty(const struct answer *a, const struct span *s, __u64 size, __u64 fine)
{
	__u64 near = a->sum[SUM_ALL] * conquest_collide >> 20, mine = size, old;

	if (s->wide) {
		mine = fine;
	} else if (!s->beyond && !paper()) {
		old = conquest_rows < 2 ? a->oldest[0] : smaller(a->oldest[0], a->oldest[1]);
		old = old * s->edge >> 16;
		mine = s->reach && size > old ? size - old : 0;
	}
	return mine >= near + conquest_weight;
}

/* What is known of a packet by the time that something is reported. */
struct finding {
	const struct phv *phv;
	const struct passage *p;
	const struct flow *f;
	const struct span *s;
	struct answer *a;
	__u32 queue;
	__u32 culprit;
	__u32 add;     /* size of the packet, */
	__u32 lump;    /* ... again, if it is larger than a full one */
	__u32 largest; /* of late */
	__u64 size;
	struct conquest_counts_t *count;
};

/* Most packets report nothing: a report is put together where it is made. */
static __always_inline void report(const struct finding *d, __u32 kind, __u64 size, __u64 total, __u64 burst)
{
	struct conquest_event e = {
		.time = d->p->departure,
		.delay = d->p->delay,
		.size = size,
		.total = total,
		.burst = burst,
		.kind = kind,
		.queue = d->queue,
		.culprit = d->culprit,
	};
	struct key key;

	if (!flow_key(d->phv, &key))
		return;
#pragma unroll
	for (int i = 0; i < KEY_WORDS; i++)
		e.key[i] = key.w[i];
	if (kind == EVENT_CULPRIT || kind == EVENT_PACKET) {
		e.reach = d->s->reach;
		e.wide = d->s->wide;
		e.largest = d->largest;
		e.oldest = !d->s->reach ? size : conquest_rows < 2 ? d->a->oldest[0] : smaller(d->a->oldest[0], d->a->oldest[1]);
		e.edge = d->s->reach ? d->s->edge : SPAN_ONE;
		e.oldest_total = d->s->reach ? d->a->oldest[SUM_ALL] : 0;
	}
	if (!ring_send(conquest_events, &e))
		d->count->c[CONQUEST_LOST]++;
}

/* The flow has not been reported in this window: {flow's tag, window} of the last report. */
#define UNTOLD(name, f, epoch)                                                                        \
	({                                                                                            \
		__u32 at_ = (__u32)((f)->hash >> 16) & (conquest_told_entries - 1);                   \
		__u64 mine_ = (f)->hash >> 32 << 32 | (epoch), *word_ = reg_at(name, at_);            \
		word_ && reg_swap(word_, mine_) != mine_;                                             \
	})

#define TOLD_SIZE 16  /* bits: of 64 bytes, or of packets */
#define TOLD_TAG 12   /* bits: with the place 22 of the flow's hash */
#define TOLD_COUNT 4  /* bits */

/* Is the flow to be reported? Once a window; with the reading by overlap, and where a packet's wait reaches no further than the window before, again whenever the flow has grown by an eighth, four times, by a
 * quarter, four times, by half, four times, and whenever it has doubled. What left between two reports is known exactly, while of what left before the first one a part lies in a window
 * with others: a burst is short of both. Of two cores at one place both may report, or one in the place of the other. */
static __always_inline int told_again(const struct finding *d)
{
	__u64 *word = reg_at(conquest_told, (__u32)(d->f->hash >> 16) & (conquest_told_entries - 1)), old, mine;
	__u32 most = (1U << TOLD_SIZE) - 1, tag = d->f->hash >> (64 - TOLD_TAG), size, was, count;
	__u64 grown = conquest_bytes ? d->size >> 6 : d->size;

	size = grown > most ? most : grown;
	if (d->s->wide || d->s->reach > 1)
		size = 0; /* never again */
	opaque(size);
	mine = (__u64)d->s->epoch << 32 | (__u64)size << 16 | tag << TOLD_COUNT;
	if (!word)
		return 0;
	old = reg_load(word);
	count = old & ((1U << TOLD_COUNT) - 1);
	was = (__u32)old >> 16;
	if ((old ^ mine) & ~((__u64)most << 16 | ((1U << TOLD_COUNT) - 1))) { /* another flow or window */
		reg_store(word, mine);
		return 1;
	}
	if (size <= was + (was >> (3 - (count >> 2))))
		return 0;
	reg_store(word, mine | (count + (((count + 1) >> TOLD_COUNT) ^ 1)));
	return 1;
}

/* Rapid growth: the difference of the last two snapshots (section 5.3.3). */
static __always_inline void ramp(const struct finding *d)
{
	__u32 last, second;

	if (!conquest_ramp)
		return;
	last = smaller(READ_ONCE(d->a->last[0]), READ_ONCE(d->a->last[1]));
	second = smaller(READ_ONCE(d->a->second[0]), READ_ONCE(d->a->second[1]));
	if (last > second && last - second > conquest_ramp && UNTOLD(conquest_ramped, d->f, d->s->epoch))
		report(d, EVENT_RAMP, last, second, 0);
}

/* What is reported of a packet that waited long: of a culprit, and, where waits are short, of a flow that has half of that, since packets before it may show more than this one. */
static __always_inline void accuse(struct finding *d)
{
	int tau = d->p->delay >= conquest_tau, suspect;
	__u64 half;

	answer_weigh(d->s, d->a);
	d->size = smaller(d->a->sum[0], d->a->sum[1]);
	d->culprit = above(d->a, d->p->delay);
	half = d->a->limit >> 1;
	suspect = d->culprit || (conquest_reading == READING_OVERLAP && !d->s->wide && d->s->reach <= 1 && d->size > half);
	if (tau) {
		d->count->c[CONQUEST_CONGESTED]++;
		if (d->culprit)
			d->count->c[CONQUEST_CULPRIT]++;
	}
	if (suspect || conquest_every || d->lump)
		d->largest = largest(d->queue, d->p->departure, d->lump);
	if ((conquest_every && tau) || (!conquest_every && suspect && (conquest_reading == READING_OVERLAP ? told_again(d) : UNTOLD(conquest_told, d->f, d->s->epoch))))
		report(d, conquest_every ? EVENT_PACKET : EVENT_CULPRIT, d->size, d->a->sum[SUM_ALL], d->add);
	d->culprit &= tau;
}

/* A packet that does not ask itself is of a culprit if one of its flow was reported in this window. */
static __always_inline void follow(struct finding *d)
{
	__u64 *told = reg_at(conquest_told, (__u32)(d->f->hash >> 16) & (conquest_told_entries - 1)), word;
	__u32 tag = d->f->hash >> (64 - TOLD_TAG);

	d->count->c[CONQUEST_CONGESTED]++;
	if (!told)
		return;
	word = reg_load(told);
	if ((__u32)(word >> 32) == d->s->epoch && ((__u32)word & 0xffff) >> TOLD_COUNT == tag)
		d->count->c[CONQUEST_CULPRIT]++;
}

/* What is reported of the queue: where bursts begin and end, and once a window meanwhile. */
static __always_inline void burst(const struct finding *d)
{
	struct burst b = {};
	int edge = burst_pass(d->queue, d->p->departure, d->p->delay, &b);

	if (edge == BURST_NONE || (edge == BURST_GOES_ON && !(d->a->marks & CELL_FRESH)))
		return;
	d->count->c[CONQUEST_BURSTS] += edge == BURST_BEGINS;
	report(d, edge == BURST_BEGINS ? EVENT_BEGIN : edge == BURST_ENDS ? EVENT_END : EVENT_WINDOW, b.peak, 0, b.word);
}

/* A packet that is handed to a queue whose departures are seen. */
static __always_inline void conquest_enter(struct phv *phv)
{
	struct conquest_counts_t *count;

	if (conquest_action == ACTION_REPORT || !(phv->valid & PHV_EGRESS) || !culprit_act(phv))
		return;
	count = counters_of(conquest_counts, phv);
	if (count)
		count->c[CONQUEST_ACTED]++;
}

#define LIVELY 3 /* a power of two */

/* A departure whose flow and place are known. */
static __always_inline void depart(const struct phv *phv, struct passage *p, __u32 queue, struct flow *f, int timed,
				   struct conquest_counts_t *count)
{
	__u32 add = conquest_bytes ? phv->len : phv->segs;
	struct span s = {.epoch = p->departure >> conquest_shift};
	struct finding d = {.phv = phv, .p = p, .f = f, .s = &s, .queue = queue, .add = add, .count = count};
	__u32 chance = 0, condemned, asks = 1;
	__u64 fine = 0;
	struct answer a;

	if (conquest_widest && timed)
		p->delay = widest(queue, p);
	if (timed && p->delay >= conquest_ask)
		span_of(&s, p->departure, smaller(p->delay, conquest_history), count);
	if (conquest_coarse) { /* the verifier is to walk through the snapshots once, not for each of what it knows of these */
		forget(s.wide, p->departure);
		forget(s.beyond, p->departure);
		forget(s.reach, p->departure);
	}
	s.look = conquest_ramp || s.reach || s.wide;
	snapshots_pass(&s, queue, f->column, add, !paper(), p->departure, &a);
	if (conquest_coarse) {
		forget(a.marks, p->departure);
		fine = conquest_rows < 2 ? a.sum[0] : smaller(a.sum[0], a.sum[1]);
		asks = !s.wide || conquest_every || ((a.marks & CELL_FIRST) && fine << LIVELY >= a.limit);
		coarse_pass(&s, queue, f->hash, s.wide && asks, &a);
	}
	count->c[CONQUEST_UNITS] += add;
	if (unlikely(a.marks & (CELL_RACED | CELL_LATE))) {
		count->c[CONQUEST_RACED] += !!(a.marks & CELL_RACED);
		count->c[CONQUEST_LATE] += !!(a.marks & CELL_LATE);
	}
	d.a = &a;
	ramp(&d);
	if (!timed)
		return;
	if (unlikely(add > conquest_packet))
		d.lump = add;
	if (p->delay >= conquest_ask) {
		if (asks)
			accuse(&d);
		else
			follow(&d);
	}
	opaque(d.culprit); /* or what follows would be written twice, once for each, and hang on what has been reported */
	if (conquest_everyone || conquest_weight)
		condemned = conquest_action && p->delay >= conquest_tau && (conquest_everyone || weighty(&a, &s, d.size, fine));
	else
		condemned = conquest_action && asks && d.culprit && (paper() || certain(&a, &s, d.size, fine));
	if (condemned)
		chance = conquest_everyone ? (1 << CULPRIT_CHANCE) - 1 :
		       conquest_weight     ? culprit_chance(s.wide ? fine : d.size, conquest_weight, a.sum[SUM_ALL]) :
					     culprit_chance(d.size, a.limit, a.sum[SUM_ALL]);
	burst(&d);
	if (condemned)
		culprit_condemn(phv, p->delay, chance);
}

static __always_inline void conquest_body(struct phv *phv)
{
	struct conquest_counts_t *count = counters_of(conquest_counts, phv);
	__u32 queue = phv->queue & (conquest_queues - 1);
	struct passage p;
	struct flow f;
	int fate;

	if (!count)
		return;
	fate = passage_of(phv, &p);
	count->c[CONQUEST_FATE + (fate & 7)]++;
	if (fate > FATE_UNMATCHED)
		return;
	if (!flow_of(phv, queue, &f)) {
		count->c[CONQUEST_NO_KEY]++;
		return;
	}
	count->c[CONQUEST_DELAY] += p.delay;
	depart(phv, &p, queue, &f, fate == FATE_LEFT, count);
}
