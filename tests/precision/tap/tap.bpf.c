//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* tap: records the estimate of the algorithm before it in the chain for every packet's flow (phv->carry[1]), so that
 * errors on arrival (equation 3.1) can be measured without a system call for every packet. A second pass that has only been
 * asked for, in a replay that delays them, has written nothing yet: the flow is estimated as 0. */
#include "base.h"
#include "phv.h"
#include "register.h"
#include "chain.h"
#include "recirc.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 1); /* the packets of the stream: set before it is loaded */
} tap_said SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} tap_next SEC(".maps");

ALGORITHM(tap)
{
	__u32 zero = 0, *next = bpf_map_lookup_elem(&tap_next, &zero), n;
	__u64 *said;

	if (!next)
		return;
	n = *next;
	*next = n + 1;
	said = bpf_map_lookup_elem(&tap_said, &n);
	if (said)
		*said = phv->pass >= RECIRC_ASKED ? 0 : phv->carry[1];
}
