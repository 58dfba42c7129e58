/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Register arrays under the memory rules of a PISA switch (Chen, "Designing Compact Data Structures for Network Measurement and Control", Princeton 2023, section 2.2; docs/memory-rules.md).
 *
 * Every word that outlives a packet is declared with one of the macros below. They tag the map, and
 * loader/pisa proves from the tags and the compiled instructions that a program keeps the rules: one
 * element of an array per packet, stages in increasing order, one read-modify-write that ends before a
 * later stage is touched, at most 64 bits, at most two conditions and no product inside.
 *
 * REGISTER         shared by all cores; read back by later packets. Update it with one atomic
 *                  operation, or with one aligned store of the whole word.
 * REGISTERS        several arrays of one stage in one map, because every packet accesses them at the same index: one lookup for all.
 *                  Each of them keeps the rules by itself; the instruction must show which one is accessed.
 * REGISTERS_PERCPU_BANKED  the same per CPU with two banks, and each array in a stage of its own: the words of a record.
 * REGISTER_BANKED  the same with two banks, for what accumulates over a window.
 * REGISTER_PERCPU_BANKED  per CPU and read back in the data plane, for records of more than one word: no core ever reads
 *                  half of another core's record. Every core runs the algorithm over its share of the packets, and the
 *                  program's header states how userspace merges the results.
 * TALLY            per CPU and banked: only userspace reads it (histograms, sums), which adds the CPUs.
 * COUNTERS         per CPU and banked: one element per bank with all counters of a program. Not a
 *                  register: counters are statistics of the program, read by userspace only.
 * TABLE            written by userspace, read-only to programs (correction tables, rules).
 *
 * Each register and tally has `const volatile __u32 NAME_entries`, the entries of one bank, set by
 * the loader together with the map's size. A bank b of it occupies [b * entries, (b + 1) * entries). */
#pragma once

#include "base.h"

#define ARRAY_MAP(name, kind, t, n)                                                                   \
	struct {                                                                                      \
		__uint(type, kind);                                                                   \
		__type(key, __u32);                                                                   \
		__type(value, t);                                                                     \
		__uint(max_entries, n);                                                               \
	} name SEC(".maps")

/* A map that is sized when it is loaded, with elements of a stage. */
#define STAGED_MAP(name, kind, role, stage, t, entries, n)                                            \
	const volatile __u32 name##_entries = entries;                                                \
	ARRAY_MAP(name, kind, t, n) TAG("pisa:" role) TAG("pisa:stage=" STR(stage))

#define ELEMENT(t) _Static_assert(sizeof(t) <= 8, "a register element is at most 64 bits")

/* name: map name, at most 15 characters. stage: 0..19. t: a scalar or struct of at most 8 bytes.
 * n: default number of entries of one bank. */
#define REGISTER(name, stage, t, n)                                                                   \
	ELEMENT(t);                                                                                   \
	STAGED_MAP(name, BPF_MAP_TYPE_ARRAY, "register", stage, t, n, n)

/* many: number of arrays; names: of each, separated by commas. An element of the map is `struct name_t { t of[many]; }`. */
#define REGISTERS(name, stage, t, n, many, names)                                                     \
	ELEMENT(t);                                                                                   \
	struct name##_t {                                                                             \
		t of[many];                                                                           \
	};                                                                                            \
	STAGED_MAP(name, BPF_MAP_TYPE_ARRAY, "register", stage, struct name##_t, n, n) TAG("pisa:arrays=" names)

/* names: of each with its stage after it, as "a@1,b@3": an array of a later stage is touched later, by the same lookup. Userspace may cut off arrays from the
 * end that a configuration does not use (maps.SetWords). */
#define REGISTERS_PERCPU_BANKED(name, t, n, many, names)                                              \
	ELEMENT(t);                                                                                   \
	struct name##_t {                                                                             \
		t of[many];                                                                           \
	};                                                                                            \
	const volatile __u32 name##_entries = n;                                                      \
	ARRAY_MAP(name, BPF_MAP_TYPE_PERCPU_ARRAY, struct name##_t, 2 * (n))                          \
	TAG("pisa:register") TAG("pisa:banked") TAG("pisa:arrays=" names)

#define REGISTER_BANKED(name, stage, t, n)                                                            \
	ELEMENT(t);                                                                                   \
	STAGED_MAP(name, BPF_MAP_TYPE_ARRAY, "register", stage, t, n, 2 * (n)) TAG("pisa:banked")

#define REGISTER_PERCPU_BANKED(name, stage, t, n)                                                     \
	ELEMENT(t);                                                                                   \
	STAGED_MAP(name, BPF_MAP_TYPE_PERCPU_ARRAY, "register", stage, t, n, 2 * (n)) TAG("pisa:banked")

#define TALLY(name, stage, t, n)                                                                      \
	ELEMENT(t);                                                                                   \
	STAGED_MAP(name, BPF_MAP_TYPE_PERCPU_ARRAY, "tally", stage, t, n, 2 * (n)) TAG("pisa:banked")

/* counts: number of 64-bit counts. An element is `struct { __u64 c[counts]; }`; index it by an enum
 * that userspace also uses. */
#define COUNTERS(name, counts)                                                                        \
	struct name##_t {                                                                             \
		__u64 c[counts];                                                                      \
	};                                                                                            \
	ARRAY_MAP(name, BPF_MAP_TYPE_PERCPU_ARRAY, struct name##_t, 2) TAG("pisa:counters") TAG("pisa:banked")

#define TABLE(name, t, n)                                                                             \
	struct {                                                                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                     \
		__type(key, __u32);                                                                   \
		__type(value, t);                                                                     \
		__uint(max_entries, n);                                                               \
		__uint(map_flags, BPF_F_RDONLY_PROG);                                                 \
	} name SEC(".maps") TAG("pisa:table")

/* The only access to an element: a pointer to it, or NULL past the end. One call per array and packet. */
#define reg_at(name, index)                                                                           \
	({                                                                                            \
		__u32 key_ = (index);                                                                 \
		bpf_map_lookup_elem(&name, &key_);                                                    \
	})

/* The element of a banked array in this packet's bank. */
#define reg_bank(name, phv, index) reg_at(name, (phv)->bank * name##_entries + (index))

/* The counters of this packet's bank; never NULL, but the verifier requires the check. */
#define counters_of(name, phv) ((struct name##_t *)reg_at(name, (phv)->bank))

/* Words shared by cores: whole-word operations only. */
#define reg_load(p) READ_ONCE(*(p))
#define reg_store(p, v) WRITE_ONCE(*(p), v)
#define reg_swap(p, v) __sync_lock_test_and_set(p, v)              /* returns the old word */
#define reg_cas(p, old, v) __sync_val_compare_and_swap(p, old, v)  /* returns the word that was there */
#define reg_add(p, v) __sync_fetch_and_add(p, v)                   /* returns the old word */
