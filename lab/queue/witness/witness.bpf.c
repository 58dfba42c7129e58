//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sees what xdpmon does not look at: the queueing discipline's own trace points, and with them every start of transmission of one interface. */
#include "base.h"
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum witness_kind { WITNESS_ENQUEUE, WITNESS_DEQUEUE, WITNESS_START, WITNESS_KINDS };

struct sighting {
	__u64 time; /* ns */
	__u32 seq;  /* first four bytes of a datagram's payload */
	__u16 port; /* its source */
	__u8 kind;
	__u8 cpu; /* and WITNESS_IDLE where it interrupted the idle task */
};

#define WITNESS_IDLE 0x80

const enum witness_kind *unused_kind __attribute__((unused));
const struct sighting *unused_sighting __attribute__((unused));

const volatile __u64 witness_netns = 0; /* cookie */
const volatile __u32 witness_ifindex = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 26);
} witness_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WITNESS_KINDS);
	__type(key, __u32);
	__type(value, __u64);
} witness_lost SEC(".maps");

/* Datagrams of IPv4 alone. */
static __always_inline int see(const struct sk_buff *skb, __u32 kind)
{
	struct sighting s = {.kind = kind, .cpu = bpf_get_smp_processor_id()};
	const struct net_device *dev = skb->dev;
	__u8 head[46];
	__u64 *lost;

	if (dev->ifindex != witness_ifindex || dev->nd_net.net->net_cookie != witness_netns)
		return 0;
	s.time = bpf_ktime_get_ns();
	if (!bpf_get_current_pid_tgid())
		s.cpu |= WITNESS_IDLE;
	if (skb->len - skb->data_len < sizeof(head) || bpf_probe_read_kernel(head, sizeof(head), skb->data))
		return 0;
	if (head[12] != 0x08 || head[13] || head[14] != 0x45 || head[23] != 17)
		return 0;
	s.port = head[34] << 8 | head[35];
	s.seq = (__u32)head[42] << 24 | head[43] << 16 | head[44] << 8 | head[45];
	if (!bpf_ringbuf_output(&witness_ring, &s, sizeof(s), 0))
		return 0;
	lost = bpf_map_lookup_elem(&witness_lost, &kind);
	if (lost)
		__sync_fetch_and_add(lost, 1);
	return 0;
}

/* qdisc, txq, skb */
SEC("tp_btf/qdisc_enqueue") int witness_enqueue(__u64 *ctx)
{
	return see((const struct sk_buff *)ctx[2], WITNESS_ENQUEUE);
}

/* qdisc, txq, packets, skb: the head of a bulk, or nothing */
SEC("tp_btf/qdisc_dequeue") int witness_dequeue(__u64 *ctx)
{
	const struct sk_buff *skb = (const struct sk_buff *)ctx[3];

	return skb ? see(skb, WITNESS_DEQUEUE) : 0;
}

SEC("tp_btf/net_dev_start_xmit") int witness_start(__u64 *ctx)
{
	return see((const struct sk_buff *)ctx[0], WITNESS_START);
}
