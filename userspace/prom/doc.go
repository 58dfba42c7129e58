// Package prom turns finished windows into Prometheus metrics and serves them.
//
// All names begin with xdpmon_, reported ones with xdpmon_ALGORITHM_: two algorithms may use one word for
// different things, one metric may not. All units are base units (seconds, bytes). What a window counts accumulates into counters,
// its distributions into histograms (classic and native, with the corrected counts), and what it estimates is a gauge of the
// latest window. Every series of an instance has the labels instance_name, interface (where it is one), vantage (where a coordinator
// has several) and guest with domain or pod (where that is known); what an algorithm reports has algorithm, too. Others are reasons of a fixed
// set, and the rows of bounded tables: those that are named by settings always, those that are named by traffic when asked for.
package prom
