// Package ordered has JSON objects whose members keep their insertion order.
package ordered

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
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
	var b bytes.Buffer
	if err := o.write(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (o *Object) write(b *bytes.Buffer) error {
	if o.err != nil {
		return o.err
	}
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeMember(b, key, o.members[key]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func writeMember(b *bytes.Buffer, key string, value any) error {
	if err := writeKey(b, key); err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	b.WriteByte(':')
	if err := writeValue(b, value); err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	return nil
}

func writeKey(b *bytes.Buffer, key string) error {
	if plain(key) {
		quote(b, key)
		return nil
	}
	name, err := json.Marshal(key)
	b.Write(name)
	return err
}

// writeValue is Marshal into a buffer. The usual types are written without reflection, and nested objects without checking their text once more: that was half
// of the time of a line.
func writeValue(b *bytes.Buffer, value any) error {
	switch v := value.(type) {
	case *Object:
		if v != nil {
			return v.write(b)
		}
	case bool:
		b.Write(strconv.AppendBool(b.AvailableBuffer(), v))
		return nil
	case int:
		b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(v), 10))
		return nil
	case int64:
		b.Write(strconv.AppendInt(b.AvailableBuffer(), v, 10))
		return nil
	case uint64:
		b.Write(strconv.AppendUint(b.AvailableBuffer(), v, 10))
		return nil
	case string:
		if plain(v) {
			quote(b, v)
			return nil
		}
	}
	text, err := Marshal(value)
	b.Write(text)
	return err
}

// plain reports whether a text needs no escapes in JSON, not even those for HTML.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

func quote(b *bytes.Buffer, text string) {
	b.WriteByte('"')
	b.WriteString(text)
	b.WriteByte('"')
}

// Marshal is json.Marshal without the escapes that only HTML needs ("<" stays "<").
func Marshal(value any) ([]byte, error) {
	if o, ok := value.(*Object); ok && o != nil {
		return o.MarshalJSON()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
