// SPDX-License-Identifier: Apache-2.0
/* The generated tables of the fridge. Their prefixes exclude each other, so they can as well be ternary keys, and of
 * the two only ternary keys can have constant entries in the Tofino back end. */
#ifndef XDPMON_TABLES_P4
#define XDPMON_TABLES_P4

#define lpm ternary
#include "../fridge/tables.p4"
#undef lpm

#endif
