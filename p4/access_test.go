package p4

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	registerAction = regexp.MustCompile(`(?s)RegisterAction<[\w<>, ]+>\((\w+)\)\s+(\w+)\s*=`)
	actionDecl     = regexp.MustCompile(`\baction\s+(\w+)\s*\([^)]*\)\s*\{`)
	tableDecl      = regexp.MustCompile(`\btable\s+(\w+)\s*\{`)
	applyDecl      = regexp.MustCompile(`(?m)^\s*apply\s*\{`)
	tableActions   = regexp.MustCompile(`(?s)\bactions\s*=\s*\{(.*?)\}`)
	applyCall      = regexp.MustCompile(`\b(\w+)\.apply\(`)
	executeCall    = regexp.MustCompile(`\b(\w+)\.execute\(`)
	word           = regexp.MustCompile(`\w+`)
)

// reachedFrom returns, for every register, the places in the control flow that access it: the tables with an action
// that does, and the statements of an apply block that do so directly. The compiler accepts two places that may both
// run for one packet, which is one access too many; one place cannot. A register is private to its control.
func (s *source) reachedFrom() map[string][]string {
	places := map[string][]string{}
	for _, body := range blocks(s.text, controlDecl) {
		for register, from := range reachedIn(body) {
			places[register] = append(places[register], from...)
		}
	}
	return places
}

func reachedIn(control string) map[string][]string {
	owner := map[string]string{} // RegisterAction -> register
	for _, m := range registerAction.FindAllStringSubmatch(control, -1) {
		owner[m[2]] = m[1]
	}
	touches := map[string][]string{} // action -> registers
	for name, body := range blocks(control, actionDecl) {
		touches[name] = executed(body, owner)
	}
	places := map[string][]string{}
	for table, body := range blocks(control, tableDecl) {
		for _, register := range tableTouches(body, touches) {
			places[register] = append(places[register], "table "+table)
		}
	}
	for _, body := range bodies(control, applyDecl) {
		for _, register := range executed(body, owner) {
			places[register] = append(places[register], "statement")
		}
	}
	return places
}

// executed lists the registers that a piece of code reaches, once for each RegisterAction that it executes.
func executed(code string, owner map[string]string) []string {
	var registers []string
	for _, m := range executeCall.FindAllStringSubmatch(code, -1) {
		registers = append(registers, owner[m[1]])
	}
	return registers
}

// inFlow lists the registers in the order in which the twin's main control applies the controls that hold them.
func (s *source) inFlow(t *testing.T, twin string) []register {
	t.Helper()
	held := map[string][]register{} // by control
	for name, control := range s.owner {
		held[control] = append(held[control], s.registers[name])
	}
	of := map[string]string{} // instance -> control
	for _, m := range instanceDecl.FindAllStringSubmatch(s.text, -1) {
		of[m[3]] = m[1]
	}
	var flow []register
	for name, body := range blocks(s.text, controlDecl) {
		if !strings.EqualFold(name, twin) {
			continue
		}
		for _, m := range applyCall.FindAllStringSubmatch(body, -1) {
			flow = append(flow, held[of[m[1]]]...)
			delete(held, of[m[1]]) // the second of two exclusive instances
		}
	}
	if len(flow) != len(s.registers) {
		t.Fatalf("%s: the control applies %d registers of %d", twin, len(flow), len(s.registers))
	}
	return flow
}

// tableTouches lists the registers that a table's actions reach, each once: one action of a table runs.
func tableTouches(body string, touches map[string][]string) []string {
	var registers []string
	list := tableActions.FindStringSubmatch(body)
	if list == nil {
		return nil
	}
	for _, action := range word.FindAllString(list[1], -1) {
		registers = append(registers, touches[action]...)
	}
	slices.Sort(registers)
	return slices.Compact(registers)
}

// blocks returns the bodies in braces behind the matches of a declaration, by the declared name.
func blocks(text string, decl *regexp.Regexp) map[string]string {
	found := map[string]string{}
	for _, at := range decl.FindAllStringSubmatchIndex(text, -1) {
		found[text[at[2]:at[3]]] = body(text[at[1]:])
	}
	return found
}

func bodies(text string, decl *regexp.Regexp) []string {
	var found []string
	for _, at := range decl.FindAllStringIndex(text, -1) {
		found = append(found, body(text[at[1]:]))
	}
	return found
}

// body is the text up to the brace that closes the one just before it.
func body(text string) string {
	depth := 1
	end := strings.IndexFunc(text, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth == 0
	})
	if end < 0 {
		return text
	}
	return text[:end]
}
