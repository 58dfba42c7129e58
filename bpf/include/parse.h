/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parser: one pass over the headers of a packet into the vector.
 *
 * Ethernet or L3-only; up to three VLAN tags; PPPoE session; MPLS to an IP payload; IPv4 with options and
 * fragments; IPv6 with at most EXT_HEADERS extension headers (AH and fragments among them); TCP, UDP, ICMP echo.
 * With parse_decaps one level of VXLAN, GENEVE, GRE, IPIP or 6in4 is followed and the inner headers become the
 * vector (len stays the length on the wire). Lengths are from the IP header, never from the captured length; a total
 * length of 0 (segmentation offload) falls back to the packet's own length, a jumbo payload option is read. A payload ends
 * with its packet, whatever the IP header claims: payload_bytes().
 *
 * Whatever stops parsing is returned as a reason and counted. The addresses of a packet whose transport could
 * not be parsed stay valid (PHV_IP without PHV_PORTS). */
#pragma once

#include "phv.h"
#include "hash.h"

enum parse_reason {
	PARSED = 0,
	PARSE_TRUNCATED,       /* a header ends after what was captured */
	PARSE_NOT_IP,          /* ARP, LLDP, ... */
	PARSE_BAD_IP,          /* version, header length or total length cannot be */
	PARSE_EXTENSION_CHAIN, /* more than EXT_HEADERS extension headers */
	PARSE_FRAGMENT,        /* a later fragment: addresses only */
	PARSE_NO_TRANSPORT,    /* neither TCP, UDP nor ICMP echo: addresses only */
	PARSE_BAD_TRANSPORT,   /* a transport header that cannot be: addresses only */
	PARSE_REASONS
};

/* --decap. A constant, because a tunnel's inside is most of what the verifier processes: 200,000 instructions at TC with it, 39,000 without. */
const volatile _Bool parse_decaps = 0;

/* enum phv_need: what chains of this program may request. The code for the rest is removed when the program is loaded, and it is most of what the
 * verifier processes: an instance whose algorithms do not change loads in a third of the time. */
const volatile __u32 parse_needs = ~0U;

static __always_inline int requested(const struct phv *phv, __u32 need)
{
	return (parse_needs & need) && (phv->needs & need);
}

#define VLAN_TAGS 3
#define MPLS_LABELS 8
#define EXT_HEADERS 8
#define TCP_OPTIONS 20 /* options looked at before the walk for a timestamp gives up */

/* Headers start before this offset, so that every header ends within REPLAY_SNAP bytes. */
#define PARSE_LIMIT 1984
_Static_assert(PARSE_LIMIT <= 0x7ff, "settle() cuts offsets to eleven bits");

/* Positions of headers. Offsets are from data; off is the cursor. */
struct packet {
	void *data;
	void *end;
	__u64 off;
	__u64 any;      /* a number the verifier knows nothing of: settle() */
	void *frags;    /* context of a buffer that may have fragments; NULL: size is right */
	__u32 size;     /* bytes of the whole packet as the driver or the capture reports it: packet_size() */
	__u32 l3;       /* offset of the outermost IP header */
	__u32 l4len;    /* transport bytes by the IP header */
	__u16 ethertype; /* host order */
	__u8 version;   /* of the IP header at the cursor: 4, 6, or 0 */
};

/* Bytes at the cursor, or return with the reason. A program without direct packet access defines PARSE_COPIES: it gets each
 * header as a copy, and nothing requested beyond headers. */
#ifdef PARSE_COPIES
#define PARSE_POINTS 0
#define HEADER(pkt, type, name)                                                                       \
	type name##_copy, *name = &name##_copy;                                                       \
	if ((pkt)->data + (pkt)->off + sizeof(type) > (pkt)->end ||                                   \
	    bpf_probe_read_kernel(name, sizeof(type), (pkt)->data + (pkt)->off))                      \
		return PARSE_TRUNCATED
#else
#define PARSE_POINTS 1
#define HEADER(pkt, type, name)                                                                       \
	type *name = (pkt)->data + (pkt)->off;                                                        \
	if ((void *)(name + 1) > (pkt)->end)                                                          \
		return PARSE_TRUNCATED
#endif

/* The verifier would process the following code once for every possible offset; after this it is one state. The mask
 * changes nothing that passes the check: before Linux 6.8 a copy of the offset that the compiler spilled before the check
 * stays unbounded, and is bounded here whatever its source. */
#define settle(pkt)                                                                                   \
	do {                                                                                          \
		forget((pkt)->off, (pkt)->any);                                                       \
		if ((pkt)->off > PARSE_LIMIT)                                                         \
			return PARSE_TRUNCATED;                                                       \
		asm volatile("%0 &= 0x7ff" : "+r"((pkt)->off));                                       \
	} while (0)

/* Bytes of the whole packet, >= end - data. For a buffer with fragments this costs as much as the rest of the parser, so
 * it is only called for packets whose headers do not contain their length. */
static __always_inline __u32 packet_size(const struct packet *pkt)
{
	return pkt->frags ? bpf_xdp_get_buff_len(pkt->frags) : pkt->size;
}

struct eth_hdr {
	__u8 dst[6], src[6];
	__be16 type;
};

struct vlan_hdr {
	__be16 tci;
	__be16 type;
};

struct pppoe_hdr {
	__u8 vertype, code;
	__be16 session, length, protocol;
};

struct ipv4_hdr {
	__u8 vihl, tos;
	__be16 total, id, frag;
	__u8 ttl, protocol;
	__be16 check;
	__u32 src, dst;
};

struct ipv6_hdr {
	__be32 vtf;
	__be16 payload;
	__u8 next, hops;
	__u32 src[4], dst[4];
};

struct ext_hdr {
	__u8 next, len;
	__be16 rest;
	__be32 more;
};

struct tcp_hdr {
	__be16 sport, dport;
	__be32 seq, ack;
	__u8 doff, flags;
	__be16 window, check, urgent;
};

struct udp_hdr {
	__be16 sport, dport, len, check;
} __attribute__((aligned(4))); /* set_ports() */

struct icmp_hdr {
	__u8 type, code;
	__be16 check, id, seq;
};

struct gre_hdr {
	__be16 flags, protocol;
};

struct geneve_hdr {
	__u8 veropt, flags;
	__be16 protocol;
	__be32 vni;
};

enum {
	ETH_IPV4 = 0x0800, ETH_IPV6 = 0x86dd, ETH_VLAN = 0x8100, ETH_QINQ = 0x88a8, ETH_QINQ_OLD = 0x9100,
	ETH_PPPOE = 0x8864, ETH_MPLS = 0x8847, ETH_MPLS_UP = 0x8848, ETH_BRIDGED = 0x6558,
	PPP_IPV4 = 0x0021, PPP_IPV6 = 0x0057,
	IPP_HOPOPTS = 0, IPP_ICMP = 1, IPP_IPIP = 4, IPP_TCP = 6, IPP_UDP = 17, IPP_IPV6 = 41, IPP_ROUTING = 43,
	IPP_FRAGMENT = 44, IPP_GRE = 47, IPP_AH = 51, IPP_ICMPV6 = 58, IPP_NONE = 59, IPP_DSTOPTS = 60, IPP_MOBILITY = 135,
	IPP_HIP = 139, IPP_SHIM6 = 140,
	PORT_DNS = 53, PORT_NTP = 123, PORT_VXLAN = 4789, PORT_GENEVE = 6081,
};

static __always_inline int is_vlan(__u16 type)
{
	return type == ETH_VLAN || type == ETH_QINQ || type == ETH_QINQ_OLD;
}

static __always_inline void set_vlan(struct phv *phv, __u16 tci)
{
	if (phv->valid & PHV_VLAN)
		return; /* the outermost tag is the one that counts */
	phv->vlan = tci & 0xfff;
	phv->valid |= PHV_VLAN;
}

static __always_inline int parse_vlan(struct phv *phv, struct packet *pkt)
{
#pragma unroll
	for (int i = 0; i < VLAN_TAGS; i++) {
		if (likely(!is_vlan(pkt->ethertype)))
			break;
		HEADER(pkt, struct vlan_hdr, tag);
		set_vlan(phv, bpf_ntohs(tag->tci));
		pkt->ethertype = bpf_ntohs(tag->type);
		pkt->off += sizeof(*tag);
	}
	return PARSED;
}

static __always_inline int parse_pppoe(struct packet *pkt)
{
	HEADER(pkt, struct pppoe_hdr, ppp);
	__u16 protocol = bpf_ntohs(ppp->protocol);

	if (ppp->vertype != 0x11 || ppp->code != 0)
		return PARSE_NOT_IP;
	pkt->off += sizeof(*ppp);
	if (protocol & 0x100) { /* compressed to one byte (RFC 1661, section 6.5) */
		protocol >>= 8;
		pkt->off--;
	}
	pkt->ethertype = protocol == PPP_IPV4 ? ETH_IPV4 : protocol == PPP_IPV6 ? ETH_IPV6 : 0;
	return PARSED;
}

/* The version nibble at the cursor replaces the missing ethertype. */
static __always_inline int parse_nibble(struct packet *pkt)
{
	HEADER(pkt, __u8, first);
	pkt->ethertype = *first >> 4 == 4 ? ETH_IPV4 : *first >> 4 == 6 ? ETH_IPV6 : 0;
	return PARSED;
}

static __always_inline int parse_mpls(struct packet *pkt)
{
	for (int i = 0; i < MPLS_LABELS; i++) {
		settle(pkt);
		HEADER(pkt, __be32, label);
		pkt->off += sizeof(*label);
		if (*label & bpf_htonl(0x100)) /* bottom of stack */
			return parse_nibble(pkt);
	}
	return PARSE_NOT_IP;
}

/* From an Ethernet header to an IP header: ethertype 0 means something else. */
static __always_inline int parse_ethernet(struct phv *phv, struct packet *pkt)
{
	int reason;

	HEADER(pkt, struct eth_hdr, eth);
	pkt->ethertype = bpf_ntohs(eth->type);
	pkt->off += sizeof(*eth);
	reason = parse_vlan(phv, pkt);
	if (reason)
		return reason;
	if (likely(pkt->ethertype == ETH_IPV4 || pkt->ethertype == ETH_IPV6))
		return PARSED;
	if (pkt->ethertype == ETH_PPPOE)
		return parse_pppoe(pkt);
	if (pkt->ethertype == ETH_MPLS || pkt->ethertype == ETH_MPLS_UP)
		return parse_mpls(pkt);
	return PARSED;
}

/* Adjacent fields as one word: a load of the word soon after this is forwarded from the store buffer. */
typedef __u32 __attribute__((may_alias)) word32;
typedef __u64 __attribute__((may_alias)) word64;

/* ports: start of a transport header. */
static __always_inline void set_ports(struct phv *phv, const void *ports)
{
	*(word32 *)&phv->dport = bpf_ntohl(*(const word32 *)ports);
}

static __always_inline void set_family(struct phv *phv, __u8 family)
{
	/* fields that an outer header set are reset with it */
	phv->family = family;
	phv->valid = (phv->valid & (PHV_VLAN | PHV_TUNNEL | PHV_EGRESS | PHV_AGGREGATE)) | PHV_IP;
	phv->sport = 0;
	phv->dport = 0;
}

/* ::ffff:a.b.c.d */
static __always_inline void set_address4(__u32 *to, __u32 addr)
{
	word64 *words = (void *)to;

	words[0] = 0;
	words[1] = (__u64)addr << 32 | bpf_htonl(0xffff);
}

static __always_inline void set_address6(__u32 *to, const __u32 *addr)
{
	word64 *words = (void *)to;

	if (!PARSE_POINTS) { /* a copy on the stack has no words of 64 bits */
		__builtin_memcpy(to, addr, 16);
		return;
	}
	words[0] = ((const word64 *)addr)[0];
	words[1] = ((const word64 *)addr)[1];
}

#define IPV4_FRAGMENT 0x3fff /* more fragments, offset */

static __always_inline void set_ipv4(struct phv *phv, const struct ipv4_hdr *ip)
{
	set_family(phv, 4);
	phv->tos = ip->tos;
	phv->proto = ip->protocol;
	phv->ipid = bpf_ntohs(ip->id);
	set_address4(phv->src, ip->src);
	set_address4(phv->dst, ip->dst);
}

static __always_inline void set_ipv6(struct phv *phv, const struct ipv6_hdr *ip)
{
	set_family(phv, 6);
	phv->tos = bpf_ntohl(ip->vtf) >> 20;
	phv->proto = ip->next;
	set_address6(phv->src, ip->src);
	set_address6(phv->dst, ip->dst);
}

static __always_inline int parse_ipv4(struct phv *phv, struct packet *pkt, __u32 *total)
{
	__u32 header, frag, bytes;

	HEADER(pkt, struct ipv4_hdr, ip);
	header = (ip->vihl & 15) * 4;
	bytes = bpf_ntohs(ip->total);
	if (ip->vihl >> 4 != 4 || header < sizeof(*ip))
		return PARSE_BAD_IP;
	if (unlikely(bytes == 0))
		bytes = packet_size(pkt) - pkt->off;
	if (bytes < header)
		return PARSE_BAD_IP;
	*total = bytes;
	set_ipv4(phv, ip);
	pkt->off += header;
	pkt->l4len = bytes - header;
	frag = bpf_ntohs(ip->frag) & IPV4_FRAGMENT;
	if (likely(!frag)) {
		phv->valid |= PHV_IPID;
		return PARSED;
	}
	phv->valid |= PHV_FRAGMENT;
	return frag & 0x1fff ? PARSE_FRAGMENT : PARSED;
}

static __always_inline int is_extension(__u8 next)
{
	return next == IPP_HOPOPTS || next == IPP_ROUTING || next == IPP_DSTOPTS || next == IPP_FRAGMENT ||
	       next == IPP_AH || next == IPP_MOBILITY || next == IPP_HIP || next == IPP_SHIM6;
}

/* Bytes of an extension header, without branches so that the verifier sees one path a header. */
static __always_inline __u32 extension_bytes(__u8 next, __u8 len)
{
	__u32 fragment = -(__u32)(next == IPP_FRAGMENT), ah = -(__u32)(next == IPP_AH);

	opaque(fragment);
	opaque(ah);
	return (8 & fragment) | (((__u32)len + 2) * 4 & ah) | (((__u32)len + 1) * 8 & ~(fragment | ah));
}

static __always_inline int parse_extensions(struct phv *phv, struct packet *pkt)
{
	for (int i = 0; i < EXT_HEADERS; i++) {
		__u32 bytes, next = phv->proto;

		if (!is_extension(next))
			return PARSED;
		forget(next, pkt->any); /* which of them, and how much is left, makes no other path */
		forget(pkt->l4len, pkt->any);
		HEADER(pkt, struct ext_hdr, ext);
		bytes = extension_bytes(next, ext->len);
		if (bytes > pkt->l4len)
			return PARSE_BAD_IP;
		if (next == IPP_FRAGMENT) {
			if (ext->rest & bpf_htons(0xfff9)) /* offset or more fragments: not an atomic fragment */
				phv->valid |= PHV_FRAGMENT;
			if (ext->rest & bpf_htons(0xfff8)) {
				phv->proto = ext->next;
				return PARSE_FRAGMENT;
			}
		}
		phv->proto = ext->next;
		pkt->off += bytes;
		pkt->l4len -= bytes;
		settle(pkt);
	}
	return is_extension(phv->proto) ? PARSE_EXTENSION_CHAIN : PARSED;
}

#define JUMBO_MIN 65536      /* what fits into the length field must be in it: RFC 2675, section 3 */
#define JUMBO_END (1U << 31) /* no link is that long, and lengths with headers stay in 32 bits */

/* Payload length 0: a jumbo payload option first in a hop-by-hop header, a packet that ends here, or segmentation
 * offload. ~0: cannot be. */
static __always_inline __u32 jumbo_payload(struct packet *pkt, __u8 next)
{
	struct ext_hdr *hop = pkt->data + pkt->off;
	__u32 bytes, size;

	if (next == IPP_NONE)
		return 0;
	if (PARSE_POINTS && next == IPP_HOPOPTS && (void *)(hop + 1) <= pkt->end && hop->rest == bpf_htons(0xc204)) {
		bytes = bpf_ntohl(hop->more);
		return bytes - JUMBO_MIN >= JUMBO_END - JUMBO_MIN ? ~0U : bytes;
	}
	size = packet_size(pkt);
	return size > pkt->off ? size - pkt->off : 0;
}

static __always_inline int parse_ipv6(struct phv *phv, struct packet *pkt, __u32 *total)
{
	__u32 payload;

	HEADER(pkt, struct ipv6_hdr, ip);
	if (*(__u8 *)ip >> 4 != 6)
		return PARSE_BAD_IP;
	set_ipv6(phv, ip);
	pkt->off += sizeof(*ip);
	payload = bpf_ntohs(ip->payload);
	if (unlikely(payload == 0))
		payload = jumbo_payload(pkt, ip->next);
	if (payload == ~0U)
		return PARSE_BAD_IP;
	forget(payload, pkt->any);
	pkt->l4len = payload;
	*total = payload + sizeof(*ip);
	return PARSED;
}

/* RFC 7323 timestamps: the layout that stacks send in every segment is one comparison; others are searched once the headers are parsed.
 * Until then phv->qname, which TCP has no other use for, is where the options are and how many bytes they take. */
static __always_inline void parse_tsopt(struct phv *phv, struct packet *pkt, __u64 options, __u32 bytes)
{
	struct {
		__be32 head, val, ecr;
	} *common = pkt->data + options;

	if ((void *)(common + 1) > pkt->end || bytes < 12)
		return;
	if (likely(common->head == bpf_htonl(0x0101080a))) {
		phv->tsval = bpf_ntohl(common->val);
		phv->tsecr = bpf_ntohl(common->ecr);
		phv->valid |= PHV_TSOPT;
		return;
	}
	phv->qname = options << 8 | bytes;
}

static __always_inline int options_left(const struct phv *phv)
{
	return (parse_needs & (NEED_TSOPT | NEED_SCALE)) && phv_has(phv, PHV_TCP) && phv->qname;
}

#define SCALE_MOST 14 /* RFC 7323, section 2.3 */

static __always_inline int scale_asked(const struct phv *phv)
{
	return requested(phv, NEED_SCALE) && (phv->tcp_flags & TCP_SYN);
}

/* A window scale is in a SYN only. Whatever the layout, its options are searched. */
static __always_inline void parse_scale(struct phv *phv, __u64 options, __u32 bytes)
{
	phv->begin = 0;
	if (scale_asked(phv) && bytes)
		phv->qname = options << 8 | bytes;
}

/* Searches the options that parse_tsopt() left. data, end: the packet's, read from the context again. The verifier has no bounds for
 * what is read from the vector, so that it processes the loop once, and not once for each path through the parser. */
static __always_inline void parse_options(struct phv *phv, void *data, void *end)
{
	__u64 at = 0, any = phv->needs, bytes = phv->qname & 0xff;
	__u8 *options = data + (phv->qname >> 8 & 0x7ff);

	for (int i = 0; i < TCP_OPTIONS; i++) {
		__u8 *opt;

		forget(at, any);
		if (at + 2 > bytes || at >= 40)
			return;
		opt = options + at;
		if ((void *)(opt + 2) > end || opt[0] == 0)
			return;
		if (opt[0] == 1) {
			at++;
			continue;
		}
		if (scale_asked(phv) && opt[0] == 3 && opt[1] == 3) {
			if ((void *)(opt + 3) > end || at + 3 > bytes)
				return;
			phv->begin = (opt[2] < SCALE_MOST ? opt[2] : SCALE_MOST) + 1;
		}
		if (requested(phv, NEED_TSOPT) && opt[0] == 8 && opt[1] == 10) {
			if ((void *)(opt + 10) > end || at + 10 > bytes)
				return;
			phv->tsval = (__u32)opt[2] << 24 | opt[3] << 16 | opt[4] << 8 | opt[5];
			phv->tsecr = (__u32)opt[6] << 24 | opt[7] << 16 | opt[8] << 8 | opt[9];
			phv->valid |= PHV_TSOPT;
			if (!scale_asked(phv))
				return;
		}
		if (opt[1] < 2)
			return;
		at += opt[1];
	}
}

/* Payload after a transport header at the cursor: the IP header's length, limited to the bytes on the wire. A
 * packet that is shorter than its IP header states is dropped by its receiver, so nothing beyond it was sent. */
static __always_inline __u32 payload_bytes(const struct packet *pkt, __u32 header)
{
	__u32 promised = pkt->l4len - header, front = pkt->off + header, whole = pkt->size;

	if (likely(front + promised <= whole))
		return promised;
	whole = packet_size(pkt);
	if (whole <= front)
		return 0;
	return promised < whole - front ? promised : whole - front;
}

static __always_inline int parse_tcp(struct phv *phv, struct packet *pkt)
{
	__u32 header;

	HEADER(pkt, struct tcp_hdr, tcp);
	header = (tcp->doff >> 4) * 4;
	if (header < sizeof(*tcp) || header > pkt->l4len)
		return PARSE_BAD_TRANSPORT;
	set_ports(phv, tcp);
	phv->seq = bpf_ntohl(tcp->seq);
	phv->ack = bpf_ntohl(tcp->ack);
	phv->tcp_flags = tcp->flags;
	phv->window = bpf_ntohs(tcp->window);
	phv->payload = payload_bytes(pkt, header);
	phv->valid |= PHV_PORTS | PHV_TCP;
	if (PARSE_POINTS && requested(phv, NEED_TSOPT) && header > sizeof(*tcp))
		parse_tsopt(phv, pkt, pkt->off + sizeof(*tcp), header - sizeof(*tcp));
	if (PARSE_POINTS && requested(phv, NEED_SCALE))
		parse_scale(phv, pkt->off + sizeof(*tcp), header - sizeof(*tcp));
	pkt->off += header;
	return PARSED;
}

#define DNS_HEADER 12
#define NTP_MESSAGE 48

static __always_inline void parse_dns(struct phv *phv, const __be16 *dns)
{
	phv->app_id = bpf_ntohs(dns[0]);
	phv->valid |= dns[1] & bpf_htons(0x8000) ? PHV_APP_RESPONSE : PHV_APP_REQUEST;
}

/* RFC 5905: a server's answer contains the client's transmit timestamp as its origin timestamp. */
static __always_inline void parse_ntp(struct phv *phv, const __be32 *ntp)
{
	__u8 mode = *(const __u8 *)ntp & 7;

	if (mode == 3) {
		phv->app_id = (__u64)bpf_ntohl(ntp[10]) << 32 | bpf_ntohl(ntp[11]);
		phv->valid |= PHV_APP_REQUEST;
	} else if (mode == 4) {
		phv->app_id = (__u64)bpf_ntohl(ntp[6]) << 32 | bpf_ntohl(ntp[7]);
		phv->valid |= PHV_APP_RESPONSE;
	}
}

static __always_inline int is_port(const struct phv *phv, __u16 port)
{
	return phv->sport == port || phv->dport == port;
}

/* What a chain requests of a UDP message: its number of bytes, or 0. */
static __always_inline __u32 dns_asked(const struct phv *phv)
{
	return requested(phv, NEED_DNS) && is_port(phv, PORT_DNS) && phv->payload >= DNS_HEADER ? DNS_HEADER : 0;
}

static __always_inline __u32 ntp_asked(const struct phv *phv)
{
	return requested(phv, NEED_NTP) && is_port(phv, PORT_NTP) && phv->payload >= NTP_MESSAGE ? NTP_MESSAGE : 0;
}

#define RTP_HEADER 12

static __always_inline __u32 rtp_asked(const struct phv *phv)
{
	return requested(phv, NEED_RTP) && !is_port(phv, PORT_DNS) && !is_port(phv, PORT_NTP) && phv->payload >= RTP_HEADER ?
		       RTP_HEADER : 0;
}

/* RFC 3550: version 2 in the first two bits; payload types 72 to 76 are RTCP's packet types without their high bit. */
static __always_inline void parse_rtp(struct phv *phv, const __u8 *rtp)
{
	__u8 type = rtp[1] & 0x7f;

	if (rtp[0] >> 6 != 2 || (type >= 72 && type <= 76))
		return;
	phv->seq = (__u32)rtp[2] << 8 | rtp[3];
	phv->valid |= PHV_RTP;
}

/* The first 8 or 32 bytes of a payload, hashed. */
#define BEGIN_SHORT 8
#define BEGIN_LONG 32

static __always_inline __u32 begin_asked(const struct phv *phv)
{
	if (!requested(phv, NEED_BEGIN) || phv->payload < BEGIN_SHORT)
		return 0;
	return phv->payload < BEGIN_LONG ? BEGIN_SHORT : BEGIN_LONG;
}

static __always_inline __u64 begin_word(const void *message, int n)
{
	return ((const word64 *)message)[n];
}

/* The same in Go: packet.Begin. */
static __always_inline void parse_begin(struct phv *phv, const void *message, int all)
{
	phv->begin = begin_word(message, 0);
	if (all)
		phv->begin += begin_word(message, 1) * 0x9e3779b97f4a7c15ULL + begin_word(message, 2) * 0xd6e8feb86659fd93ULL +
			      begin_word(message, 3) * 0x632be59bd9b4e019ULL;
}

static __always_inline int parse_udp(struct phv *phv, struct packet *pkt)
{
	void *message;

	HEADER(pkt, struct udp_hdr, udp);
	if (pkt->l4len < sizeof(*udp))
		return PARSE_BAD_TRANSPORT;
	set_ports(phv, udp);
	phv->payload = payload_bytes(pkt, sizeof(*udp));
	phv->valid |= PHV_PORTS | PHV_UDP;
	pkt->off += sizeof(*udp);
	phv->qname = pkt->off; /* where the message begins: qname.h */
	if (!PARSE_POINTS)
		return PARSED;
	message = pkt->data + pkt->off;
	if (dns_asked(phv) && message + DNS_HEADER <= pkt->end)
		parse_dns(phv, message);
	if (ntp_asked(phv) && message + NTP_MESSAGE <= pkt->end)
		parse_ntp(phv, message);
	if (rtp_asked(phv) && message + RTP_HEADER <= pkt->end)
		parse_rtp(phv, message);
	if (requested(phv, NEED_BEGIN)) {
		phv->begin = 0;
		if (begin_asked(phv) == BEGIN_LONG && message + BEGIN_LONG <= pkt->end)
			parse_begin(phv, message, 1);
		else if (begin_asked(phv) == BEGIN_SHORT && message + BEGIN_SHORT <= pkt->end)
			parse_begin(phv, message, 0);
	}
	return PARSED;
}

static __always_inline int parse_icmp(struct phv *phv, struct packet *pkt)
{
	HEADER(pkt, struct icmp_hdr, icmp);
	if (pkt->l4len < sizeof(*icmp))
		return PARSE_BAD_TRANSPORT;
	if (icmp->type != (phv->family == 4 ? 8 : 128) && icmp->type != (phv->family == 4 ? 0 : 129))
		return PARSE_NO_TRANSPORT;
	phv->icmp_type = icmp->type;
	phv->sport = bpf_ntohs(icmp->id);
	phv->dport = phv->sport;
	phv->seq = bpf_ntohs(icmp->seq);
	phv->payload = payload_bytes(pkt, sizeof(*icmp));
	phv->valid |= PHV_ICMP;
	return PARSED;
}

static __always_inline int parse_transport(struct phv *phv, struct packet *pkt)
{
	if (likely(phv->proto == IPP_TCP))
		return parse_tcp(phv, pkt);
	if (phv->proto == IPP_UDP)
		return parse_udp(phv, pkt);
	if (phv->proto == (phv->family == 4 ? IPP_ICMP : IPP_ICMPV6))
		return parse_icmp(phv, pkt);
	return PARSE_NO_TRANSPORT;
}

static __always_inline int parse_ip(struct phv *phv, struct packet *pkt, __u32 *total)
{
	int reason;

	settle(pkt);
	if (likely(pkt->ethertype == ETH_IPV4))
		reason = parse_ipv4(phv, pkt, total);
	else if (pkt->ethertype == ETH_IPV6)
		reason = parse_ipv6(phv, pkt, total);
	else
		return PARSE_NOT_IP;
	if (unlikely(reason))
		return reason;
	settle(pkt);
	if (phv->family == 6 || unlikely(phv->proto == IPP_AH))
		reason = parse_extensions(phv, pkt);
	return reason ? reason : parse_transport(phv, pkt);
}

static __always_inline int is_plain(__u8 proto)
{
	return likely(proto == IPP_TCP) || proto == IPP_UDP;
}

static __always_inline int plain_ipv4(struct phv *phv, struct packet *pkt, __u32 *total)
{
	struct ipv4_hdr *ip = pkt->data + sizeof(struct eth_hdr);
	__u32 bytes;

	if ((void *)(ip + 1) > pkt->end || ip->vihl != 0x45 || ip->frag & bpf_htons(IPV4_FRAGMENT) || !is_plain(ip->protocol))
		return 0;
	bytes = bpf_ntohs(ip->total);
	if (unlikely(bytes < sizeof(*ip)))
		return 0;
	set_ipv4(phv, ip);
	phv->valid |= PHV_IPID;
	*total = bytes;
	pkt->l4len = bytes - sizeof(*ip);
	pkt->off = sizeof(struct eth_hdr) + sizeof(*ip);
	return 1;
}

static __always_inline int plain_ipv6(struct phv *phv, struct packet *pkt, __u32 *total)
{
	struct ipv6_hdr *ip = pkt->data + sizeof(struct eth_hdr);

	if ((void *)(ip + 1) > pkt->end || *(__u8 *)ip >> 4 != 6 || !ip->payload || !is_plain(ip->next))
		return 0;
	set_ipv6(phv, ip);
	pkt->l4len = bpf_ntohs(ip->payload);
	*total = pkt->l4len + sizeof(*ip);
	pkt->off = sizeof(struct eth_hdr) + sizeof(*ip);
	return 1;
}

/* Nearly all packets: Ethernet, IPv4 without options or IPv6 without extension headers, and TCP or UDP, whole. All fields are at
 * constant offsets, which saves half of the parser's cost. False, and nothing is written, if the packet is another, or is wrong below
 * its transport header. */
static __always_inline int parse_plain(struct phv *phv, struct packet *pkt, __u32 *total)
{
	struct eth_hdr *eth = pkt->data;

	if (!PARSE_POINTS || (void *)(eth + 1) > pkt->end)
		return 0;
	if (likely(eth->type == bpf_htons(ETH_IPV4)))
		return plain_ipv4(phv, pkt, total);
	return eth->type == bpf_htons(ETH_IPV6) && plain_ipv6(phv, pkt, total);
}

static __always_inline __u16 tunnel_ethertype(__u16 type)
{
	return type == ETH_IPV4 || type == ETH_IPV6 || type == ETH_BRIDGED ? type : 0;
}

static __always_inline int parse_gre(struct packet *pkt)
{
	__u16 flags;

	HEADER(pkt, struct gre_hdr, gre);
	flags = bpf_ntohs(gre->flags);
	if (flags & 0x4007) /* routing, or another version (PPTP) */
		return PARSE_NO_TRANSPORT;
	pkt->ethertype = tunnel_ethertype(bpf_ntohs(gre->protocol));
	pkt->off += 4 + (flags >> 15) * 4 + ((flags >> 13) & 1) * 4 + ((flags >> 12) & 1) * 4;
	return PARSED;
}

static __always_inline int parse_geneve(struct packet *pkt)
{
	HEADER(pkt, struct geneve_hdr, gen);
	pkt->ethertype = tunnel_ethertype(bpf_ntohs(gen->protocol));
	pkt->off += sizeof(*gen) + (gen->veropt & 0x3f) * 4;
	return PARSED;
}

/* Is there a tunnel at the cursor? Sets the inner ethertype (ETH_BRIDGED: an Ethernet header) or leaves 0. */
static __always_inline int parse_tunnel(struct phv *phv, struct packet *pkt)
{
	pkt->ethertype = 0;
	if (phv->valid & PHV_FRAGMENT)
		return PARSED;
	if (phv->proto == IPP_IPIP)
		pkt->ethertype = ETH_IPV4;
	else if (phv->proto == IPP_IPV6)
		pkt->ethertype = ETH_IPV6;
	else if (phv->proto == IPP_GRE)
		return parse_gre(pkt);
	else if ((phv->valid & PHV_UDP) && phv->dport == PORT_GENEVE)
		return parse_geneve(pkt);
	else if ((phv->valid & PHV_UDP) && phv->dport == PORT_VXLAN) {
		pkt->ethertype = ETH_BRIDGED;
		pkt->off += 8;
	}
	return PARSED;
}

static __always_inline int parse_decap(struct phv *phv, struct packet *pkt, int reason)
{
	__u8 tos = phv->tos;
	__u32 total;
	int inner;

	if (reason != PARSED && reason != PARSE_NO_TRANSPORT)
		return reason;
	if (parse_tunnel(phv, pkt) || !pkt->ethertype)
		return reason;
	settle(pkt);
	/* from here on the vector is the inner packet's, and its fields are not set yet */
	phv->valid = (phv->valid & (PHV_VLAN | PHV_EGRESS | PHV_AGGREGATE)) | PHV_TUNNEL;
	phv->payload = 0;
	phv->qname = 0;
	if (pkt->ethertype == ETH_BRIDGED) {
		inner = parse_ethernet(phv, pkt);
		if (inner)
			return inner;
	}
	inner = parse_ip(phv, pkt, &total);
	phv->tos = tos; /* the outermost header is the one that is marked */
	return inner;
}

/* The complete parser. pkt: data, end and size are set, off is 0; l3_only: an IP header is first. */
static __always_inline int parse(struct phv *phv, struct packet *pkt, int l3_only)
{
	__u32 total = 0;
	int reason;

	pkt->off = 0;
	pkt->any = phv->needs;
	if (likely(!l3_only && parse_plain(phv, pkt, &total))) {
		pkt->l3 = sizeof(struct eth_hdr);
		phv->l3 = sizeof(struct eth_hdr);
		reason = likely(phv->proto == IPP_TCP) ? parse_tcp(phv, pkt) : parse_udp(phv, pkt);
	} else {
		reason = l3_only ? parse_nibble(pkt) : parse_ethernet(phv, pkt);
		if (unlikely(reason)) {
			phv->len = packet_size(pkt);
			return reason;
		}
		pkt->l3 = pkt->off;
		phv->l3 = pkt->off;
		reason = parse_ip(phv, pkt, &total);
	}
	phv->len = total ? pkt->l3 + total : packet_size(pkt);
	if (phv->segs > 1) { /* every segment carries the headers again; off stands after them */
		phv->len += (phv->segs - 1) * pkt->off;
		phv->valid |= PHV_AGGREGATE;
	}
	if (parse_decaps)
		reason = parse_decap(phv, pkt, reason);
	return reason;
}

/* For an entry program that hashes addresses itself: fields that are not set are 0, and not the last packet's. */
static __always_inline void parse_reset_addresses(struct phv *phv)
{
	__builtin_memset(phv->src, 0, sizeof(phv->src));
	__builtin_memset(phv->dst, 0, sizeof(phv->dst));
}

static __always_inline void parse_reset(struct phv *phv)
{
	phv->sport = 0;
	phv->dport = 0;
	phv->valid = 0;
	phv->vlan = 0;
	phv->family = 0;
	phv->proto = 0;
	phv->tcp_flags = 0;
	phv->icmp_type = 0;
	phv->payload = 0;
	phv->segs = 1;
	phv->tos = 0;
	phv->mark = 0;
	phv->queue = 0;
	phv->slice = 0;
	phv->enqueued = 0;
	phv->flow = 0;
	phv->steer = 0;
	phv->steering = 0;
	phv->ep_src = 0;
	phv->ep_dst = 0;
	phv->qname = 0;
}
