// Package pisa proves from a program's compiled instructions that it keeps the memory rules of a PISA switch
// (docs/memory-rules.md), and prints the resources of a switch that it needs.
//
// The proof is an abstract interpretation. A state represents many packets: the possible contents of registers, stack and packet
// header vector, which register arrays the path has touched, and which branches it has taken. States
// that meet at the same instruction with the same register accesses on their paths become one; all others stay
// apart, so that exclusive paths of the program (a request, a response) are exclusive in the proof. Loops
// converge because numbers that differ between two rounds are widened until they no longer grow.
//
// The proof relies on the kernel verifier's guarantees: memory safety, no uninitialised reads, and that a number is
// never used as a pointer.
//
// Packages below it: rule names the rules, allow and declared list what programs may do and the roles of their maps,
// code holds a program's instructions and their graph, expr and value the knowledge of numbers, registers and memory,
// state all knowledge at one instruction, and machine interprets the instructions.
package pisa

//go:generate ./testdata/build.sh
