package p4text

import (
	"fmt"
	"regexp"
	"strings"
)

// Parts are named pieces of text with {{.NAME}} for a value and {{PART}} for another part. text/template would do the same, but makes
// the linker keep every exported method of the program, which is a seventh of its size.
type Parts map[string]string

// Values of a part by name, written as by fmt.Sprint.
type Values map[string]any

var (
	partForm  = regexp.MustCompile(`(?s)\{\{define "(\w+)"\}\}(.*?)\{\{end\}\}`)
	placeForm = regexp.MustCompile(`\{\{(\.?)(\w+)\}\}`)
)

// ReadParts reads the text between {{define "NAME"}} and {{end}}; everything else is a comment.
func ReadParts(text string) Parts {
	p := Parts{}
	for _, m := range partForm.FindAllStringSubmatch(text, -1) {
		p[m[1]] = m[2]
	}
	return p
}

// Write writes a part with its values. A missing part or value is a programming error.
func (p Parts) Write(b *strings.Builder, name string, v Values) {
	text, ok := p[name]
	if !ok {
		panic("no part " + name)
	}
	at := 0
	for _, m := range placeForm.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		at = m[1]
		what := text[m[4]:m[5]]
		if m[2] == m[3] {
			p.Write(b, what, v)
			continue
		}
		value, ok := v[what]
		if !ok {
			panic(fmt.Sprintf("part %s has no value %s", name, what))
		}
		fmt.Fprint(b, value)
	}
	b.WriteString(text[at:])
}
