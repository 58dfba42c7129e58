/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The packet header vector: the result of parsing, for every algorithm of the chain.
 *
 * It is one per-CPU element, written by the entry program for each packet and read by the tail-called
 * algorithms; no program runs twice on one CPU at a time (XDP and TC run with bottom halves off, a chain is
 * one run). Nothing in it outlives the packet. Go's form of this struct is generated from it: maps.PHV. */
#pragma once

#include "base.h"

enum phv_valid {
	PHV_IP = 1 << 0,         /* src, dst, family, proto, len */
	PHV_PORTS = 1 << 1,      /* sport, dport (TCP, UDP) */
	PHV_TCP = 1 << 2,        /* seq, ack, tcp_flags, payload, window */
	PHV_UDP = 1 << 3,        /* payload */
	PHV_ICMP = 1 << 4,       /* ICMP or ICMPv6 echo: icmp_type, sport = dport = identifier, seq = sequence */
	PHV_TSOPT = 1 << 5,      /* tsval, tsecr (only when asked for: NEED_TSOPT) */
	PHV_FRAGMENT = 1 << 6,   /* any fragment of a datagram */
	PHV_AGGREGATE = 1 << 7,  /* more than one segment on the wire (GSO, GRO): segs > 1 */
	PHV_VLAN = 1 << 8,       /* vlan */
	PHV_TUNNEL = 1 << 9,     /* the vector describes the inner packet (--decap) */
	PHV_APP_REQUEST = 1 << 10,  /* app_id: a DNS or NTP request (NEED_DNS, NEED_NTP) */
	PHV_APP_RESPONSE = 1 << 11, /* app_id: the response to the request with the same app_id */
	PHV_IPID = 1 << 12,      /* ipid: IPv4, not a fragment */
	PHV_EGRESS = 1 << 13,    /* seen leaving this host (TC egress) */
	PHV_QNAME = 1 << 14,     /* qname (only when asked for: NEED_QNAME) */
};

/* What an algorithm requests from the parser beyond the fixed headers; the loader ORs them together. */
enum phv_need {
	NEED_TSOPT = 1 << 0,
	NEED_DNS = 1 << 1,
	NEED_NTP = 1 << 2,
	/* 1 << 3: NEED_BEGIN */
	NEED_QNAME = 1 << 4,
};

enum tcp_flag { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16, TCP_URG = 32 };

struct phv {
	__u64 now;       /* ns; 0 until it is read: clock.h */
	__u64 ep_src;    /* 64 bits of (src, sport, proto); 0 until they are used: hash.h */
	__u64 ep_dst;    /* the same of (dst, dport) */
	__u32 src[4];    /* network order; IPv4 as ::ffff:a.b.c.d */
	__u32 dst[4];
	__u16 dport;     /* host order, 0 where there is none; both are written as one word: set_ports() */
	__u16 sport;
	__u16 valid;     /* enum phv_valid */
	__u16 vlan;      /* outermost VLAN identifier */
	__u8 family;     /* 4 or 6 */
	__u8 proto;      /* transport protocol, after extension headers */
	__u8 tcp_flags;
	__u8 icmp_type;
	__u32 seq;       /* host order */
	__u32 ack;
	__u32 len;       /* bytes on the wire: link header and all segments' IP bytes */
	__u32 payload;   /* transport payload bytes: by the IP header, none that were not on the wire */
	__u32 tsval;
	__u32 tsecr;
	__u64 app_id;    /* DNS: transaction id; NTP: the request's transmit timestamp */
	__u64 qname;     /* DNS: seeded hash of the name in the first question, in lower case: qname.h */
	__u16 ipid;
	__u16 segs;      /* segments, 1 unless PHV_AGGREGATE */
	__u32 ifindex;
	__u32 needs;     /* enum phv_need of this packet's chain */
	__u32 coin;      /* state of the seeded generator in a replay: coin.h */
	/* the chain's own words: chain.h */
	__u8 bank;       /* bank of accumulating arrays, fixed for the whole packet */
	__u8 next;       /* slot of the next algorithm */
	__u8 end;        /* first slot after the last algorithm */
	__u8 pass;       /* 0; 1 in the second pass of a recirculated packet, 2 after it: recirc.h */
	__u8 verdict;    /* enum verdict */
	/* what enforcers need: verdict.h */
	__u8 tos;        /* DS field and ECN of the outermost IP header; written with PHV_IP */
	__u16 l3;        /* offset of that header */
	__u32 mark;      /* skb->mark; 0 in XDP and in a replay */
	__u16 queue;     /* at the start of transmission: its transmit queue, numbered through the interfaces of the instance; else 0 */
	__u16 slice;     /* whose share of a link the packet takes: written by the algorithm that looks it up */
	__u64 carry[2];  /* what a recirculated packet carries to its second pass */
	/* the way through a host's queue: trace.h */
	__u64 enqueued;  /* at the start of transmission: ns, when the packet was enqueued; 0 if not known. now is its departure */
	__u32 flow;      /* directional flow hash, the same at TC egress and at the start of transmission; 0 elsewhere, and if not requested */
	__u32 steer;     /* what is to become of skb->mark, skb->priority or skb->tstamp: verdict.h */
	__u8 steering;   /* enum steering */
	__u16 window;    /* TCP: as in the header, not scaled; host order */
	__u64 begin;     /* UDP: hash of the payload's first bytes (only on request: NEED_BEGIN), 0 if there are fewer than eight */
};

/* Scratch: one element per CPU, no state between packets. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct phv);
	__uint(max_entries, 1);
} phv_scratch SEC(".maps") TAG("pisa:scratch") TAG("xdpmon:shared");

static __always_inline struct phv *phv_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&phv_scratch, &zero);
}

static __always_inline int phv_has(const struct phv *phv, __u16 bits)
{
	return (phv->valid & bits) == bits;
}

/* The last bit of enum phv_valid: seq is the sequence number of what looks like RTP (only on request). */
#define PHV_RTP (1 << 15)
#define NEED_RTP (1 << 5)

/* enqueued, flow and queue at the start of transmission, to which the loader then attaches: trace.h. */
#define NEED_QUEUE (1 << 6)

/* begin of UDP packets. */
#define NEED_BEGIN (1 << 3)

/* begin of TCP packets with SYN, which have no other use for it: window scale option (RFC 7323) plus 1; 0 on all other TCP packets, and without the option. */
#define NEED_SCALE (1 << 7)
