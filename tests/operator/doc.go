// Package operator tests the xdpmon binary from outside under careless use: wrong files, missing privileges,
// interfaces that are removed, kill -9 at the worst moment, readers that close their end. It checks what the operator
// sees and what stays on the machine, not the implementation.
package operator
