// Package p4 holds the P4 twins: the same algorithms as in bpf/, as P4-16 for TNA. It has no Go code but tests, which
// compare the registers of both forms, regenerate params.p4 and tables.p4, and compile where there is a compiler.
// docs/twins.md is the way in.
package p4
