// Package maps is userspace's side of the register arrays: typed access, two banks, per-CPU merging, the
// chain's control word. It names no algorithm.
package maps
