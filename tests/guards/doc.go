// Package guards tests what the data plane does with words that another core has written in between, and with times at the very
// edge: what no ordinary traffic on one core shows.
package guards
