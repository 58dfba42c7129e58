/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Algorithms of one chain whose windows have different lengths.
 *
 * Algorithms with windows of one length are a group. Group 0 has the shortest windows; its bank is bit 0 of the control word (chain.h), and the bank
 * of group g is bit 48 + g: the upper half of what the entry program copies into phv->needs, whose lower half are the needs of the parser. So a
 * packet has the banks of all groups from one read of one word, and userspace flips several of them at one instant.
 *
 * Algorithms read phv->bank, whatever their group is. Where the group changes along a chain, the loader inserts a program that writes the
 * next group's bank there (bpf/window); it touches no register. A chain with windows of one length has no such program, and no cost of it. */
#pragma once

#include "phv.h"

#define WINDOW_GROUPS 16
#define WINDOW_BANK(phv, group) ((phv)->needs >> (16 + (group)) & 1)
