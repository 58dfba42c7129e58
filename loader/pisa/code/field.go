package code

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// relocation is the library's text of a relocation of a field's offset, which it exports in no other form.
var relocation = regexp.MustCompile(`^CORERelocation\(byte_off, .*\[([0-9:]+)\], local_id=([0-9]+)\)$`)

// NameFields names the fields of the kernel's types that instructions will be patched for.
func (p *Program) NameFields(types *btf.Spec) {
	for i := range p.Insns {
		in := &p.Insns[i]
		if in.Core && types != nil {
			in.Field = FieldName(btf.CORERelocationMetadata(&in.Instruction), types)
		}
	}
}

// FieldName is the field that a relocation asks for, as "structure.field"; "" where it asks for something else.
func FieldName(relo *btf.CORERelocation, types *btf.Spec) string {
	found := relocation.FindStringSubmatch(relo.String())
	if found == nil {
		return ""
	}
	id, err := strconv.ParseUint(found[2], 10, 32)
	if err != nil {
		return ""
	}
	t, err := types.TypeByID(btf.TypeID(id))
	if err != nil {
		return ""
	}
	path := strings.Split(found[1], ":")
	if path[0] != "0" {
		return ""
	}
	return nameOfPath(t, path[1:])
}

// nameOfPath follows members and elements by their numbers.
func nameOfPath(t btf.Type, path []string) string {
	name := t.TypeName()
	for _, step := range path {
		n, err := strconv.Atoi(step)
		if err != nil {
			return ""
		}
		switch at := btf.UnderlyingType(t).(type) {
		case *btf.Struct:
			if n >= len(at.Members) {
				return ""
			}
			name, t = name+"."+at.Members[n].Name, at.Members[n].Type
		case *btf.Array:
			name, t = fmt.Sprintf("%s[%d]", name, n), at.Type
		default:
			return ""
		}
	}
	return name
}
