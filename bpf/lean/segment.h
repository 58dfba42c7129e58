/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Input for order and repetition: a segment with data, its numbers, its positions, and whether it is a mirror's copy.
 *
 * A data packet is TCP with payload, no fragment, neither SYN nor RST. A mirror port that copies a packet on arrival and on
 * departure delivers two with the same numbers, the same length and the same IPv4 ID. A sender that repeats a
 * segment uses a new ID. So the flow's last packet is stored as 16 bits of digest and 16 bits of time: a packet equal to
 * it within 3 ms is a copy, and is only counted. IPv6 has no ID: a copy there equals the
 * last packet in the other fields.
 *
 * 128 flows' last packets suffice, since a copy follows immediately: another flow's packet in between (one of a few hundred in
 * 3 ms, over 128 entries) hides it, and a packet is taken for a copy by chance one time in 65,536.
 *
 * Many cores: a word is read and written whole; two copies at the same time on two cores may both count as first. */
#pragma once

#include "frame.h"

#define SEG_TICK 16      /* stored times of 16 bits count 2^16 ns and wrap at 4.29 s */
#define SEG_WINDOW 46    /* ticks: 3.01 ms */
#define SEG_EARLY 16     /* ticks by which another core's word may be younger than the packet */
#define SEG_SIGNED 0x10001 /* an empty record's signature is 0; a CRC's may be, once in 65,536 flows, and then finds a record too many */
#define SEG_FAR (1U << 26) /* bytes below the maximum from which on a number is of another connection */

/* stage 0: {digest 16, time 16} of a flow's last data packet */
REGISTER(lean_twin, 0, __u32, 128);

/* Is x below y, in the same connection? A number that is 64 MiB or more below is of another connection with the same
 * ports, or of another flow whose words were mixed into this record: one in 64 of those is not noticed. */
static __always_inline int seg_below(__u32 x, __u32 y)
{
	return y - x - 1 < SEG_FAR - 1;
}

/* The same, as a switch's stateful ALU decides it, which compares numbers and not differences modulo 2^32: what is late across the wrap is
 * not detected. With the switch's hashes a host does the same. */
static __always_inline int seg_below_number(__u32 x, __u32 y)
{
	return hash_crc ? x < y && y - x < SEG_FAR : seg_below(x, y);
}

/* Is a stored time at most so many ticks old? One slightly younger than now is, since another core wrote it; a switch has one
 * clock and no such case, and with its hashes neither has a host. */
static __always_inline __u32 seg_early(void)
{
	return hash_crc ? 0 : SEG_EARLY;
}

static __always_inline int seg_within(__u16 now, __u16 then, __u32 ticks, __u32 early)
{
	return (__u16)(now - then + early) <= ticks + early;
}

/* What a copy shares with its packet, in addition to flow and length. */
static __always_inline __u32 seg_id(const struct phv *phv)
{
	return phv_has(phv, PHV_IPID) ? phv->ipid : 0;
}

/* The twin's field lists: the flow, and the flow with numbers and ID (without the length, which a switch has to subtract first). */
static __always_inline __u32 seg_places_crc(struct segment *s, const struct phv *phv, __u32 *twin)
{
	struct hash_input in;

	hash_fields(&in, phv, 0, 0);
	s->way[0] = hash_crc32(&in, 0);
	s->way[1] = hash_crc32(&in, 1);
	*twin = s->way[1] >> 16;
	s->signature = hash_crc32(&in, 3);
	in.w[0] ^= bpf_htonl(seg_id(phv));
	in.w[9] = bpf_htonl(phv->seq);
	in.w[10] = bpf_htonl(phv->ack);
	return hash_crc32(&in, 3);
}

/* Positions of the flow, and a digest of the packet. */
static __always_inline __u32 seg_places(struct segment *s, const struct phv *phv, const struct lean_flow *f, __u32 *twin)
{
	__u64 mixed, content;

	if (hash_crc)
		return seg_places_crc(s, phv, twin);
	mixed = f->hash * 0x9e3779b97f4a7c15ULL;
	s->way[0] = mixed >> 32;
	s->way[1] = (mixed ^ f->hash) >> 32;
	*twin = f->hash >> 32;
	s->signature = f->hash | SEG_SIGNED;
	content = (__u64)phv->seq << 32 | (phv->ack ^ (phv->payload << 16 | seg_id(phv)));
	return hash_mix(f->hash ^ content * 0x9e3779b97f4a7c15ULL);
}

/* An index in a way: high bits of the hash for any number of entries; low bits of a CRC, as on a switch. */
#define SEG_SLOT(hash, name)                                                                          \
	(hash_crc ? (hash) & (name##_entries - 1) : (__u32)((__u64)(hash) * name##_entries >> 32))

static __always_inline int seg_has_data(const struct phv *phv)
{
	return phv_has(phv, PHV_TCP) && phv->payload && !(phv->valid & PHV_FRAGMENT) && !(phv->tcp_flags & (TCP_SYN | TCP_RST));
}

static __always_inline void segment_0(struct lean_flow *f, struct phv *phv)
{
	struct segment *s = &f->segment;
	__u32 digest, twin, old, *word;

	if (!seg_has_data(phv))
		return;
	digest = seg_places(s, phv, f, &twin);
	s->data = 1;
	s->start = phv->seq;
	s->end = phv->seq + phv->payload;
	s->time = clock_now(phv) >> SEG_TICK;
	s->luck = (hash_crc ? clock_now(phv) >> 8 : digest >> 16) & 15; /* a switch takes the clock's: one hash less */
	word = reg_at(lean_twin, twin & (lean_twin_entries - 1));
	if (!word)
		return;
	old = reg_load(word);
	reg_store(word, digest << 16 | s->time);
	s->copy = old >> 16 == (digest & 0xffff) && seg_within(s->time, old, SEG_WINDOW, seg_early());
}

/* The value of an event of this packet. */
static __always_inline __s32 seg_weight(const struct phv *phv)
{
	return lean_bytes ? phv->payload : phv->segs;
}

/* What a packet found in a way. */
enum seg_fate { FATE_OTHER, FATE_OWN, FATE_TAKEN };
