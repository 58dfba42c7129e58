package p4text

import (
	"fmt"
	"regexp"
	"strings"
)

// Parts are pieces of text by name, with {{.NAME}} where values go, and {{PART}} where another part does. It is what of text/template is needed here;
// with that, the linker has to keep every exported method of the program, a seventh of it.
type Parts map[string]string

// Values of a part by name; each is written as fmt.Sprint does.
type Values map[string]any

var (
	partForm  = regexp.MustCompile(`(?s)\{\{define "(\w+)"\}\}(.*?)\{\{end\}\}`)
	placeForm = regexp.MustCompile(`\{\{(\.?)(\w+)\}\}`)
)

// ReadParts reads what stands between {{define "NAME"}} and {{end}}; the rest is for readers.
func ReadParts(text string) Parts {
	p := Parts{}
	for _, m := range partForm.FindAllStringSubmatch(text, -1) {
		p[m[1]] = m[2]
	}
	return p
}

// Write a part with its values. Parts and values are the program's own: one that is missing is a mistake in it.
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
