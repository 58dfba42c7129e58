// Package p4 holds the P4 twins: the same algorithms as in bpf/, as P4-16 for TNA. Tests compare the registers of both forms,
// regenerate params.p4 and tables.p4, and compile if there is a compiler; package tna runs the twins. Start with
// docs/twins.md.
package p4

import "embed"

// Sources are the twins' sources: NAME/top.p4 and what it includes, and NAME/structure.txt, the list of intended differences in structure.
//
//go:embed */*.p4 */structure.txt
var Sources embed.FS
