package p4

import (
	"regexp"
	"slices"
	"strings"
)

var (
	registerAction = regexp.MustCompile(`(?s)RegisterAction<[\w<>, ]+>\((\w+)\)\s+(\w+)\s*=`)
	actionDecl     = regexp.MustCompile(`\baction\s+(\w+)\s*\([^)]*\)\s*\{`)
	tableDecl      = regexp.MustCompile(`\btable\s+(\w+)\s*\{`)
	applyDecl      = regexp.MustCompile(`(?m)^\s*apply\s*\{`)
	tableActions   = regexp.MustCompile(`(?s)\bactions\s*=\s*\{(.*?)\}`)
	executeCall    = regexp.MustCompile(`\b(\w+)\.execute\(`)
	word           = regexp.MustCompile(`\w+`)
)

// reachedFrom returns, for every register, the places in the control flow that access it: the tables with an action
// that does, and the statements of an apply block that do so directly. The compiler accepts two places that may both
// run for one packet, which is one access too many; one place cannot.
func (s *source) reachedFrom() map[string][]string {
	owner := map[string]string{} // RegisterAction -> register
	for _, m := range registerAction.FindAllStringSubmatch(s.text, -1) {
		owner[m[2]] = m[1]
	}
	touches := map[string][]string{} // action -> registers
	for name, body := range blocks(s.text, actionDecl) {
		for _, m := range executeCall.FindAllStringSubmatch(body, -1) {
			touches[name] = append(touches[name], owner[m[1]])
		}
	}
	places := map[string][]string{}
	for table, body := range blocks(s.text, tableDecl) {
		for _, reg := range tableTouches(body, touches) {
			places[reg] = append(places[reg], "table "+table)
		}
	}
	for _, body := range bodies(s.text, applyDecl) {
		for _, m := range executeCall.FindAllStringSubmatch(body, -1) {
			places[owner[m[1]]] = append(places[owner[m[1]]], "apply: "+m[1])
		}
	}
	return places
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
