//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets that the kernel drops, by interface and by its own reason (trace point kfree_skb).
 *
 * The trace point is global: it sees every drop of every namespace. The interface is that of the packet's buffer. A socket has
 * overwritten it by the time that it drops a packet: there it is the interface of arrival, in the socket's namespace. What has
 * neither (a packet without a device, a kernel whose trace point does not pass the socket) is counted in row 0.
 *
 * Two words a row and reason, shared by all cores: drops are rare, and an atomic addition costs less than a copy for each core. */
#include "base.h"
#include "register.h"
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define DROPS_REASONS 256 /* the last one: those of subsystems, which have numbers of their own */
#define DROPS_ROWS 2      /* of the default; the loader makes more */

/* Limits that userspace shares. */
enum drops_limit { DROPS_LIMIT_REASONS = DROPS_REASONS };

const enum drops_limit *unused_limit __attribute__((unused));

/* Whether the trace point's fourth argument is the receiving socket (Linux 6.11). */
const volatile __u8 drops_socket = 0;

struct drops_key {
	__u64 netns; /* cookie */
	__u32 ifindex;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct drops_key);
	__type(value, __u32); /* row */
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} drops_watched SEC(".maps") TAG("pisa:table");

REGISTER(drops_packets, 0, __u64, DROPS_ROWS * DROPS_REASONS);
REGISTER(drops_bytes, 1, __u64, DROPS_ROWS * DROPS_REASONS);

/* The row of a packet; negative: of an interface that is not watched. */
static __always_inline __s64 row_of(const struct sk_buff *skb, const struct sock *sk)
{
	const struct net_device *dev = skb->dev;
	struct drops_key key = {.netns = dev->nd_net.net->net_cookie, .ifindex = dev->ifindex};
	__u32 *row;

	if (!key.netns) {
		if (sk)
			key.netns = sk->__sk_common.skc_net.net->net_cookie;
		key.ifindex = skb->skb_iif;
		if (!key.netns || !key.ifindex)
			return 0;
	}
	row = bpf_map_lookup_elem(&drops_watched, &key);
	return row ? *row : -1;
}

/* skb, location, reason, receiving socket */
SEC("tp_btf/kfree_skb") int xdpmon_drops(__u64 *ctx)
{
	const struct sk_buff *skb = (const void *)ctx[0];
	__s64 row = row_of(skb, drops_socket ? (const void *)ctx[3] : 0);
	__u64 reason = (__u32)ctx[2], segments, *word;
	__u32 index;

	if (row < 0)
		return 0;
	if (reason >= DROPS_REASONS)
		reason = DROPS_REASONS - 1;
	index = (__u32)row * DROPS_REASONS + reason;
	segments = gso_of(skb).segs;
	word = reg_at(drops_packets, index);
	if (word)
		reg_add(word, segments ? segments : 1);
	word = reg_at(drops_bytes, index);
	if (word)
		reg_add(word, skb->len);
	return 0;
}
