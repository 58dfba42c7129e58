// Package pisa proves from a program's compiled instructions that it keeps the memory rules of a PISA switch
// (docs/memory-rules.md), and prints what it would take of one.
//
// The proof is an abstract interpretation. A state stands for many packets: what registers, stack and packet
// header vector may hold, which register arrays the path has touched, and which branches it has taken. States
// that meet at the same instruction with the same register accesses on their paths become one; all others stay
// apart, so that what is exclusive in the program (a request, a response) is exclusive in the proof. Loops
// converge because what differs between two rounds is widened until it no longer grows.
//
// What the proof relies on is what the kernel verifier guarantees and does not need to be shown twice: memory
// safety, no uninitialised reads, and that a number is never used as a pointer.
//
// Below it: rule names the rules, allow and declared list what programs and their maps may be, code holds a program's
// instructions and their graph, expr and value what numbers, registers and memory are known to be, state all that is
// known at one instruction, and machine goes through them.
package pisa

//go:generate ./testdata/build.sh
