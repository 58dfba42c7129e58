// Package delay is what the fridge and its baselines share on the side of userspace: which packets ask and which
// answer (the rules of bpf/include/match.h, as an exact oracle), how a sample is corrected (the cells of
// bpf/include/survival.h), and how a spectrum of corrected samples becomes percentiles with their error.
package delay
