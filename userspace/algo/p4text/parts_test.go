package p4text

import (
	"strings"
	"testing"
)

func TestParts(t *testing.T) {
	p := ReadParts("for readers {{define \"a\"}}x {{.N}} {{{.S}}}\n{{b}}{{end}} more {{define \"b\"}}[{{.S}}]{{end}}")
	var b strings.Builder
	p.Write(&b, "a", Values{"N": 3, "S": "{{.N}}"})
	if want := "x 3 {{{.N}}}\n[{{.N}}]"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	for name, v := range map[string]Values{"a": {"N": 1}, "c": {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("part %s of %v is written", name, v)
				}
			}()
			p.Write(&b, name, v)
		}()
	}
}
