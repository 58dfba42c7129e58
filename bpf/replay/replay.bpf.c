//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The replay driver: BPF_PROG_TEST_RUN runs it `repeat` times in one system call; every run takes the next
 * frame from shared memory, makes it the packet, and tail-calls the same entry program that `attach` loads. */
#include "base.h"
#include "replay.h"
#include "phv.h"
#include "recirc.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct replay_frame {
	struct replay_meta meta;
	__u8 data[REPLAY_SNAP];
};

/* Frames are consecutive, 8-byte aligned and none across two buffers: a batch should be large, because the
 * kernel exchanges its XDP dispatcher before and after each (some milliseconds). */
#define BUFFERS 16
#define BUFFER_BYTES (1 << 20)

struct replay_buffer {
	__u8 bytes[BUFFER_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct replay_buffer);
	__uint(max_entries, BUFFERS);
	__uint(map_flags, BPF_F_MMAPABLE);
} replay_frames SEC(".maps") TAG("pisa:table");

/* A run interrupted by a signal is repeated by the library: frames before next have been replayed. */
struct replay_cursor_t {
	__u64 next;
	__u64 limit;
	__u32 buffer; /* where the next frame lies */
	__u32 offset;
	__u64 delay;  /* packets that go by before a second pass; 0: they are not held back */
	__u64 passed; /* packets so far */
	__u64 head;   /* second passes that have been started */
	__u64 tail;   /* ... and held back */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct replay_cursor_t);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} replay_cursor SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} replay_entry SEC(".maps");

/* Delayed second passes, with their vectors. */
struct replay_held_t {
	__u64 due; /* starts when so many packets have passed */
	struct phv phv;
};

#define HELD 1024 /* more than the longest delay: a packet asks once */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct replay_held_t);
	__uint(max_entries, HELD);
} replay_held SEC(".maps");

/* Stores the last packet's request. */
static __always_inline void hold(struct replay_cursor_t *cursor, struct phv *phv)
{
	__u32 slot = cursor->tail & (HELD - 1);
	struct replay_held_t *held = bpf_map_lookup_elem(&replay_held, &slot);

	if (!held || phv->pass < RECIRC_ASKED)
		return;
	held->due = cursor->passed + cursor->delay;
	held->phv = *phv;
	phv->pass = 0;
	cursor->tail++;
}

/* Starts the second pass that is due; returns if there is none. One of an earlier window is too late: its bank is
 * being read. */
static __always_inline void release(void *ctx, struct replay_cursor_t *cursor, struct phv *phv)
{
	__u32 slot = cursor->head & (HELD - 1);
	struct replay_held_t *held = bpf_map_lookup_elem(&replay_held, &slot);
	__u8 bank = phv->bank;

	if (!held || cursor->head == cursor->tail || held->due > cursor->passed)
		return;
	cursor->head++;
	if (held->phv.bank != bank)
		return;
	*phv = held->phv;
	slot = phv->pass - RECIRC_ASKED;
	phv->pass = 1;
	phv->next = slot + 1;
	phv->end = phv->next;
	bpf_tail_call(ctx, &recirc_xdp, slot);
}

/* The next frame, and the cursor after it. */
static __always_inline struct replay_frame *next_frame(struct replay_cursor_t *cursor)
{
	__u32 slot = cursor->buffer & (BUFFERS - 1), offset = cursor->offset, length;
	struct replay_buffer *buffer = bpf_map_lookup_elem(&replay_frames, &slot);
	struct replay_frame *frame;

	if (!buffer || offset > BUFFER_BYTES - sizeof(*frame))
		return NULL;
	frame = (void *)buffer->bytes + offset;
	length = frame->meta.shape & REPLAY_CAPTURED;
	if (length < 14)
		length = 14;
	offset += (sizeof(frame->meta) + length + 7) & ~7U;
	if (offset > BUFFER_BYTES - sizeof(*frame)) {
		cursor->buffer++;
		offset = 0;
	}
	cursor->offset = offset;
	cursor->next++;
	return frame;
}

SEC("xdp.frags") int replay_xdp(struct xdp_md *ctx)
{
	struct replay_meta *meta;
	__u32 zero = 0, length;
	struct replay_frame *frame;
	struct replay_cursor_t *cursor;
	struct phv *phv = phv_get();

	cursor = bpf_map_lookup_elem(&replay_cursor, &zero);
	if (cursor && cursor->delay && phv) {
		hold(cursor, phv);
		release(ctx, cursor, phv);
	}
	if (!cursor || cursor->next >= cursor->limit)
		return XDP_PASS;
	frame = next_frame(cursor);
	meta = (void *)(long)ctx->data_meta; /* here: verifiers of 6.1 and 6.12 forget packet pointers over a tail call */
	if (!frame || (void *)(meta + 1) > (void *)(long)ctx->data)
		return XDP_ABORTED;
	*meta = frame->meta;
	length = frame->meta.shape & REPLAY_CAPTURED;
	opaque(length);
	if (length < 14)
		length = 14;
	if (length > REPLAY_SNAP)
		length = REPLAY_SNAP;
	if (bpf_xdp_adjust_tail(ctx, (int)length - (int)(ctx->data_end - ctx->data)))
		return XDP_ABORTED;
	if (bpf_xdp_store_bytes(ctx, 0, frame->data, length))
		return XDP_ABORTED;
	cursor->passed++;
	bpf_tail_call(ctx, &replay_entry, 0);
	return XDP_ABORTED;
}
