//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* reorder: source prefixes whose TCP packets arrive out of order.
 *
 * Zheng, Yu, Rexford, "Detecting TCP Packet Reordering in the Data Plane", sections 2 and 3.
 *
 * A record belongs to a flow and is in a bucket that is selected by the flow's *prefix*, so a prefix with many flows
 * cannot occupy many buckets. It compares each packet with the flow's last one (definitions 1 and 2) or with the largest
 * number so far (definition 3), and counts packets n and out-of-order packets o. A record is reported to userspace when
 * it is evicted, or when the window ends and userspace reads the rest.
 *
 * sampling   (3.2) an array; a flow is observed until another one arrives and it is stale (older than T), or has had more than C
 *            packets, or R out-of-order ones.
 * precision  (3.1) d ways that keep the largest flows of each prefix: PRECISION with one more pair of words.
 * hybrid     (3.3) first the ways, then an array that admits only flows whose prefix is in no way.
 *
 * Under the memory rules:
 * - A record is four words in four consecutive stages: {signature, time or size}, {tag, prefix}, {tag, o, number}, {tag,
 *   done, n}. Signature and time in one word admit the stale case in one read-modify-write. n is in a later stage: a packet
 *   that is refused and finds n > C there passes the pipeline once more and takes the bucket. The same word records that o
 *   has reached R (done), so that a refused packet reads only two words. Ways also admit by a second pass, as
 *   PRECISION does: with probability 2^-y, 2^y being the smallest power of two that is not below the size, which then becomes
 *   2^y (Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, Algorithm 2 of section
 *   3.3.4; its text rounds size + 1, which doubles a record of 2^y packets at once: docs/precision.md).
 * - n of the ways is what the record has counted itself; the inherited size decides admission only. With it, the share o/n would be
 *   too small.
 *
 * Many cores: the words are shared, since a flow may change its core between two packets and per-core records would count
 * that as a gap. Two cores in one bucket at the same time can mix words of two records. Each word repeats a part of the
 * signature: a number of another flow is not compared, a report whose words disagree is dropped, and both are counted
 * (torn). A word is read and then written by one aligned store, which costs half of an atomic exchange; an addition to
 * o between another core's two accesses is lost: at most one packet per race.
 *
 * A SYN starts a connection, also on a reused 5-tuple: the flow's own record continues, with a number after which nothing of the
 * new connection is out of order. A SYN without data counts for nothing else, and no record is written for it.
 *
 * n and o have 24 bits. A record close to their maximum (15/16) is written again by a second pass of its own flow's packet:
 * its content is reported as that of any replaced record.
 *
 * Aggregates (GSO, GRO) are merged from consecutive segments: they count as that many packets in order, and the next
 * packet is compared with the first segment's number (definitions 1, 3) and with the end of the last (2).
 *
 * Records accumulate over a window, hence two banks: the paper's interval is a window, a record exists for
 * microseconds or some packets (sampling), and reading a closed bank needs no lock.
 *
 * Time is stored in ticks of 1,024 ns modulo 2^32 (73 minutes): for T and a millisecond in 73 minutes an empty bucket seems taken. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "recirc.h"
#include "clock.h"
#include "coin.h"
#include "hash.h"
#include "bins.h"
#include "report.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define WAYS 5
#define ARRAY WAYS /* carry[0] of a second pass for the array's bucket */
#define TICK 10    /* a stored time counts 2^10 ns */
#define EARLY 1024 /* ticks by which a record may be younger than the packet (another core, a capture out of order) */
#define SALT 0x72656f72 /* keeps signatures apart from other uses of the flow hash */

enum reorder_method_kind { METHOD_SAMPLING, METHOD_PRECISION, METHOD_HYBRID };

enum reorder_definition_kind { BELOW_LAST = 1, BEHIND_EXPECTED = 2, BELOW_LARGEST = 3 };

enum reorder_counter {
	REORDER_PACKETS,      /* packets with payload, segments of aggregates counted */
	REORDER_COMPARED,     /* ... of a flow in memory */
	REORDER_OUT,          /* ... out of order */
	REORDER_REPEATED,     /* ... with the number of their predecessor: duplicates, or sent again at once */
	REORDER_AGGREGATES,   /* GSO, GRO: packets of more than one segment */
	REORDER_ADMITTED,     /* records written */
	REORDER_WANTED,       /* second passes asked for */
	REORDER_SECOND,       /* second passes */
	REORDER_REPORTS,      /* sent */
	REORDER_REPORTS_LOST, /* the ring was full */
	REORDER_TORN,         /* words of two flows in one bucket */
	REORDER_COUNTS = 16
};

const volatile __u32 reorder_method = METHOD_SAMPLING;
const volatile __u32 reorder_definition = BELOW_LAST;
const volatile __u32 reorder_ways = 0;
const volatile __u32 reorder_stale = 30;        /* T in ticks */
const volatile __u32 reorder_most = 16;         /* C */
const volatile __u32 reorder_enough = 1;        /* R, packets */
const volatile __u32 reorder_share = 655;       /* R of the ways, in 2^-16 */
const volatile _Bool reorder_all = 0;           /* report every record that has seen something, not only reordering */
const volatile __u32 reorder_mask4 = 0xffffff00;
const volatile __u64 reorder_mask6 = 0xffffffffffff0000ULL; /* at most 48 bits */

/* Way i in stages 1 + i to 4 + i, the array in stages 7 to 10. */
#define BUCKET(x, s0, s1, s2, s3)                                                                     \
	REGISTER_BANKED(reorder_id##x, s0, __u64, 1);     /* {signature, size; of the array: time} */ \
	REGISTER_BANKED(reorder_prefix##x, s1, __u64, 1); /* {tag 16, prefix 48} */                   \
	REGISTER_BANKED(reorder_seq##x, s2, __u64, 1);    /* {tag 8, o 24, sequence number 32} */     \
	REGISTER_BANKED(reorder_count##x, s3, __u32, 1)   /* {upper bits of the signature 7, done 1, n 24} */
BUCKET(0, 1, 2, 3, 4);
BUCKET(1, 2, 3, 4, 5);
BUCKET(2, 3, 4, 5, 6);
BUCKET(3, 4, 5, 6, 7);
BUCKET(4, 5, 6, 7, 8);
BUCKET(_array, 7, 8, 9, 10);

#define COUNT_BITS 24
#define COUNT_MASK ((1U << COUNT_BITS) - 1)
#define COUNT_TAG 0xfe000000U
#define FULL (15U << (COUNT_BITS - 4)) /* bits of an n that is near its end: 2^20 packets are left, to be granted a second pass */
#define FRESH (1U << 30) /* after a SYN's number: nothing that follows is below this */
#define DONE (1U << COUNT_BITS) /* of a count: R out-of-order packets were seen, which is stronger than any n */
#define PREFIX_BITS 48

/* A record that was replaced. */
struct reorder_report {
	__u64 prefix; /* IPv4 in 32 bits, or the first 48 bits of IPv6, whose first 16 are not all 0 */
	__u32 signature;
	__u32 n;
	__u32 o;
	__u32 bank; /* of the window it belongs to */
};

RING(reorder_reports, 1 << 20);
COUNTERS(reorder_counts, REORDER_COUNTS);

const enum reorder_counter *unused_counter __attribute__((unused));
const enum reorder_method_kind *unused_method __attribute__((unused));
const enum reorder_definition_kind *unused_definition __attribute__((unused));
const struct reorder_report *unused_report __attribute__((unused));

/* What a pass stores of its packet. */
struct flow {
	__u64 prefix;
	__u32 signature; /* never 0: an empty record's */
	__u32 start;     /* sequence number of the payload's first byte; number() */
	__u32 end;       /* ... after its last */
	__u16 segs;      /* with payload: 0 of a SYN without data */
	__u32 follows;   /* 0: it starts a connection, else 1 */
	__u32 index[WAYS]; /* locate_ways() */
	__u32 slot;      /* of the array's registers, in the packet's bank */
};

static __always_inline __u64 prefix_of(const struct phv *phv)
{
	__u64 high;

	if (phv->family == 4)
		return bpf_ntohl(phv->src[3]) & reorder_mask4;
	high = (__u64)bpf_ntohl(phv->src[0]) << 32 | bpf_ntohl(phv->src[1]);
	return (high & reorder_mask6) >> 16;
}

/* The twin's field lists: the masked source alone for a bucket, the whole flow for a signature. */
static __always_inline void prefix_fields(struct hash_input *in, const struct flow *f)
{
#pragma unroll
	for (int i = 0; i < HASH_WORDS; i++)
		in->w[i] = 0;
	in->w[2] = bpf_htonl((__u32)(f->prefix >> 32));
	in->w[3] = bpf_htonl((__u32)f->prefix);
}

static __always_inline __u32 locate_crc(struct flow *f, const struct phv *phv)
{
	struct hash_input in;

	hash_fields(&in, phv, 0, 0);
	f->signature = hash_crc32(&in, 0);
	prefix_fields(&in, f);
	return hash_crc32(&in, 3);
}

#define MULTIPLIER 0xd6e8feb86659fd93ULL /* that of hash_mix() */

/* The upper half of a hash of 64 bits and 32 more. Two multiplications, a third of hash_flow(): word is mapped by a
 * bijection, the other addend is small, and the upper half of a product depends on all bits below. */
static __always_inline __u32 hash_upper(__u64 word, __u32 more)
{
	word = (word ^ hash_seed) * MULTIPLIER;
	word ^= word >> 32;
	return ((word + more) * MULTIPLIER) >> 32;
}

static __always_inline __u32 locate_fast(struct flow *f, const struct phv *phv)
{
	if (likely(phv->family == 4))
		f->signature = hash_upper((__u64)phv->src[3] << 32 | phv->dst[3], (__u32)phv->dport << 16 | phv->sport);
	else
		f->signature = hash_flow6(phv, SALT);
	return hash_upper(f->prefix, 0);
}

/* The indices in the ways, which sampling does not use. */
static __always_inline void locate_ways(struct flow *f)
{
	struct hash_input in;
	__u64 h;

	if (hash_crc) {
		prefix_fields(&in, f);
		f->index[0] = hash_crc32(&in, 1);
		f->index[1] = hash_crc32(&in, 2);
		f->index[2] = f->index[3] = f->index[4] = f->index[0]; /* not used: there are two polynomials */
		return;
	}
	h = hash_mix(f->prefix ^ hash_seed);
	f->index[0] = h;
	h = hash_mix(h + 0x632be59bd9b4e019ULL);
	f->index[1] = h;
	f->index[2] = h >> 32;
	h = hash_mix(h + 0x632be59bd9b4e019ULL);
	f->index[3] = h;
	f->index[4] = h >> 32;
}

#define SCALE(hash, entries) (((__u64)(hash) * (entries)) >> 32)

/* The element of a way's register. */
#define reg_way(name, i) reg_bank(name##i, phv, SCALE(f->index[i], reorder_id##i##_entries))

static __always_inline void locate(struct flow *f, const struct phv *phv)
{
	__u32 entries = reorder_id_array_entries, array;

	f->prefix = prefix_of(phv);
	array = hash_crc ? locate_crc(f, phv) : locate_fast(f, phv);
	f->slot = phv->bank * entries + SCALE(array, entries);
	f->signature += f->signature == 0;
}

/* For packets that get a record; most find another flow's. A SYN without data stores numbers after which no packet of its
 * connection is out of order, and which none repeats. */
static __always_inline void number(struct flow *f, const struct phv *phv)
{
	__u32 syn = phv->tcp_flags >> 1 & 1;

	f->follows = !syn;
	f->start = phv->seq + syn;
	f->end = f->start + phv->payload;
	f->segs = phv->segs;
	if (unlikely(!phv->payload)) {
		f->start--;
		f->end += FRESH;
		f->segs = 0;
	}
}

/* The number to store, and whether this packet is out of order after the stored one. */
static __always_inline __u32 kept(const struct flow *f)
{
	return reorder_definition == BEHIND_EXPECTED ? f->end : f->start;
}

/* The difference's sign, and never for the start of a connection: without a branch, since this is inside a read-modify-write. */
static __always_inline __u32 out_of_order(const struct flow *f, __u32 old)
{
	__u32 below = reorder_definition == BEHIND_EXPECTED ? old - f->start : f->start - old;

	return below >> 31 & f->follows;
}

static __always_inline void compare(__u64 *word, const struct flow *f, __u32 *add, struct reorder_counts_t *count)
{
	__u64 old = reg_load(word);
	__u32 next = kept(f), mine = next, seen = old >> 32;
	__u32 out = out_of_order(f, old);

	if (reorder_definition == BELOW_LARGEST && out)
		next = old;
	reg_store(word, (__u64)(seen + out) << 32 | next);
	if (seen >> COUNT_BITS != (f->signature & 0xff)) {
		count->c[REORDER_TORN]++;
		return;
	}
	if (unlikely((__u32)old == mine))
		count->c[REORDER_REPEATED]++;
	if (!out)
		return;
	count->c[REORDER_OUT]++;
	if (((seen + 1) & COUNT_MASK) == reorder_enough)
		*add |= DONE;
}

/* Is this record's reordering worth a second pass (array), or a report? */
static __always_inline int worth(__u32 n, __u32 o, int way)
{
	if (way)
		return (__u64)o << 16 > (__u64)n * reorder_share;
	return o >= reorder_enough;
}

/* The words of a replaced record. */
struct evicted {
	__u64 id;
	__u64 prefix;
	__u32 o;
	__u32 n;
};

static __always_inline void report(const struct phv *phv, const struct evicted *e, int way,
				   struct reorder_counts_t *count)
{
	__u32 n = e->n & COUNT_MASK, o = e->o & COUNT_MASK, signature = e->id >> 32, tag = signature & 0xff;
	struct reorder_report r;

	if (!signature || !n || (!reorder_all && !worth(n, o, way)))
		return;
	if (e->prefix >> PREFIX_BITS != (signature & 0xffff) || e->o >> COUNT_BITS != tag ||
	    (e->n & ~COUNT_MASK) != ((signature & COUNT_TAG) | (o >= reorder_enough ? DONE : 0))) {
		count->c[REORDER_TORN]++;
		return;
	}
	r = (struct reorder_report){.prefix = e->prefix & ((1ULL << PREFIX_BITS) - 1), .signature = signature, .n = n, .o = o,
				    .bank = phv->bank};
	if (ring_send(reorder_reports, &r))
		count->c[REORDER_REPORTS]++;
	else
		count->c[REORDER_REPORTS_LOST]++;
	asm volatile("" ::: "memory"); /* both paths are one again: a copy of what follows for each would depend on the ring */
}

/* Stages 2 to 4 of a record being written: the old content is reported. */
#define WRITE_PREFIX(x)                                                                               \
	do {                                                                                          \
		__u64 *word_ = reg_at(reorder_prefix##x, slot);                               \
		if (word_) {                                                                          \
			e.prefix = reg_load(word_);                                                   \
			reg_store(word_, (__u64)(f->signature & 0xffff) << PREFIX_BITS | f->prefix);  \
		}                                                                                     \
	} while (0)
#define WRITE_REST(x)                                                                                 \
	do {                                                                                          \
		__u64 *seq_ = reg_at(reorder_seq##x, slot);                                   \
		__u32 *count_;                                                                        \
		if (seq_) {                                                                           \
			e.o = reg_load(seq_) >> 32;                                                   \
			reg_store(seq_, (__u64)f->signature << (32 + COUNT_BITS) | kept(f));                            \
		}                                                                                     \
		count_ = reg_at(reorder_count##x, slot);                                      \
		if (count_) {                                                                         \
			e.n = reg_load(count_);                                                       \
			reg_store(count_, f->signature & COUNT_TAG);                                                 \
		}                                                                                     \
	} while (0)

/* Fourth stage of the flow's own record. Returns whether it must be written again before n overflows into the bits above: by a packet that counts. */
static __always_inline int observe(__u32 *word, const struct flow *f, __u32 add, struct reorder_counts_t *count)
{
	__u32 old = reg_add(word, add);

	count->c[REORDER_COMPARED] += f->segs;
	if (unlikely((old ^ f->signature) & COUNT_TAG))
		count->c[REORDER_TORN]++;
	return f->segs && (old & FULL) == FULL;
}

/* ---- the ways ---- */

/* What the ways found for a packet. */
struct ways {
	__u32 held;      /* the way that holds the flow; WAYS: none */
	__u32 way;       /* where the smallest record is */
	__u32 size;      /* ... and its size */
	__u32 monitored; /* a way holds the prefix */
	__u32 add;       /* what the record's count grows by */
	__u32 full;      /* ... to near its end */
};

#define LOOK(i)                                                                                       \
	do {                                                                                          \
		if (i < reorder_ways && w->held == WAYS) {                                            \
			__u64 *word_ = reg_way(reorder_id, i), old_; \
			if (word_) {                                                                  \
				old_ = reg_load(word_);                                               \
				if (old_ >> 32 == f->signature) {                                     \
					reg_add(word_, f->segs != 0);                                 \
					w->held = i;                                                  \
				} else if ((__u32)old_ < w->size) {                                   \
					w->size = old_;                                               \
					w->way = i;                                                   \
				}                                                                     \
			}                                                                             \
		}                                                                                     \
	} while (0)
#define PREFIX(i)                                                                                     \
	do {                                                                                          \
		if (i < reorder_ways && w->held == WAYS && reorder_method == METHOD_HYBRID) {         \
			__u64 *word_ = reg_way(reorder_prefix, i); \
			if (word_) {                                                                  \
				__u64 old_ = reg_load(word_);                                         \
				w->monitored |= old_ && (old_ & ((1ULL << PREFIX_BITS) - 1)) == f->prefix; \
			}                                                                             \
		}                                                                                     \
	} while (0)
#define NUMBER(i)                                                                                     \
	do {                                                                                          \
		if (i < reorder_ways && w->held == i) {                                               \
			__u64 *word_ = reg_way(reorder_seq, i); \
			if (word_)                                                                    \
				compare(word_, f, &w->add, count);                                    \
		}                                                                                     \
	} while (0)
#define OBSERVE(i)                                                                                    \
	do {                                                                                          \
		if (i < reorder_ways && w->held == i) {                                               \
			__u32 *word_ = reg_way(reorder_count, i); \
			if (word_)                                                                    \
				w->full |= observe(word_, f, w->add, count);                          \
		}                                                                                     \
	} while (0)

/* First pass through the ways, in the order of stages. */
static __always_inline void look(struct phv *phv, struct flow *f, struct ways *w, struct reorder_counts_t *count)
{
	number(f, phv);
	locate_ways(f);
	w->held = WAYS;
	w->way = 0;
	w->size = ~0U;
	w->monitored = 0;
	w->add = f->segs;
	w->full = 0;
	LOOK(0);
	PREFIX(0);
	LOOK(1);
	NUMBER(0);
	PREFIX(1);
	LOOK(2);
	OBSERVE(0);
	NUMBER(1);
	PREFIX(2);
	LOOK(3);
	OBSERVE(1);
	NUMBER(2);
	PREFIX(3);
	LOOK(4);
	OBSERVE(2);
	NUMBER(3);
	PREFIX(4);
	OBSERVE(3);
	NUMBER(4);
	OBSERVE(4);
}

/* Smallest y with 2^y >= x. */
static __always_inline __u32 log2_up(__u32 x)
{
	return x <= 1 ? 0 : bins_log2(x - 1) + 1;
}

/* Does this packet's flow take the smallest record? */
static __always_inline int admit(struct phv *phv, const struct ways *w, __u64 *value)
{
	__u32 y = log2_up(w->size);

	*value = 1ULL << y;
	return y == 0 || coin_flip(phv) >> (32 - y) == 0;
}

#define TAKE(i)                                                                                       \
	do {                                                                                          \
		if (i < reorder_ways && way == i) {                                                   \
			__u32 slot = phv->bank * reorder_id##i##_entries + SCALE(f->index[i], reorder_id##i##_entries); \
			__u64 *word_ = reg_at(reorder_id##i, slot);                                   \
			if (word_)                                                                    \
				e.id = reg_swap(word_, (__u64)f->signature << 32 | (__u32)value);     \
			WRITE_PREFIX(i);                                                              \
			WRITE_REST(i);                                                                \
		}                                                                                     \
	} while (0)

/* Second pass: the way that the first one chose. */
static __always_inline void take(const struct phv *phv, struct flow *f, __u32 way, __u64 value,
				 struct reorder_counts_t *count)
{
	struct evicted e = {};

	number(f, phv);
	locate_ways(f);
	count->c[REORDER_ADMITTED]++;
	TAKE(0);
	TAKE(1);
	TAKE(2);
	TAKE(3);
	TAKE(4);
	report(phv, &e, 1, count);
}

/* ---- the array ---- */

enum fate { FATE_NONE, FATE_OWN, FATE_WRITTEN, FATE_REFUSED };

/* First stage: is the record the flow's own, may it be overwritten, or neither? */
static __always_inline int enter(struct phv *phv, struct flow *f, __u64 *old)
{
	__u64 *word = reg_at(reorder_id_array, f->slot), mine;
	__u32 now = clock_now(phv) >> TICK;

	if (!word)
		return FATE_NONE;
	mine = (__u64)f->signature << 32 | now;
	*old = reg_load(word);
	if (*old >> 32 != f->signature && now - (__u32)*old + EARLY <= reorder_stale + EARLY)
		return FATE_REFUSED;
	reg_store(word, mine);
	return *old >> 32 == f->signature ? FATE_OWN : FATE_WRITTEN;
}

/* ... for a flow that must not be admitted: its time is updated if the record is its own. Most SYNs find another's, and need
 * neither clock nor counters for that. */
static __always_inline int enter_own(struct phv *phv, struct flow *f)
{
	__u64 *word = reg_at(reorder_id_array, f->slot);

	if (!word)
		return FATE_NONE;
	if (reg_load(word) >> 32 != f->signature)
		return FATE_REFUSED;
	reg_store(word, (__u64)f->signature << 32 | (__u32)(clock_now(phv) >> TICK));
	return FATE_OWN;
}

/* The flow's own record. Returns whether it must be written again. */
static __always_inline int follow(const struct phv *phv, struct flow *f, struct reorder_counts_t *count)
{
	__u64 *seq = reg_at(reorder_seq_array, f->slot);
	__u32 *n, add;

	number(f, phv);
	add = f->segs;
	if (seq)
		compare(seq, f, &add, count);
	n = reg_at(reorder_count_array, f->slot);
	return n && observe(n, f, add, count);
}

static __always_inline void write(const struct phv *phv, struct flow *f, __u64 id, struct reorder_counts_t *count)
{
	struct evicted e = {.id = id};
	__u32 slot = f->slot;

	number(f, phv);
	count->c[REORDER_ADMITTED]++;
	WRITE_PREFIX(_array);
	WRITE_REST(_array);
	report(phv, &e, 0, count);
}

/* Another flow's record: has it been observed long enough? One that is done has a count above any C. */
static __always_inline int expired(const struct flow *f)
{
	__u32 *n = reg_at(reorder_count_array, f->slot);

	return n && (reg_load(n) & (COUNT_MASK | DONE)) > reorder_most;
}

/* The bucket is to be written by a second pass. */
static __always_inline int wants_array(struct phv *phv)
{
	phv->carry[0] = ARRAY;
	phv->carry[1] = 0;
	return 1;
}

/* First pass through the array. closed: no new flow. Returns whether the packet requests the bucket by a second pass. */
static __always_inline int sample(struct phv *phv, struct flow *f, int closed, struct reorder_counts_t *count)
{
	__u64 old = 0;

	switch (closed ? enter_own(phv, f) : enter(phv, f, &old)) {
	case FATE_OWN:
		if (likely(!follow(phv, f, count)))
			return 0;
		break;
	case FATE_REFUSED:
		if (closed || !expired(f))
			return 0;
		break;
	case FATE_WRITTEN:
		write(phv, f, old, count);
		return 0;
	default:
		return 0;
	}
	return wants_array(phv);
}

/* Second pass: takes the bucket, whatever it contains. */
static __always_inline void seize(struct phv *phv, struct flow *f, struct reorder_counts_t *count)
{
	__u64 *word = reg_at(reorder_id_array, f->slot), old;

	if (!word)
		return;
	old = reg_swap(word, (__u64)f->signature << 32 | (__u32)(clock_now(phv) >> TICK));
	write(phv, f, old, count);
}

/* A flow that moves to a way releases its bucket: the bucket would miss the way's packets, and count that as a gap later. */
static __always_inline void leave(struct phv *phv, struct flow *f, struct reorder_counts_t *count)
{
	__u64 *word = reg_at(reorder_id_array, f->slot);
	struct evicted e = {};
	__u32 *n;

	if (!word)
		return;
	e.id = reg_load(word);
	if (e.id >> 32 != f->signature || reg_cas(word, e.id, 0) != e.id)
		return;
	word = reg_at(reorder_prefix_array, f->slot);
	if (word)
		e.prefix = reg_load(word);
	word = reg_at(reorder_seq_array, f->slot);
	if (word)
		e.o = reg_load(word) >> 32;
	n = reg_at(reorder_count_array, f->slot);
	if (n)
		e.n = reg_swap(n, 0);
	report(phv, &e, 0, count);
}

/* ---- both ---- */

static __always_inline void second(struct phv *phv, struct flow *f, struct reorder_counts_t *count)
{
	__u32 way = phv->carry[0];

	count->c[REORDER_SECOND]++;
	if (way == ARRAY) {
		if (reorder_method != METHOD_PRECISION)
			seize(phv, f, count);
		return;
	}
	if (reorder_method == METHOD_SAMPLING)
		return;
	take(phv, f, way, phv->carry[1], count);
	if (reorder_method == METHOD_HYBRID)
		leave(phv, f, count);
}

/* A way's record close to its maximum is written again. Its size is the minimum that corresponds to so many packets. */
static __always_inline int renew(struct phv *phv, const struct ways *w)
{
	phv->carry[0] = w->held;
	phv->carry[1] = 1U << COUNT_BITS;
	return w->full;
}

static __always_inline int first(struct phv *phv, struct flow *f, struct reorder_counts_t *count)
{
	struct ways w;
	__u64 value = 0;
	int moves;

	if (reorder_method == METHOD_SAMPLING)
		return sample(phv, f, !phv->payload, count);
	look(phv, f, &w, count);
	if (w.held < WAYS)
		return renew(phv, &w);
	moves = phv->payload && admit(phv, &w, &value);
	if (moves) {
		phv->carry[0] = w.way;
		phv->carry[1] = value;
	}
	if (reorder_method == METHOD_PRECISION)
		return moves;
	return sample(phv, f, moves || w.monitored || !phv->payload, count) || moves;
}

/* With payload, or the start of a connection. */
static __always_inline int matters(const struct phv *phv)
{
	return (phv->valid & (PHV_IP | PHV_TCP | PHV_FRAGMENT)) == (PHV_IP | PHV_TCP) &&
	       (phv->payload || phv->tcp_flags & TCP_SYN);
}

/* A SYN without data in its first pass, and no ways: it counts for nothing unless the record is its flow's. */
static __always_inline int begins(struct phv *phv)
{
	struct reorder_counts_t *count;
	struct flow f;

	locate(&f, phv);
	if (enter_own(phv, &f) != FATE_OWN)
		return 0;
	count = counters_of(reorder_counts, phv);
	if (!count || likely(!follow(phv, &f, count)))
		return 0;
	count->c[REORDER_WANTED]++;
	return wants_array(phv);
}

ALGORITHM_RECIRC(reorder)
{
	struct reorder_counts_t *count;
	struct flow f;
	int again;

	if (!matters(phv))
		return 0;
	if (reorder_method == METHOD_SAMPLING && !phv->payload && phv->segs == 1 && !second_pass(phv))
		return begins(phv);
	count = counters_of(reorder_counts, phv);
	if (!count)
		return 0;
	locate(&f, phv);
	if (second_pass(phv)) {
		second(phv, &f, count);
		return 0;
	}
	count->c[REORDER_PACKETS] += phv->payload ? phv->segs : 0;
	if (unlikely(phv->segs > 1))
		count->c[REORDER_AGGREGATES]++;
	again = first(phv, &f, count);
	if (again)
		count->c[REORDER_WANTED]++;
	return again;
}
