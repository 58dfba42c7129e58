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

	"github.com/xdpmon/xdpmon/loader/pisa/allow"
	"github.com/xdpmon/xdpmon/loader/pisa/declared"
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
	for _, fn := range slices.SortedFunc(maps.Keys(allow.Helpers), func(a, b asm.BuiltinFunc) int { return int(a) - int(b) }) {
		h := allow.Helpers[fn]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", allow.HelperName(fn), typesText(h.Types), failureTexts[h.Fails], h.Why)
	}
	fmt.Fprintf(&b, "\n| kernel function | why |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(allow.KernelFunctions)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, allow.KernelFunctions[name])
	}
	fmt.Fprintf(&b, "\n| program | sees of its context | ends with |\n|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(allow.Hooks)) {
		h := allow.Hooks[kind]
		fields := allow.FieldNames(h.Fields)
		if kind == ebpf.Tracing {
			fields = "see below"
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s |\n", kind, h.Why, fields, h.VerdictNames())
	}
	fmt.Fprintf(&b, "\n| field that is written | why |\n|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(allow.Hooks)) {
		for _, f := range allow.Hooks[kind].Written {
			fmt.Fprintf(&b, "| %s: `%s` | %s |\n", kind, f.Name, f.Why)
		}
	}
	fmt.Fprintf(&b, "\n| at a trace point | how | why |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(allow.KernelFields)) {
		fmt.Fprintf(&b, "| `%s` | loaded | %s |\n", name, allow.KernelFields[name].Why)
	}
	for _, name := range slices.Sorted(maps.Keys(allow.KernelPlaces)) {
		p := allow.KernelPlaces[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, copiedText(p.Bytes), p.Why)
	}
	fmt.Fprintf(&b, "\n| trace point | arguments |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(allow.TracePoints)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, allow.FieldNames(allow.TracePoints[name]))
	}
	fmt.Fprintf(&b, "\n| kind of map | types | at most | why, and what it is on a switch |\n|---|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(declared.MapRoles)) {
		r := declared.MapRoles[kind]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", kind, declared.TypeNames(r.Types), sizeText(r), r.Why)
	}
	return b.String()
}

func copiedText(bytes int) string {
	if bytes == 0 {
		return "leads on"
	}
	return fmt.Sprintf("copied, %d bytes at most", bytes)
}

var failureTexts = map[allow.Failure]string{allow.NeverFails: "-", allow.LeavesOld: "memory is as it was", allow.WritesZero: "memory is zero"}

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

func sizeText(r declared.MapRole) string {
	var parts []string
	if r.Names != nil {
		parts = append(parts, strings.Join(r.Names, ", "))
	}
	if r.Entries > 0 {
		parts = append(parts, fmt.Sprintf("%d elements", r.Entries))
	}
	if r.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes each", r.Bytes))
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, "; ")
}
