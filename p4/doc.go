// Package p4 holds the P4 twins: the same algorithms as in bpf/, as P4-16 for TNA. Tests compare the registers of both forms,
// regenerate params.p4 and tables.p4, and compile where there is a compiler; package tna runs the twins. docs/twins.md is the
// way in.
package p4

import "embed"

// Sources are the twins as they stand: NAME/top.p4 and what it includes, and NAME/structure.txt, what is known to differ in structure.
//
//go:embed */*.p4 */structure.txt
var Sources embed.FS
