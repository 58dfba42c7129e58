// SPDX-License-Identifier: Apache-2.0
/* The sizes of rtt-array's defaults, written by hand. Ticks, delay bins and index types are the fridge's, so that both can
 * be compared. */
#define RTT_ENTRIES 65536
#define RTT_BINS 896
#define RTT_HIST_ENTRIES 1792 /* two banks */
