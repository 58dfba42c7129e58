// Package operator tests the xdpmon binary from outside, as somebody in a hurry would treat it: wrong files, missing
// privileges, interfaces that go away, kill -9 at the worst moment, readers that hang up. What is behind the binary does
// not matter here; what the operator sees, and what stays on the machine, does.
package operator
