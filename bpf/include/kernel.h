/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of the kernel's types that programs at trace points read; the loader relocates them for the running kernel. */
#pragma once

#include "base.h"

#include <bpf/bpf_core_read.h>

#define KERNEL __attribute__((preserve_access_index))

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net {
	__u64 net_cookie;
} KERNEL;

struct sock_common {
	possible_net_t skc_net;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
} KERNEL;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
	__u64 tstamp; /* on its way out: when it may leave (earliest departure time), by fq */
	char cb[48];
	unsigned int len, data_len;
	int skb_iif; /* the interface that it arrived at; 0: sent by this host */
	__u16 queue_mapping;
	__u16 vlan_proto;
	__u16 vlan_tci;
	__u32 mark;
	unsigned int end;
	unsigned char *head, *data;
} KERNEL;

struct skb_shared_info {
	unsigned short gso_size, gso_segs;
} KERNEL;

struct qdisc_skb_cb {
	unsigned int pkt_len;
	unsigned char data[20];
} KERNEL;

/* What a buffer's memory records of an aggregate; zeros for a single packet. */
struct gso {
	__u16 size, segs;
};

static __always_inline struct gso gso_of(const struct sk_buff *skb)
{
	const struct skb_shared_info *shared = (const void *)(skb->head + skb->end);
	struct gso gso = {};

	bpf_probe_read_kernel(&gso.size, sizeof(gso.size), &shared->gso_size);
	if (unlikely(gso.size))
		bpf_probe_read_kernel(&gso.segs, sizeof(gso.segs), &shared->gso_segs);
	return gso;
}
