// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Helpers and kernel functions that are not on the list: each is another way to remember a packet or to see one again. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);
REGISTER_PERCPU_BANKED(own, 1, __u32, ENTRIES);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} reports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__type(value, __u32);
	__uint(max_entries, 16);
} queue SEC(".maps") TAG("pisa:table");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENTRIES);
} targets SEC(".maps") TAG("pisa:table");

extern int bpf_dynptr_from_xdp(struct xdp_md *xdp, __u64 flags, struct bpf_dynptr *ptr) __ksym;
extern void *bpf_rdonly_cast(const void *obj, __u32 type) __ksym;
extern int bpf_iter_task_new(void *it, void *task, unsigned int flags) __ksym;

PROGRAM(element_of_another_core)
{
	__u32 key = index_a(phv), *mine = reg_bank(own, phv, index_a(phv)), *theirs;

	if (mine)
		reg_add(mine, 1);
	theirs = bpf_map_lookup_percpu_elem(&own, &key, 1); /* want: 2 second-access - */
	if (theirs)
		reg_add(theirs, 1);
}

PROGRAM(vector_of_another_core)
{
	__u32 zero = 0;
	struct phv *old = bpf_map_lookup_percpu_elem(&phv_scratch, &zero, 1); /* want: 2 second-access - */

	if (old && old->seq == phv->seq)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(reports_so_far)
{
	if (bpf_ringbuf_query(&reports, BPF_RB_PROD_POS) & 64) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(element_behind_a_dynptr)
{
	__u32 *a = reg_at(flows, index_a(phv)), *b;
	struct bpf_dynptr ptr;

	if (!a)
		return;
	bpf_dynptr_from_mem(a, sizeof(*a), 0, &ptr); /* want: 2 unfollowed - */
	b = bpf_dynptr_data(&ptr, 0, sizeof(*b));
	if (b)
		*b += 1;
}

PROGRAM(record_behind_a_dynptr)
{
	struct bpf_dynptr ptr;
	__u32 *old;

	bpf_ringbuf_reserve_dynptr(&reports, 64, 0, &ptr); /* want: 2 unfollowed - */
	old = bpf_dynptr_data(&ptr, 0, sizeof(*old));
	if (old && *old == phv->seq)
		phv->verdict = VERDICT_DROP;
	bpf_ringbuf_discard_dynptr(&ptr, 0);
}

PROGRAM(packet_behind_a_dynptr)
{
	struct bpf_dynptr ptr;

	bpf_dynptr_from_xdp(ctx, 0, &ptr); /* want: 1 unlisted - */
}

PROGRAM(cast_to_the_kernel)
{
	struct xdp_md *other = bpf_rdonly_cast(ctx, 1); /* want: 1 unlisted - */

	if (other->data == phv->seq)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(iterator_over_tasks)
{
	__u64 it[4];

	bpf_iter_task_new(it, 0, 0); /* want: 1 unlisted - */
}

PROGRAM(redirected)
{
	bpf_redirect(phv->ifindex, 0); /* want: 5 recirculation - */
}

PROGRAM_TC(cloned)
{
	bpf_clone_redirect(ctx, phv->ifindex, BPF_F_INGRESS); /* want: 5 recirculation - */
	return TC_NEXT;
}

PROGRAM_TC(redirected_to_a_neighbour)
{
	bpf_redirect_neigh(phv->ifindex, 0, 0, 0); /* want: 5 recirculation - */
	return TC_NEXT;
}

PROGRAM_TC(redirected_to_the_peer)
{
	bpf_redirect_peer(phv->ifindex, 0); /* want: 5 recirculation - */
	return TC_NEXT;
}

/* What lies in front of a packet was an earlier packet's. */
PROGRAM(headroom)
{
	__u32 *old;

	if (bpf_xdp_adjust_head(ctx, -64)) /* want: 1 flow-state - */
		return;
	old = (void *)(long)ctx->data;
	if ((void *)(old + 1) <= (void *)(long)ctx->data_end && *old == phv->seq)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(headroom_as_metadata)
{
	__u32 *old;

	if (bpf_xdp_adjust_meta(ctx, -32)) /* want: 1 flow-state - */
		return;
	old = (void *)(long)ctx->data_meta;
	if ((void *)(old + 1) <= (void *)(long)ctx->data && *old == phv->seq)
		phv->verdict = VERDICT_DROP;
}

PROGRAM(tailroom)
{
	bpf_xdp_adjust_tail(ctx, 64); /* want: 1 flow-state - */
}

PROGRAM_TC(headroom_of_a_buffer)
{
	bpf_skb_change_head(ctx, 64, 0); /* want: 1 flow-state - */
	return TC_NEXT;
}

PROGRAM_TC(room_inside_of_a_buffer)
{
	bpf_skb_adjust_room(ctx, 32, 0, 0); /* want: 1 flow-state - */
	return TC_NEXT;
}

PROGRAM(deleted)
{
	__u32 key = phv->seq;

	bpf_map_delete_elem(&targets, &key); /* want: 1 flow-state - */
}

PROGRAM(pushed)
{
	__u32 key = phv->seq;

	bpf_map_push_elem(&queue, &key, BPF_EXIST); /* want: 1 flow-state - */
}

PROGRAM(popped)
{
	__u32 head = 0;

	if (!bpf_map_pop_elem(&queue, &head) && head == phv->seq) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(socket_of_the_flow)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk = bpf_sk_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0); /* want: 1 flow-state - */

	if (sk)
		bpf_sk_release(sk);
}

PROGRAM(route_of_the_flow)
{
	struct bpf_fib_lookup fib = {};

	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) /* want: 1 flow-state - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM_TC(memory_of_the_kernel)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)phv->ep_src); /* want: 1 unlisted - */
	return word == phv->ep_dst ? TC_DROP : TC_NEXT;
}

PROGRAM_TC(unknown_to_the_list)
{
	return bpf_get_route_realm(ctx) == 7 ? TC_DROP : TC_NEXT; /* want: 1 unlisted - */
}

PROGRAM(printed)
{
	static const char format[] = "%d";

	bpf_trace_printk(format, sizeof(format), phv->seq); /* want: 1 unlisted - */
}

static long drained(struct bpf_dynptr *ptr, void *ctx)
{
	return 0;
}

PROGRAM(command_of_userspace)
{
	bpf_user_ringbuf_drain(&reports, drained, 0, 0); /* want: 1 flow-state - */
}

unsigned long long load_byte(void *skb, unsigned long long off) asm("llvm.bpf.load.byte");

PROGRAM_TC(classic_load)
{
	return load_byte(ctx, 12) == 8 ? TC_DROP : TC_NEXT; /* want: 1 unlisted - */
}
