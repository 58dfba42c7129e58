// Package structure extracts from a twin's P4 text how it uses each register: the order in which packets reach them, the conditions of
// an access, and the inputs of index and written value. It compares that with what loader/pisa found in the bytecode, where each
// array has the same name.
//
// Both sides are read by the same rules, all packets at once:
//
//   - A value depends on all that it is calculated from, and on what decided whether it was assigned.
//   - What was read from a register is a source of its own: what its index depends on is compared at that register.
//   - A hash depends on its fields and on its row; a table's result on the parts of its key that its entries look at.
//   - Sources have the names of the packet header vector (bpf/include/phv.h); the switch's headers and intrinsic metadata are renamed to them
//     (sources.go).
//
// It does not compare how a value is calculated: constants, operators, order of entries. tests/twins covers these with packets.
package structure
