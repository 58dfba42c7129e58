/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Included first by every program: kernel types, helpers, and the few compiler idioms that the
 * other headers use. It declares no state. */
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

/* A value that the optimiser cannot reason about: keeps a bound check next to its use. */
#define opaque(x) asm volatile("" : "+r"(x))

/* Makes the verifier drop its bounds of x, so that paths that differ only in x become one state. any is a
 * scalar without bounds; two exclusive-ors cost less than a store and load. Check x's bounds again afterwards. */
#define forget(x, any) asm volatile("%0 ^= %1\n\t%0 ^= %1" : "+r"(x) : "r"((__u64)(any)))

/* Loader and prover read tags from the object's BTF; they cost nothing at run time. */
#define TAG(text) __attribute__((btf_decl_tag(text)))
#define STR_(x) #x
#define STR(x) STR_(x)
