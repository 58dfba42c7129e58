package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
)

// object is a JSON object that keeps the order in which its members were set: people read these lines too.
// The first error sticks and is returned by MarshalJSON.
type object struct {
	keys    []string
	members map[string]any
	err     error
}

func newObject() *object { return &object{members: map[string]any{}} }

// set adds a member or replaces it.
func (o *object) set(key string, value any) {
	if _, ok := o.members[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.members[key] = value
}

// setPath adds a member of a nested object: "delay_ns.p50" is member p50 of object delay_ns.
func (o *object) setPath(path string, value any) {
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
		o.err = fmt.Errorf("encode report: %q is there twice", path)
		return
	}
	at.set(leaf, value)
}

// child returns the nested object of that name, made when missing; nil when the name holds a plain value.
func (o *object) child(name string) *object {
	existing, ok := o.members[name]
	if !ok {
		c := newObject()
		o.set(name, c)
		return c
	}
	c, _ := existing.(*object)
	return c
}

// MarshalJSON writes the members in order.
func (o *object) MarshalJSON() ([]byte, error) {
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
	text, err := marshalPlain(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	b.Write(name)
	b.WriteByte(':')
	b.Write(text)
	return nil
}

// marshalPlain is json.Marshal without the escapes that only HTML needs ("<" stays "<").
func marshalPlain(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// sortedObject makes an object of a map, in alphabetical order, with plain numbers made safe for JSON.
func sortedObject[V any](m map[string]V) *object {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	o := newObject()
	for _, k := range keys {
		o.set(k, plain(m[k], None))
	}
	return o
}

// plain turns a value into what JSON carries: integers for units that are counted (ns, bytes, packets), null
// for what is no number (NaN, infinities), everything else as it is.
func plain(value any, unit Unit) any {
	f, ok := value.(float64)
	if !ok {
		return value
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	if unit.whole() && math.Abs(f) < math.MaxInt64 {
		return int64(math.Round(f))
	}
	return f
}

// whole reports whether values of the unit are integers in JSON.
func (u Unit) whole() bool {
	return u == Count || u == Bytes || u == Nanosecond || u.Counted() != ""
}
