/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The name in a DNS question, as 64 bits of hash (NEED_QNAME).
 *
 * Only the first question counts, since senders send only one. Its name is labels of 1 to 63 bytes, each after its length, 255
 * bytes with the empty label that ends it (RFC 1035, section 3.1); upper and lower case are the same name (RFC 4343). A name
 * that does not end within the message, or is compressed, is not stored in the vector: before the
 * first question there is nothing that it could refer to. A helper copies the bytes, so that their position in the buffer does not matter.
 *
 * Until then phv->qname is the offset of UDP's payload. The verifier has no bounds for bytes read from there, so that it processes the loop
 * over the name once, and not once for each path through the parser. */
#pragma once

#include "phv.h"
#include "hash.h"
#include "parse.h"

#define QNAME_BYTES 255
#define QNAME_WORDS 32
#define QNAME_LABELS 128
#define QNAME_COUNTS 8 /* bytes of the message's header in front of the name that hold how many questions there are */

/* A DNS message from its fifth byte on, so that the name starts at a word. */
struct qname {
	__be16 questions, answers, authorities, more;
	union {
		__u8 byte[8 * QNAME_WORDS];
		__u64 word[QNAME_WORDS];
	};
};

/* The maximum length of a name in a message at offset at of a packet of whole bytes; 0 if there cannot be one. */
static __always_inline __u32 qname_room(const struct phv *phv, __u32 at, __u32 whole)
{
	__u32 bytes = phv->payload;

	if (!requested(phv, NEED_QNAME) || !is_port(phv, PORT_DNS) || at > whole)
		return 0;
	if (bytes > whole - at)
		bytes = whole - at;
	if (bytes <= DNS_HEADER)
		return 0;
	bytes -= DNS_HEADER;
	return bytes < QNAME_BYTES ? bytes : QNAME_BYTES;
}

/* How much of the message to copy for bytes of its name, from the counts on; 0: nothing. Two separate bounds: before 6.8
 * the verifier derives nothing from "not zero". */
static __always_inline __u64 qname_fetch(__u32 bytes)
{
	__u64 size = (__u64)bytes + QNAME_COUNTS;

	opaque(size);
	if (size > QNAME_COUNTS + QNAME_BYTES)
		return 0;
	opaque(size);
	return size > QNAME_COUNTS ? size : 0;
}

/* Bytes of the name at the start of a buffer with bytes of the message; 0 if it is invalid. */
static __always_inline __u32 qname_length(const struct qname *name, __u32 bytes, __u64 any)
{
	__u64 at = 0;

	for (int i = 0; i < QNAME_LABELS; i++) {
		__u8 label;

		forget(at, any); /* where labels lie makes no other path */
		if (at >= bytes || at >= QNAME_BYTES)
			return 0;
		label = name->byte[at];
		if (!label)
			return at + 1;
		if (label > 63)
			return 0;
		at += label + 1;
	}
	return 0;
}

/* Converts eight letters at a time to lower case; lengths, below 64, are no letters. */
static __always_inline __u64 qname_lower(__u64 w)
{
	__u64 low = w & 0x7f7f7f7f7f7f7f7fULL;
	__u64 from_a = low + 0x3f3f3f3f3f3f3f3fULL, behind_z = low + 0x2525252525252525ULL;

	return w | ((~w & (from_a ^ behind_z) & 0x8080808080808080ULL) >> 2);
}

static __always_inline __u64 qname_hash(const struct qname *name, __u32 length)
{
	__u64 h = hash_seed;

	for (__u32 i = 0; i < QNAME_WORDS; i++) {
		__u64 w = name->word[i];

		if (i * 8 >= length)
			break;
		if (length - i * 8 < 8) /* the last one */
			return hash_word(h, qname_lower(w & ((1ULL << (length - i * 8) * 8) - 1)));
		h = hash_word(h, qname_lower(w));
	}
	return h;
}

/* The name in a message of which the buffer contains bytes, followed by zeros. */
static __always_inline void qname_set(struct phv *phv, const struct qname *name, __u32 bytes)
{
	__u64 any = phv->needs;
	__u32 length;

	if (!name->questions)
		return;
	length = qname_length(name, bytes, any);
	forget(length, any); /* one state, wherever the name ends */
	if (!length || length > QNAME_BYTES)
		return;
	phv->qname = qname_hash(name, length);
	phv->valid |= PHV_QNAME;
}
