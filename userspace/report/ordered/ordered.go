// Package ordered has JSON objects whose members keep their insertion order.
package ordered

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Object is a JSON object whose members keep their insertion order, because people read these lines, too. The first error is
// stored and returned by MarshalJSON.
type Object struct {
	keys    []string
	members map[string]any
	err     error
}

// New returns an empty object.
func New() *Object { return &Object{members: map[string]any{}} }

// Set adds a member or replaces it.
func (o *Object) Set(key string, value any) {
	if _, ok := o.members[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.members[key] = value
}

// SetPath adds a member of a nested object: "delay_ns.p50" is member p50 of object delay_ns.
func (o *Object) SetPath(path string, value any) {
	at := o
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		at = at.child(name)
		if at == nil {
			o.err = fmt.Errorf("encode report: %q is both a value and a group of values", path)
			return
		}
	}
	leaf := names[len(names)-1]
	if _, taken := at.members[leaf]; taken {
		o.err = fmt.Errorf("encode report: %q occurs twice", path)
		return
	}
	at.Set(leaf, value)
}

// child returns the nested object of a name, creating it if missing; nil if the name has a plain value.
func (o *Object) child(name string) *Object {
	existing, ok := o.members[name]
	if !ok {
		c := New()
		o.Set(name, c)
		return c
	}
	c, _ := existing.(*Object)
	return c
}

// MarshalJSON writes the members in order.
func (o *Object) MarshalJSON() ([]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeMember(&b, key, o.members[key]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writeMember(b *bytes.Buffer, key string, value any) error {
	name, err := json.Marshal(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	text, err := Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	b.Write(name)
	b.WriteByte(':')
	b.Write(text)
	return nil
}

// Marshal is json.Marshal without the escapes that only HTML needs ("<" stays "<").
func Marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
