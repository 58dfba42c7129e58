package pisa

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

var updateLists = flag.Bool("pisa.update", false, "write the lists into docs/memory-rules.md")

const (
	listsDocument = "../../docs/memory-rules.md"
	listsBegin    = "<!-- lists: go test ./loader/pisa -run TestListsAreDocumented -pisa.update -->\n"
	listsEnd      = "<!-- end of lists -->\n"
)

// TestListsAreDocumented: who writes a program reads the lists as the proof has them.
func TestListsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(listsDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), listsBegin)
	_, after, ok2 := strings.Cut(rest, listsEnd)
	if !ok || !ok2 {
		t.Fatal("no place for the lists")
	}
	want := before + listsBegin + "\n" + listsText() + "\n" + listsEnd + after
	if *updateLists {
		if err := os.WriteFile(listsDocument, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the lists in %s are not those of the proof: run this test with -pisa.update", listsDocument)
	}
}

func listsText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| helper | programs | when it fails | why |\n|---|---|---|---|\n")
	for _, fn := range slices.SortedFunc(maps.Keys(helpers), func(a, b asm.BuiltinFunc) int { return int(a) - int(b) }) {
		h := helpers[fn]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", helperName(fn), typesText(h.types), failureTexts[h.fails], h.why)
	}
	fmt.Fprintf(&b, "\n| kernel function | why |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(kernelFunctions)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, kernelFunctions[name])
	}
	fmt.Fprintf(&b, "\n| program | sees of its context | ends with |\n|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(hooks)) {
		h := hooks[kind]
		var fields []string
		for _, f := range h.fields {
			fields = append(fields, "`"+f.name+"`")
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s |\n", kind, h.why, strings.Join(fields, " "), h.verdictNames())
	}
	fmt.Fprintf(&b, "\n| kind of map | types | at most | why, and what it is on a switch |\n|---|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(mapRoles)) {
		r := mapRoles[kind]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", kind, typeNames(r.types), sizeText(r), r.why)
	}
	return b.String()
}

var failureTexts = map[failure]string{neverFails: "-", leavesOld: "memory is as it was", writesZero: "memory is zero"}

func typesText(types []ebpf.ProgramType) string {
	if types == nil {
		return "all"
	}
	var names []string
	for _, t := range types {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

func sizeText(r mapRole) string {
	var parts []string
	if r.names != nil {
		parts = append(parts, strings.Join(r.names, ", "))
	}
	if r.entries > 0 {
		parts = append(parts, fmt.Sprintf("%d elements", r.entries))
	}
	if r.bytes > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes each", r.bytes))
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, "; ")
}
