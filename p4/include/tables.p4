// SPDX-License-Identifier: Apache-2.0
/* The generated tables of the fridge: prefixes as ternary keys, because lpm keys can have no constant entries in the Tofino
 * back end. */
#ifndef XDPMON_TABLES_P4
#define XDPMON_TABLES_P4

#include "../fridge/tables.p4"

#endif
