/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of the kernel's types that programs at trace points read; the loader relocates them for the running kernel. */
#pragma once

#define KERNEL __attribute__((preserve_access_index))

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net {
	__u64 net_cookie;
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
