// Package prom turns finished windows into Prometheus metrics and serves them.
//
// All names begin with xdpmon_, all units are base units (seconds, bytes), and every series carries the labels
// algorithm and interface. What a window counts accumulates into counters, its distributions into histograms
// (classic and native, with the corrected counts), and what it estimates is a gauge of the latest window. The
// only further labels are reasons of a fixed set and the rows of bounded tables.
package prom
