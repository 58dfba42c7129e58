// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How a program may end, and what it may see of its context. */
#include "program.h"

REGISTER(flows, 0, __u32, ENTRIES);

SEC("xdp.frags") int sent_back(struct xdp_md *ctx)
{
	struct phv *phv = phv_get();

	return phv && phv->proto == 17 ? XDP_TX : XDP_PASS; /* want: 5 recirculation - in:sent_back */
}

SEC("xdp.frags") int sent_elsewhere(struct xdp_md *ctx)
{
	return XDP_REDIRECT; /* want: 5 recirculation - in:sent_elsewhere */
}

SEC("xdp.frags") int verdict_of_the_packet(struct xdp_md *ctx)
{
	struct phv *phv = phv_get();

	return phv ? phv->seq : XDP_PASS; /* want: 1 unlisted - in:verdict_of_the_packet */
}

SEC("xdp.frags") int verdict_without_a_name(struct xdp_md *ctx)
{
	return 5; /* want: 1 unlisted - in:verdict_without_a_name */
}

SEC("xdp.frags") int verdict_of_a_register(struct xdp_md *ctx)
{
	__u32 *f = reg_at(flows, 0);

	return f ? reg_load(f) & 3 : XDP_PASS; /* want: 5 recirculation - in:verdict_of_a_register */
}

PROGRAM_TC(classified_again) /* want: 5 recirculation - */
{
	return phv->proto == 17 ? 1 : TC_NEXT;
}

PROGRAM_TC(repeated) /* want: 5 recirculation - */
{
	return phv->proto == 17 ? 6 : TC_NEXT;
}

PROGRAM_TC(redirected) /* want: 5 recirculation - */
{
	return phv->proto == 17 ? 7 : TC_NEXT;
}

PROGRAM_TC(stolen) /* want: 1 unlisted - */
{
	return phv->proto == 17 ? 4 : TC_NEXT;
}

PROGRAM_TC(socket_of_the_packet)
{
	struct bpf_sock *sk = ctx->sk; /* want: 1 unlisted - */

	return sk ? TC_DROP : TC_NEXT;
}

PROGRAM_TC(control_buffer)
{
	return ctx->cb[0] == phv->seq ? TC_DROP : TC_NEXT; /* want: 1 unlisted - */
}

PROGRAM_TC(control_buffer_written)
{
	ctx->cb[1] = phv->seq;
	return TC_NEXT;
}

PROGRAM_TC(mark_written)
{
	ctx->mark = phv->seq;
	ctx->priority = phv->ack;
	return TC_NEXT;
}

PROGRAM_TC(class_written)
{
	ctx->tc_classid = phv->seq; /* want: 1 unlisted - */
	return TC_NEXT;
}

PROGRAM(egress_device)
{
	if (ctx->egress_ifindex == phv->ifindex) /* want: 1 unlisted - */
		phv->verdict = VERDICT_DROP;
}

/* A number that is taken for a pointer: the proof does not wait for the verifier. */
PROGRAM(memory_at_a_number)
{
	__u32 *at = (void *)phv->ep_src;

	if (*at == phv->seq) /* want: 1 unlisted - */
		phv->verdict = VERDICT_DROP;
}

PROGRAM(store_at_a_number)
{
	__u32 *at = (void *)phv->ep_src;

	*at = phv->seq; /* want: 1 unlisted - */
}
