/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every program includes first: kernel types, helpers, and the few compiler idioms that the
 * other headers are written in. No state is declared here. */
#pragma once

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

/* A value that the optimiser must not see through: keeps a bound check next to its use. */
#define opaque(x) asm volatile("" : "+r"(x))

/* Makes the verifier forget what it knows of x, so that paths that differ only in x become one state. any is a
 * scalar that it knows nothing of; two exclusive-ors cost less than a trip through memory. Bound x again after it. */
#define forget(x, any) asm volatile("%0 ^= %1\n\t%0 ^= %1" : "+r"(x) : "r"((__u64)(any)))

/* Tags are read by loader and prover from the object's BTF; they cost nothing at run time. */
#define TAG(text) __attribute__((btf_decl_tag(text)))
#define STR_(x) #x
#define STR(x) STR_(x)
