// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Programs at trace points: what they may look at of the kernel's memory, and what not. */
#include "program.h"

#include <bpf/bpf_core_read.h>

REGISTER(flows, 0, __u32, ENTRIES);

#define KERNEL __attribute__((preserve_access_index))

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net {
	__u64 net_cookie;
	__u32 hash_mix;
} KERNEL;

struct sock_common {
	possible_net_t skc_net;
	__u32 skc_hash;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
} KERNEL;

struct net_device {
	int ifindex;
	unsigned long state;
	possible_net_t nd_net;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
	__s64 tstamp;
	char cb[48];
	unsigned int len, data_len;
	int skb_iif;
	__u16 queue_mapping, vlan_proto, vlan_tci;
	__u32 mark, hash;
	unsigned int end;
	unsigned char *head, *data;
} KERNEL;

struct skb_shared_info {
	unsigned short gso_size, gso_segs;
	unsigned int gso_type;
} KERNEL;

struct qdisc_skb_cb {
	unsigned int pkt_len;
	unsigned char data[20];
} KERNEL;

#define PROGRAM_TP(name)                                                                              \
	static __always_inline void name##_body(const struct sk_buff *skb, const struct net_device *dev, struct phv *phv); \
	SEC("tp_btf/net_dev_start_xmit") int name(__u64 *ctx)                                         \
	{                                                                                             \
		struct phv *phv = phv_get();                                                          \
		if (phv)                                                                              \
			name##_body((void *)ctx[0], (void *)ctx[1], phv);                             \
		return 0;                                                                             \
	}                                                                                             \
	static __always_inline void name##_body(const struct sk_buff *skb, const struct net_device *dev, struct phv *phv)

static __always_inline void touch(__u32 with)
{
	__u32 *f = reg_at(flows, with & (ENTRIES - 1));

	if (f)
		reg_add(f, 1);
}

PROGRAM_TP(fields_of_the_packet)
{
	touch(skb->len + skb->data_len + skb->mark + skb->queue_mapping + skb->vlan_proto + skb->vlan_tci + skb->tstamp);
}

PROGRAM_TP(where_it_leaves)
{
	touch(dev->ifindex + skb->dev->ifindex + dev->nd_net.net->net_cookie);
}

PROGRAM_TP(bytes_of_it)
{
	__u32 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), skb->data + 26);
	touch(word);
}

PROGRAM_TP(bytes_where_a_field_says)
{
	__u32 word = 0;
	__u8 at = 0;

	if (!bpf_probe_read_kernel(&at, 1, skb->data))
		bpf_probe_read_kernel(&word, sizeof(word), skb->data + (at & 63));
	touch(word);
}

PROGRAM_TP(what_it_carries)
{
	const struct qdisc_skb_cb *cb = (const void *)skb->cb;
	__u32 words[3] = {}, length = 0;

	bpf_probe_read_kernel(words, sizeof(words), &cb->data[8]);
	bpf_probe_read_kernel(&length, sizeof(length), &cb->pkt_len);
	touch(words[0] + words[2] + length);
}

PROGRAM_TP(segments_of_it)
{
	const struct skb_shared_info *shared = (const void *)(skb->head + skb->end);
	__u16 size = 0, segments = 0;

	bpf_probe_read_kernel(&size, sizeof(size), &shared->gso_size);
	bpf_probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	touch(size * segments);
}

/* A failing copy leaves zero: looking at the result is not needed. */
PROGRAM_TP(not_looked_at)
{
	__u32 word;

	bpf_probe_read_kernel(&word, sizeof(word), skb->data);
	touch(word);
}

PROGRAM_TP(a_field_of_no_list)
{
	touch(skb->hash); /* want: 1 unlisted - */
}

PROGRAM_TP(state_of_the_device)
{
	touch(dev->state); /* want: 1 unlisted - */
}

PROGRAM_TP(something_of_the_namespace)
{
	touch(dev->nd_net.net->hash_mix); /* want: 1 unlisted - */
}

PROGRAM_TP(without_a_name)
{
	touch(*(const volatile __u32 *)((const void *)skb + 40)); /* want: 1 unlisted - */
}

PROGRAM_TP(words_of_the_queue)
{
	const struct qdisc_skb_cb *cb = (const void *)skb->cb;
	__u32 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), &cb->data[0]); /* want: 1 unlisted - */
	touch(word);
}

PROGRAM_TP(more_than_it_carries)
{
	const struct qdisc_skb_cb *cb = (const void *)skb->cb;
	__u32 words[4] = {};

	bpf_probe_read_kernel(words, sizeof(words), &cb->data[8]); /* want: 1 unlisted - */
	touch(words[3]);
}

PROGRAM_TP(the_buffer_itself)
{
	__u32 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), skb); /* want: 1 unlisted - */
	touch(word);
}

PROGRAM_TP(headroom)
{
	__u32 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), skb->head); /* want: 1 unlisted - */
	touch(word);
}

PROGRAM_TP(beside_the_segments)
{
	const struct skb_shared_info *shared = (const void *)(skb->head + skb->end);
	__u32 type = 0;

	bpf_probe_read_kernel(&type, sizeof(type), &shared->gso_type); /* want: 1 unlisted - */
	touch(type);
}

PROGRAM_TP(an_address_from_elsewhere)
{
	__u32 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (void *)phv->ep_src); /* want: 1 unlisted - */
	touch(word);
}

PROGRAM_TP(an_address_out_of_the_packet)
{
	__u64 address = 0;
	__u32 word = 0;

	bpf_probe_read_kernel(&address, sizeof(address), skb->data);
	bpf_probe_read_kernel(&word, sizeof(word), (void *)address); /* want: 1 unlisted - */
	touch(word);
}

/* At this trace point the second argument is a place in the kernel's code. */
SEC("tp_btf/kfree_skb") int where_it_was_freed(__u64 *ctx)
{
	touch(ctx[1]); /* want: 1 unlisted - */
	return 0;
}

SEC("tp_btf/kfree_skb") int what_was_freed(__u64 *ctx)
{
	const struct sk_buff *skb = (const void *)ctx[0];

	touch(skb->len);
	return 0;
}

SEC("tp_btf/net_dev_queue") int another_trace_point(__u64 *ctx) /* want: 1 unlisted - */
{
	return 0;
}

SEC("tp_btf/net_dev_start_xmit") int answers(__u64 *ctx)
{
	const struct sk_buff *skb = (const void *)ctx[0];

	return skb->len; /* want: 1 unlisted - */
}

#define PROGRAM_DROP(name)                                                                            \
	static __always_inline void name##_body(const struct sk_buff *skb, __u64 reason, const struct sock *sk); \
	SEC("tp_btf/kfree_skb") int name(__u64 *ctx)                                                  \
	{                                                                                             \
		name##_body((void *)ctx[0], ctx[2], (void *)ctx[3]);                                  \
		return 0;                                                                             \
	}                                                                                             \
	static __always_inline void name##_body(const struct sk_buff *skb, __u64 reason, const struct sock *sk)

PROGRAM_DROP(why_it_is_dropped)
{
	touch(skb->skb_iif + reason + sk->__sk_common.skc_net.net->net_cookie);
}

PROGRAM_DROP(something_of_the_socket)
{
	touch(sk->__sk_common.skc_hash); /* want: 1 unlisted - */
}

SEC("tp_btf/kfree_skb") int who_drops_it(__u64 *ctx)
{
	touch(ctx[1]); /* want: 1 unlisted - */
	return 0;
}

SEC("tp_btf/net_dev_start_xmit") int an_argument_of_another_trace_point(__u64 *ctx)
{
	touch(ctx[2]); /* want: 1 unlisted - */
	return 0;
}
