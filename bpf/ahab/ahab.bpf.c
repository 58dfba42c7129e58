//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ahab: fair shares of a slice's capacity for any number of users, enforced where packets enter.
 *
 * Chen, "Designing Compact Data Structures for Network Measurement and Control", chapter 6 (AHAB).
 *
 * A user's rate is the smallest of three cells of a Count-Min Sketch whose cells are low-pass filters (lpf.h); all slices share it, with
 * lengths divided by the user's weight and scaled by the slice's. A slice has a limit T: of a user with a rate R above it, T / R
 * passes. What T would let pass if it were lower or higher is summed up beside it (limit.h), and the first packet after the end of an
 * epoch (1 ms) takes the sums away, calculates the next limit from them, and passes the program a second time to write it,
 * since by then T has passed it. Who is first is settled by one compare-and-exchange.
 *
 * Packets above the limit: a coin decides, but for TCP, which two losses in a row bring to a halt: a flow loses one segment (section
 * 6.4.1) whenever the coin would have taken `spacing` bytes from it, or has it marked if it understands ECN and is below twice the
 * limit. So a flow that is far above the limit meets its next loss soon, one that is just above it late, and flows draw together. `spacing` is
 * the control loop's: how far a flow may go beyond the limit for its mean to be there depends on its round trip time and its
 * congestion control. A flow that stays above ahab_grace times the limit from one loss to the next does not react: from then on it loses
 * what the coin would take, until it stays below the limit for as long. Not the rate of the moment decides: a window that arrives at once,
 * after an interface that gathers packets or a host that was away, reads several times too high. Segments without data pass.
 *
 * Behind all of that stands a ceiling (gcra.h), which holds whatever senders do: what does not fit is dropped, as long as the lease holds. It is charged for what
 * AHAB passes, and follows the slice's ceiling, while the limit follows what the slice is allotted. All slices together have one, too. The table form has none.
 *
 * Pacing (ahab_pace, packets that leave, exact form; host only) delays what would be dropped: the words of ceilings may be ahead of the clock by ahab_burst, as they may be late
 * else, and a packet leaves when its word arrives there; what would wait longer is dropped. Each user has such a word as well, at the slice's limit, so that who sends more
 * waits in a queue of its own. The limit is then no interpolation: users that were waiting at the first packet of an epoch (a power of two of ns, 67 ms) and used up theirs
 * in it share what the others left of 98 % of the capacity. Where none was, the limit halves if that was exceeded, and grows by half else.
 *
 * Many cores: limits, sums and counts are one word each, changed by one atomic operation; a packet that reads the limit while it is written
 * has the old or the new one. A packet that is counted between the three sums being taken away counts partly in the next epoch: the
 * error is below one packet a core and epoch. A countdown is read and stored: two packets of one flow at the same
 * time on two cores may count as one, which makes losses rarer by that.
 *
 * Nobody is limited in a slice without a capacity, nor when the lease has run out: the control loop renews it, so a process
 * that stops or dies leaves everything open. A slice without packets for AHAB_IDLE epochs begins again with the highest limit, which is that of
 * a user with twice the capacity, and so does one whose clock was set back by more than that. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "recirc.h"
#include "clock.h"
#include "spin.h"
#include "lpf.h"
#include "gcra.h"
#include "report.h"
#include "user.h"
#include "limit.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum ahab_counter {
	AHAB_STRAY,    /* segments in no slice: pass, uncharged */
	AHAB_OPEN,     /* passed above the limit, or beyond a ceiling, because the lease had run out */
	AHAB_EPOCHS,   /* new limits asked for */
	AHAB_WRITTEN,  /* ... and written */
	AHAB_LOST_SAMPLES, /* the ring was full */
	AHAB_BOUND,    /* segments that a slice's ceiling dropped, */
	AHAB_ROOT_BOUND, /* and the capacity of all slices together */
	AHAB_BOUND_MARKED, /* segments that either of them marked */
	AHAB_BOUND_LOST, /* packets that passed uncharged, since another core began the ceiling's next burst at the same time */
	AHAB_PACED,    /* segments that leave later than they arrived */
	AHAB_PACED_NS, /* by so much, summed over packets */
	AHAB_PACED_PACKETS,
	AHAB_BEYOND,   /* segments that would have waited for their user's time longer than the horizon: dropped */
	AHAB_PACE_MARKED, /* segments that were marked since they wait for more than half of it */
	AHAB_COUNTS = 16
};

/* What was done to a packet. */
enum ahab_deed { AHAB_PASSED, AHAB_DROPPED, AHAB_MARKED, AHAB_DEEDS };

struct ahab_slice {
	__u64 capacity; /* bytes a second; 0: nobody is limited. Written by the control loop */
	__u32 spacing;  /* bytes of a TCP flow of weight 1 beyond the limit between two losses. Written by the control loop */
	__u32 ceiling;  /* largest limit */
	__u32 norm;     /* what a byte counts, in 2^-16 */
	__u32 budget;   /* table form: capacity in 2^-4 bytes an epoch. Written by the control loop */
	__u64 user;     /* bits of the membership that are the same for all of the slice */
	__u64 bound;    /* what a byte costs of the ceiling: gcra.h; 0: no ceiling. Of slice 0: of the capacity of all together */
	__u64 spare;    /* exact form: until when nobody is limited, by the packet's clock, since the slice has used less than it may. Written by the control loop */
};

/* A packet of a user above its limit, one of some. */
struct ahab_sample {
	__u32 src[4], dst[4]; /* network order */
	__u16 sport, dport;
	__u8 proto, family;
	__u16 slice;
	__u64 member;
	__u32 rate, limit, len;
	__u8 deed, spare[3];
};

#define AHAB_TICK_SHIFT 10 /* epochs are timed in 1.024 us */
#define AHAB_GRID_SHIFT 20 /* table form: epochs are 1.048576 ms of the clock */
#define AHAB_IDLE 16
#define AHAB_LONG (1U << 20) /* ticks, about a second: no flow is held for longer */
#define AHAB_FULL 0x40000000 /* no limit is higher: sums with its step stay below 2^31 */
#define WEYL 0x9e3779b9U     /* 2^32 times the golden ratio's fraction */

const volatile __u32 ahab_epoch = 977; /* in ticks */
const volatile __u32 ahab_unit = 4194; /* tau in seconds, times 2^20: a limit in B/s times it, in 2^-16, is one in units */
const volatile __u32 ahab_grace = 4;
const volatile _Bool ahab_dry = 0;
const volatile _Bool ahab_rooted = 0; /* is there a ceiling of all slices together? */
const volatile __u64 ahab_burst = 200000000; /* ns of unused time that a ceiling keeps; pacing: that packets wait at most */
const volatile _Bool ahab_pace = 0;
const volatile __u64 ahab_tau = 4000000; /* ns: pacing turns limits into times */
const volatile __u32 ahab_grid = 26;     /* pacing: an epoch is 2^grid ns of the clock */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct ahab_slice);
	__uint(max_entries, 2);
	__uint(map_flags, BPF_F_MMAPABLE); /* the kernel maps no table for writing that programs may not write; the prover sees to it */
} ahab_slices SEC(".maps") TAG("pisa:table");

/* Until when limits hold, by the packet's clock, and one packet in how many is a sample, as a 16-bit share. */
struct ahab_lease_t {
	__u64 until;
	__u64 samples;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct ahab_lease_t);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} ahab_lease SEC(".maps") TAG("pisa:table");

/* A register of userspace's, too: mapped into its memory. */
#define REGISTER_MAPPED(name, stage, t, n)                                                            \
	_Static_assert(sizeof(t) <= 8, "a register element is at most 64 bits");                      \
	const volatile __u32 name##_entries = n;                                                      \
	struct {                                                                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                     \
		__type(key, __u32);                                                                   \
		__type(value, t);                                                                     \
		__uint(max_entries, n);                                                               \
		__uint(map_flags, BPF_F_MMAPABLE);                                                    \
	} name SEC(".maps") TAG("pisa:register") TAG("pisa:stage=" STR(stage))

/* A TCP flow above the limit. */
struct ahab_debt {
	__u32 left; /* bytes beyond the limit until its next loss */
	__u32 last; /* exact form: when it had one, in ticks */
};

REGISTER(ahab_epochs, 1, __u32, 2);         /* when the sums were last taken away */
REGISTER(ahab_weyl, 1, __u32, 2);
LPF(ahab_row0, 2, 2048);
LPF(ahab_row1, 2, 2048);
LPF(ahab_row2, 2, 2048);
REGISTER_MAPPED(ahab_limit, 2, __u32, 2);
REGISTER(ahab_depart, 3, __u64, 1);         /* pacing: when the next packet of a user may leave: gcra.h */
REGISTER(ahab_waiting, 4, __u32, 1);        /* ... {epoch in which it was last seen, whether it was waiting at the begin} */
REGISTER(ahab_countdown, 6, struct ahab_debt, 4096);
REGISTER(ahab_low, 7, __u64, 2);            /* exact form: and what the middle limit lets pass beyond the lower one, in the upper half */
REGISTER(ahab_mid, 7, __u64, 2);            /* table form only */
REGISTER(ahab_high, 7, __u64, 2);           /* exact form: and what no limit lets pass, in the upper half */
REGISTER(ahab_over, 7, __u64, 2);           /* table form only */
REGISTER(ahab_bound, 7, __u64, 2);          /* exact form: until when the slice has paid: gcra.h */
REGISTER(ahab_root, 8, __u64, 1);           /* the same of all slices together */
REGISTER_MAPPED(ahab_offered, 11, __u64, 2); /* bytes that arrived until the sums were last taken away, ever since */
REGISTER_MAPPED(ahab_dropped, 10, __u64, 2); /* bytes that were dropped, ever since */
REGISTER_MAPPED(ahab_refused, 9, __u64, 2); /* ... by a ceiling */
TALLY(ahab_passed, 10, __u64, 2);            /* segments of this window by what was done to them */
TALLY(ahab_lost, 11, __u64, 2);
TALLY(ahab_marked, 11, __u64, 2);
TALLY(ahab_mark_bytes, 10, __u64, 2);

COUNTERS(ahab_counts, AHAB_COUNTS);

RING(ahab_samples, 1 << 18);

const enum ahab_counter *unused_counter __attribute__((unused));
const struct ahab_sample *unused_sample __attribute__((unused));
const enum ahab_deed *unused_deed __attribute__((unused));
const enum ahab_user *unused_user __attribute__((unused));
const enum ahab_moves *unused_moves __attribute__((unused));

struct flow {
	__u64 member;
	__u64 hash; /* 16 bits each: rows 0 to 2, countdown */
	__u32 slice;
	__u32 rate;
	__u32 limit;
	__u32 share;  /* table form: of packets that pass, in 2^-15 */
	__u32 number; /* table form: this packet's, below 2^15 */
	__u32 since;  /* since the sums were last taken away, if this packet has to; 0: it has not */
};

/* ---- rate ---- */

static __always_inline __u32 charged(const struct phv *phv, const struct ahab_slice *s, __u64 member)
{
	__u32 weight = AHAB_WEIGHT(member);
	__u64 x = ((__u64)phv->len * s->norm) >> 12;

	if (weight > 1)
		x = ahab_table ? x >> bins_log2(weight) : x / weight;
	return x > AHAB_FULL ? AHAB_FULL : x;
}

static __always_inline void rows_of(struct phv *phv, struct flow *f)
{
	struct hash_input in;

	if (!hash_crc) {
		f->hash = user_hash(phv, f->member);
		return;
	}
	user_fields(&in, phv, f->member);
	f->hash = (hash_crc32(&in, 0) & 0xffff) | (__u64)(hash_crc32(&in, 1) & 0xffff) << 16 |
		  (__u64)(hash_crc32(&in, 2) & 0xffff) << 32 | (__u64)hash_crc32(&in, 3) << 48;
}

/* Without a branch: which of two cells is smaller nobody foresees. */
static __always_inline __u32 smaller(__u32 a, __u32 b)
{
	__u64 less = (__u64)a - b, mask = (__s64)less >> 63;

	opaque(mask); /* or the compiler makes a branch of it */
	return b + (less & mask);
}

#define ROW(name, bits, tick, x, least)                                                               \
	do {                                                                                          \
		struct lpf_cell *cell_ = reg_at(name, (bits) & (name##_entries - 1));                 \
		__u32 value_;                                                                         \
		if (cell_) {                                                                          \
			value_ = lpf_add(cell_, tick, x);                                             \
			least = smaller(least, value_);                                               \
		}                                                                                     \
	} while (0)

static __always_inline __u32 rate_of(const struct flow *f, __u32 tick, __u32 x)
{
	__u32 least = ~0U;

	ROW(ahab_row0, f->hash & 0xffff, tick, x, least);
	ROW(ahab_row1, f->hash >> 16 & 0xffff, tick, x, least);
	ROW(ahab_row2, f->hash >> 32 & 0xffff, tick, x, least);
	return least;
}

/* ---- epochs ---- */

static __always_inline __u32 epoch_ticks(void)
{
	return ahab_table || ahab_pace ? 1 : ahab_epoch;
}

/* Ticks (table form and pacing: epochs) since the sums were taken away, for the one packet that takes them away now; 0 for all others. */
static __always_inline __u32 epoch_crossed(struct phv *phv, __u32 slice)
{
	__u64 clock = clock_now(phv);
	__u32 now = ahab_pace ? clock >> ahab_grid : ahab_table ? clock >> AHAB_GRID_SHIFT : clock >> AHAB_TICK_SHIFT;
	__u32 *last = reg_at(ahab_epochs, slice), then, since;

	if (!last)
		return 0;
	then = reg_load(last);
	since = now - then;
	if (since > ~0U - AHAB_IDLE * epoch_ticks()) /* another core's clock, or a capture out of order */
		return 0;
	if (since < epoch_ticks())
		return 0;
	return reg_cas(last, then, now) == then ? since : 0;
}

/* The exact form has two sums in a word: a packet above the limit adds to all four, and an atomic operation is the dearest thing that it does. What
 * is carried from one to the other, after 268 MB in an epoch, is 2^-4 bytes. The table form adds to one of them, and has a word each as the twin. */
static __always_inline __u64 two_sums(__u32 lower, __u32 upper)
{
	return lower | (__u64)upper << 32;
}

#define SUM(name, f, n)                                                                               \
	do {                                                                                          \
		__u64 *sum_;                                                                          \
		if ((n) && (sum_ = reg_at(name, (f)->slice)))                                         \
			reg_add(sum_, n);                                                             \
	} while (0)

/* A packet below all three limits, as most are, asks for one of the words alone. */
static __always_inline void sums_add(const struct flow *f, const struct parts *p)
{
	__u64 low = two_sums(p->low, p->mid), high = two_sums(p->high, p->over);

	if (ahab_table) {
		SUM(ahab_low, f, p->low);
		SUM(ahab_mid, f, p->mid);
		SUM(ahab_high, f, p->high);
		SUM(ahab_over, f, p->over);
		return;
	}
	SUM(ahab_low, f, low);
	SUM(ahab_high, f, high);
}

#define SUM_TAKEN(name, f, n)                                                                         \
	({                                                                                            \
		__u64 *sum_ = reg_at(name, (f)->slice);                                               \
		sum_ ? reg_swap(sum_, n) : 0;                                                         \
	})

/* Takes the sums away, and leaves this packet's part. */
static __always_inline void sums_take(const struct flow *f, const struct parts *p, struct parts *sum)
{
	__u64 low, high;

	if (ahab_table) {
		sum->low = SUM_TAKEN(ahab_low, f, p->low);
		sum->mid = SUM_TAKEN(ahab_mid, f, p->mid);
		sum->high = SUM_TAKEN(ahab_high, f, p->high);
		sum->over = SUM_TAKEN(ahab_over, f, p->over);
		return;
	}
	low = SUM_TAKEN(ahab_low, f, two_sums(p->low, p->mid));
	high = SUM_TAKEN(ahab_high, f, two_sums(p->high, p->over));
	*sum = (struct parts){.low = low, .mid = low >> 32, .high = high, .over = high >> 32};
}

/* What arrived until the sums were taken away. */
static __always_inline void offer(const struct flow *f, const struct parts *sum)
{
	__u64 *offered = reg_at(ahab_offered, f->slice);

	if (offered)
		reg_add(offered, ((__u64)sum->low + sum->mid + (ahab_pace ? 0 : sum->high) + sum->over) >> 4);
}

/* The limit of a user who has all of the capacity, in units. */
static __always_inline __u32 limit_of_all(const struct ahab_slice *s)
{
	__u64 most = (s->capacity * ahab_unit >> 16) * s->norm >> 16;

	return most > AHAB_FULL ? AHAB_FULL : most;
}

/* What the slice may send between two epochs, in 2^-4 bytes. */
static __always_inline __u32 aim_of(const struct ahab_slice *s, __u32 since)
{
	__u64 aim;

	if (ahab_table)
		return s->budget << (since >= 4 ? 2 : since >= 2);
	aim = s->capacity * (since > 1 << 20 ? 1 << 20 : since) / 61035; /* 10^9 ns / 16 / 1024 ns */
	return aim > ~0U ? ~0U : aim;
}

/* Pacing: what others left of 98 % of the capacity, by the weights of those that were waiting; sum: low of the others, mid of those, high their weights. An eighth of what waits
 * for the slice itself goes off as well: that is who found no queue of its own yet. It asks for the
 * number of those users and not for what they sent: that arrives a delay later than the limit that caused it, and a loop around that delay swings. */
static __always_inline __u32 limit_paced(const struct flow *f, const struct ahab_slice *s, const struct parts *sum, __u64 queue)
{
	__u64 ticks = (__u64)f->since << (ahab_grid - AHAB_TICK_SHIFT), limit = f->limit, spared = ticks / 50 + (queue >> (AHAB_TICK_SHIFT + 3)), aim, next;

	aim = aim_of(s, ticks - (spared < ticks >> 1 ? spared : ticks >> 1));
	if (!sum->high)
		next = sum->low > aim ? limit >> 1 : limit + (limit >> 1);
	else
		next = (aim > sum->low ? aim - sum->low : 0) * (ahab_tau >> AHAB_TICK_SHIFT) / (sum->high * ticks) * s->norm >> 16;
	if (next < limit >> 2)
		next = limit >> 2;
	return (next > 2 * limit ? 2 * limit : next) | LIMIT_LEAST;
}

static __always_inline __u32 limit_after(const struct flow *f, const struct ahab_slice *s, const struct parts *sum, __u64 queue)
{
	__u32 ceiling = s->ceiling, most = limit_of_all(s), next;

	if (!ahab_table && most < ceiling >> 1) /* twice the capacity: room for a burst, and two steps from where users begin to share */
		ceiling = 2 * most;
	if (f->since >= AHAB_IDLE * epoch_ticks())
		return ceiling;
	next = ahab_pace ? limit_paced(f, s, sum, queue) : limit_next(f->limit, sum, aim_of(s, f->since), most);
	return next < ceiling ? next : ceiling;
}

/* ---- what becomes of a packet ---- */

/* A packet and a ceiling. */
struct bounded {
	enum ahab_deed deed;
	_Bool refused;
	_Bool open;  /* ... counted as passed because the lease has run out */
	_Bool over;  /* its user is above the limit */
	__u64 wait;  /* pacing: ns until it leaves */
	__u64 queue; /* ... that it would wait for its slice alone */
};

static __always_inline __u32 flow_place(const struct phv *phv, const struct flow *f)
{
	if (hash_crc || !AHAB_USER(f->member))
		return f->hash >> 48;
	return hash_flow(phv, 0x61686162);
}

/* Bytes that a user may exceed the limit by between two losses: with the square of its weight, as its window grows with it, and the
 * round trips in which it grows back as well. */
static __always_inline __u32 distance(const struct flow *f, const struct ahab_slice *s)
{
	__u64 weight = AHAB_WEIGHT(f->member), bytes = s->spacing * weight * weight;

	return ahab_table ? s->spacing : bytes > AHAB_FULL ? AHAB_FULL : bytes;
}

/* What of a segment the coin would take, in bytes. The table form divides by the weight's square instead, as far as bytes are left. */
static __always_inline __u32 beyond_limit(const struct flow *f, const struct parts *p)
{
	__u32 bytes = (p->high + p->over) >> 4, twice = 2 * bins_log2(AHAB_WEIGHT(f->member) | 1);

	return ahab_table ? bytes >> (twice > 8 ? 8 : twice) : bytes;
}

/* Ticks in which a flow that does not react took from one loss to the next: as long as it takes to send that distance at
 * ahab_grace - 1 times the limit. Limits are in units of ahab_unit, and a tick of 2^10 ns is taken for 2^-20 s. */
static __always_inline __u32 patience(const struct flow *f, const struct ahab_slice *s, __u32 bytes)
{
	__u64 ticks = ((__u64)bytes * s->norm >> 16) * ahab_unit, pace = ((__u64)f->limit * AHAB_WEIGHT(f->member) * (ahab_grace - 1) >> 4) | 1;

	if (ahab_table)
		return 0;
	ticks /= pace;
	return ticks > AHAB_LONG ? AHAB_LONG : ticks;
}

/* Is this the segment that a flow above the limit loses? */
static __always_inline int countdown_over(struct phv *phv, const struct flow *f, const struct ahab_slice *s, __u32 beyond)
{
	__u32 now = ahab_table ? 0 : clock_now(phv) >> AHAB_TICK_SHIFT, next = distance(f, s), soon = patience(f, s, next), len = phv->len;
	struct ahab_debt *debt = reg_at(ahab_countdown, flow_place(phv, f) & (ahab_countdown_entries - 1));
	__u64 *word = (__u64 *)debt, old;

	if (!debt)
		return 0;
	old = READ_ONCE(*word);
	if ((__u32)old >= beyond) {
		reg_store(&debt->left, (__u32)old - beyond);
		return 0;
	}
	if (now - (__u32)(old >> 32) < soon)
		next = len;
	reg_store(word, (__u64)now << 32 | next);
	return 1;
}

static __always_inline int coin_drops(const struct flow *f, __u32 coin, __u32 limit)
{
	if (ahab_table)
		return f->number >= f->share;
	return (__u64)coin * f->rate >> 32 >= limit;
}

static __always_inline enum ahab_deed deed_tcp(struct phv *phv, const struct flow *f, const struct ahab_slice *s, const struct parts *p)
{
	__u32 beyond = beyond_limit(f, p);

	if (!phv->payload || !beyond || !countdown_over(phv, f, s, beyond))
		return AHAB_PASSED;
	return !ahab_table && ecn_capable(phv) && f->rate < 2 * (__u64)f->limit ? AHAB_MARKED : AHAB_DROPPED;
}

static __always_inline void count(struct phv *phv, enum ahab_counter what, __u32 n)
{
	struct ahab_counts_t *counts = counters_of(ahab_counts, phv);

	if (counts)
		counts->c[what] += n;
}

static __always_inline void sample(struct phv *phv, const struct flow *f, __u8 deed)
{
	struct ahab_sample r = {
		.sport = phv->sport, .dport = phv->dport, .proto = phv->proto, .family = phv->family, .slice = f->slice,
		.member = f->member, .rate = f->rate, .limit = f->limit, .len = phv->len, .deed = deed,
	};

	__builtin_memcpy(r.src, phv->src, sizeof(r.src));
	__builtin_memcpy(r.dst, phv->dst, sizeof(r.dst));
	if (!ring_send(ahab_samples, &r))
		count(phv, AHAB_LOST_SAMPLES, 1);
}

#define TALLIED(name, phv, f, n)                                                                      \
	do {                                                                                          \
		__u64 *tally_ = reg_bank(name, phv, (f)->slice);                                      \
		if (tally_)                                                                           \
			*tally_ += n;                                                                 \
	} while (0)

/* Writes what the first pass has calculated. */
static __always_inline void second(struct phv *phv)
{
	__u32 *limit = reg_at(ahab_limit, (__u32)phv->carry[0]);

	if (!limit)
		return;
	reg_store(limit, (__u32)phv->carry[1]);
	count(phv, AHAB_WRITTEN, 1);
}

/* Counts a packet once that passes because the lease has run out: its limit, its slice's ceiling and that of all may each refuse it. */
static __always_inline void opened(struct phv *phv, struct bounded *b)
{
	if (!b->open)
		count(phv, AHAB_OPEN, phv->segs);
	b->open = 1;
}

/* Judges a packet of a user above the limit, which is no more than a sample where it waits. */
static __always_inline void judge(struct phv *phv, const struct flow *f, const struct ahab_slice *s, const struct parts *p, struct bounded *b)
{
	const struct ahab_lease_t *lease = reg_at(ahab_lease, 0);
	__u32 coin = coin_spin(phv);

	if (!lease)
		return;
	if (clock_now(phv) > lease->until)
		opened(phv, b);
	else if (ahab_pace || (!ahab_table && clock_now(phv) < s->spare))
		;
	else if (phv_has(phv, PHV_TCP))
		b->deed = deed_tcp(phv, f, s, p);
	else if (coin_drops(f, coin, f->limit))
		b->deed = AHAB_DROPPED;
	if ((coin & 0xffff) < lease->samples)
		sample(phv, f, b->deed);
}

/* ---- pacing ---- */

#define PACE_BYTE (1ULL << 33) /* gcra.h: a word that is ahead by the horizon and 2^32 ns was written before the clock was set back */
#define PACE_MOST (1ULL << 32) /* ns that a packet takes of its user's time at most */
#define PACE_PACKETS 64        /* fq keeps 100 of a flow: what is sent without regard to losses is dropped before */
#define PACE_FULL 1514

/* Nobody is paced when the lease has run out. */
static __always_inline int paces(struct phv *phv)
{
	const struct ahab_lease_t *lease = reg_at(ahab_lease, 0);

	return lease && clock_now(phv) <= lease->until;
}

/* ns that a byte takes of its user's time, in 2^-10. */
static __always_inline __u64 pace_byte(const struct flow *f, const struct ahab_slice *s)
{
	__u64 limit = (__u64)f->limit * AHAB_WEIGHT(f->member) | 1;

	return (ahab_tau * s->norm >> 2) / limit;
}

/* Was the user waiting when this epoch began for it? Sets its weight if this is the packet that shows it. */
static __always_inline int waiting(struct phv *phv, const struct flow *f, __u32 place, int waits, struct parts *p)
{
	__u32 *word = reg_at(ahab_waiting, place), epoch = clock_now(phv) >> ahab_grid << 1, held;

	if (!word)
		return 0;
	held = reg_load(word);
	if ((held ^ epoch) < 2)
		return held & 1;
	reg_store(word, epoch | waits);
	p->high = waits ? AHAB_WEIGHT(f->member) : 0;
	return waits;
}

/* A user's own queue. Sorts the packet into sums as well: low of users that were not waiting, mid of those that were, over of what is dropped. */
static __always_inline void pace(struct phv *phv, const struct flow *f, const struct ahab_slice *s, struct parts *p, struct bounded *b)
{
	__u64 byte = pace_byte(f, s), cost = byte * phv->len >> 10, room = ahab_burst, few = byte * (PACE_PACKETS * PACE_FULL) >> 10, ahead = 0, *word;
	__u32 place = f->hash >> 48 & (ahab_depart_entries - 1), amount = phv->len << 4;
	enum gcra_answer answer;

	*p = (struct parts){.low = amount};
	if (!phv_has(phv, PHV_TCP) && few < room)
		room = few;
	word = reg_at(ahab_depart, place);
	if (!word)
		return;
	answer = gcra_ask(word, clock_now(phv) + ahab_burst, cost < PACE_MOST ? cost : PACE_MOST, PACE_BYTE, ahab_burst, room, &ahead);
	if (waiting(phv, f, place, ahead != 0, p)) {
		p->low = 0;
		p->mid = amount;
	}
	if (answer == GCRA_REFUSES) {
		p->low = p->mid = 0;
		p->over = amount;
		b->deed = AHAB_DROPPED;
		count(phv, AHAB_BEYOND, phv->segs);
		return;
	}
	b->wait = ahead;
	if (ahead > ahab_burst >> 1 && ecn_capable(phv)) {
		b->deed = AHAB_MARKED;
		count(phv, AHAB_PACE_MARKED, phv->segs);
	}
}

/* A packet whose word is ahead of its time leaves then. */
static __always_inline void depart(struct phv *phv, struct bounded *b)
{
	if (b->queue > b->wait)
		b->wait = b->queue;
	if (!b->wait || b->deed == AHAB_DROPPED || !paces(phv))
		return;
	count(phv, AHAB_PACED, phv->segs);
	count(phv, AHAB_PACED_PACKETS, 1);
	count(phv, AHAB_PACED_NS, b->wait);
	if (!ahab_dry)
		verdict_steer(phv, STEER_DEPART, b->wait);
}

/* ---- ceilings ---- */

/* Users above the limit leave a sixteenth of a burst to the others, whose packets a ceiling would refuse else for what those have sent. */
static __always_inline __u64 room_of(const struct bounded *b)
{
	return b->over ? ahab_burst - (ahab_burst >> 4) : ahab_burst;
}

/* A packet that a ceiling refuses is dropped, unless the lease has run out. */
static __always_inline void refuse(struct phv *phv, struct bounded *b, enum ahab_counter by)
{
	const struct ahab_lease_t *lease = reg_at(ahab_lease, 0);

	if (!lease)
		return;
	if (clock_now(phv) > lease->until) {
		opened(phv, b);
		return;
	}
	count(phv, by, phv->segs);
	b->refused = 1;
	b->deed = AHAB_DROPPED;
}

/* Whoever understands ECN and is above the limit is marked once half of a burst is used. */
static __always_inline void warn(struct phv *phv, struct bounded *b, __u64 ahead)
{
	if (ahead <= ahab_burst >> 1 || !b->over || b->deed != AHAB_PASSED || !ecn_capable(phv))
		return;
	count(phv, AHAB_BOUND_MARKED, phv->segs);
	b->deed = AHAB_MARKED;
}

/* byte: what a byte costs of the ceiling. */
static __always_inline void ask(struct phv *phv, struct bounded *b, __u64 *word, __u64 byte, enum ahab_counter by)
{
	__u64 ahead;

	switch (gcra_ask(word, clock_now(phv) + (ahab_pace ? ahab_burst : 0), gcra_cost(phv->len, byte), byte, ahab_burst, room_of(b), &ahead)) {
	case GCRA_REFUSES:
		refuse(phv, b, by);
		return;
	case GCRA_LOST:
		count(phv, AHAB_BOUND_LOST, 1);
		return;
	default:
		if (ahab_pace && ahead > b->queue)
			b->queue = ahead;
		warn(phv, b, ahead);
	}
}

/* What AHAB dropped is charged to nobody. */
static __always_inline void bound(struct phv *phv, const struct flow *f, const struct ahab_slice *s, struct bounded *b)
{
	__u64 *word, byte = s->bound;

	if (ahab_table || !byte || b->deed == AHAB_DROPPED)
		return;
	word = reg_at(ahab_bound, f->slice);
	if (word)
		ask(phv, b, word, byte, AHAB_BOUND);
}

/* All slices together: charged for what the slice's own ceiling let pass. What this refuses stays charged to the slice, which has that much less. */
static __always_inline void root_bound(struct phv *phv, struct bounded *b)
{
	const struct ahab_slice *all = reg_at(ahab_slices, 0);
	__u64 *word, byte;

	if (ahab_table || !all || b->deed == AHAB_DROPPED)
		return;
	byte = all->bound;
	word = reg_at(ahab_root, 0);
	if (byte && word)
		ask(phv, b, word, byte, AHAB_ROOT_BOUND);
}

static __always_inline void dropped(struct phv *phv, const struct flow *f, const struct bounded *b)
{
	__u64 *bytes, *refused;

	if (b->refused && (refused = reg_at(ahab_refused, f->slice)))
		reg_add(refused, phv->len);
	bytes = reg_at(ahab_dropped, f->slice);
	if (bytes)
		reg_add(bytes, phv->len);
	TALLIED(ahab_lost, phv, f, phv->segs);
}

static __always_inline void tally(struct phv *phv, const struct flow *f, const struct bounded *b)
{
	switch (b->deed) {
	case AHAB_DROPPED:
		dropped(phv, f, b);
		return;
	case AHAB_MARKED:
		TALLIED(ahab_mark_bytes, phv, f, phv->len);
		TALLIED(ahab_marked, phv, f, phv->segs);
		return;
	default:
		TALLIED(ahab_passed, phv, f, phv->segs);
	}
}

ALGORITHM_RECIRC_SELDOM(ahab)
{
	struct flow f = {};
	struct parts p, sum = {};
	const struct ahab_slice *s;
	struct bounded b = {};
	__u32 *limit, *weyl, amount = phv->len << 4;

	if (second_pass(phv)) {
		second(phv);
		return 0;
	}
	if (condemned(phv))
		return 0;
	if (hash_crc && !phv_has(phv, PHV_IP)) { /* a switch's users have addresses */
		count(phv, AHAB_STRAY, phv->segs);
		return 0;
	}
	f.member = ahab_member(phv);
	f.slice = AHAB_SLICE(f.member);
	s = reg_at(ahab_slices, f.slice);
	if (!f.slice || !s) {
		count(phv, AHAB_STRAY, phv->segs);
		return 0;
	}
	f.member |= s->user;
	phv->slice = f.slice;
	f.since = epoch_crossed(phv, f.slice); /* reads the clock, which waits for what stands before it: the hash does not */
	rows_of(phv, &f);
	if (ahab_table) {
		weyl = reg_at(ahab_weyl, f.slice);
		if (weyl)
			f.number = (reg_add(weyl, WEYL) + WEYL) >> 17;
	}
	f.rate = rate_of(&f, lpf_tick(clock_now(phv)), charged(phv, s, f.member));
	limit = reg_at(ahab_limit, f.slice);
	if (!limit)
		return 0;
	f.limit = reg_load(limit);
	if (ahab_table) {
		f.share = parts_drawn(&p, amount, f.rate, f.limit, f.number);
		b.over = f.share < RATIO_ONE;
	} else {
		parts_expected(&p, amount, f.rate, f.limit);
		b.over = f.rate > f.limit;
	}
	if (ahab_pace) {
		if (s->capacity && paces(phv))
			pace(phv, &f, s, &p, &b);
		else
			p = (struct parts){.low = amount};
	}
	if (b.over && s->capacity)
		judge(phv, &f, s, &p, &b);
	if (unlikely(f.since))
		sums_take(&f, &p, &sum);
	else
		sums_add(&f, &p);
	bound(phv, &f, s, &b);
	if (ahab_rooted)
		root_bound(phv, &b);
	if (ahab_pace)
		depart(phv, &b);
	tally(phv, &f, &b);
	if (unlikely(f.since))
		offer(&f, &sum);
	if (!ahab_dry && b.deed != AHAB_PASSED)
		verdict_raise(phv, b.deed == AHAB_DROPPED ? VERDICT_DROP : VERDICT_MARK);
	if (likely(!f.since))
		return 0;
	count(phv, AHAB_EPOCHS, 1);
	phv->carry[0] = f.slice;
	phv->carry[1] = limit_after(&f, s, &sum, b.queue);
	return 1;
}
