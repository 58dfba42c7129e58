// Package delay is the userspace code that the fridge and its baselines share: which packets are requests and which are responses
// (the rules of bpf/include/match.h, as an exact oracle), how a sample is corrected (the cells of bpf/include/survival.h), and
// how a spectrum of corrected samples becomes percentiles with their error.
package delay
