package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/nearest"
)

// Kind is a type of values: it decodes one, and has a JSON schema.
type Kind interface {
	Decode(p *Parser, n *yaml.Node) (v any, ok bool)
	Schema() map[string]any
}

// Word is a text; the error of Check states what is allowed.
type Word struct {
	What    string
	Choices []string
	Pattern string // for the schema; Check must agree with it
	Check   func(string) error
}

func (k Word) Decode(p *Parser, n *yaml.Node) (any, bool) {
	text, ok := Scalar(p, n, k.What)
	if !ok {
		return nil, false
	}
	if n.Tag == "!!null" || text == "" {
		p.Errorf(n, "%s is empty", k.What)
		return nil, false
	}
	if len(k.Choices) > 0 && !slices.Contains(k.Choices, text) {
		p.Errorf(n, "%s %q: choose one of %s%s", k.What, text, strings.Join(k.Choices, ", "), nearest.Hint(text, k.Choices))
		return nil, false
	}
	if k.Check != nil {
		if err := k.Check(text); err != nil {
			p.Errorf(n, "%s", err)
			return nil, false
		}
	}
	return text, true
}

func (k Word) Schema() map[string]any {
	s := map[string]any{"type": "string", "minLength": 1}
	if len(k.Choices) > 0 {
		return map[string]any{"enum": k.Choices}
	}
	if k.Pattern != "" {
		s["pattern"] = k.Pattern
	}
	return s
}

// Scalar is the text of a scalar node.
func Scalar(p *Parser, n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		p.Errorf(n, "%s is one value, not %s", what, Describe(n))
		return "", false
	}
	return n.Value, true
}

// Flag is true or false.
type Flag struct{ What string }

func (k Flag) Decode(p *Parser, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.Errorf(n, "%s is true or false, not %s", k.What, Describe(n))
		return nil, false
	}
	v, err := strconv.ParseBool(strings.ToLower(n.Value))
	if err != nil {
		p.Errorf(n, "%s is true or false, not %s", k.What, Describe(n))
	}
	return v, err == nil
}

func (k Flag) Schema() map[string]any { return map[string]any{"type": "boolean"} }

// Number is an integer within bounds.
type Number struct {
	What     string
	Min, Max uint64
}

func (k Number) Decode(p *Parser, n *yaml.Node) (any, bool) {
	text, ok := Scalar(p, n, k.What)
	if !ok {
		return nil, false
	}
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil || n.Tag != "!!int" || v < k.Min || v > k.Max {
		p.Errorf(n, "%s %s: give an integer from %d to %d", k.What, Describe(n), k.Min, k.Max)
		return nil, false
	}
	return v, true
}

func (k Number) Schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": k.Min, "maximum": k.Max}
}

// Duration is a duration such as 10s.
type Duration struct {
	What     string
	Min, Max time.Duration
}

func (k Duration) Decode(p *Parser, n *yaml.Node) (any, bool) {
	text, ok := Scalar(p, n, k.What)
	if !ok {
		return nil, false
	}
	v, err := time.ParseDuration(text)
	if err != nil || n.Tag == "!!int" {
		p.Errorf(n, "%s %s: give a duration like 10s, 500ms or 24h", k.What, Describe(n))
		return nil, false
	}
	if v < k.Min || v > k.Max {
		p.Errorf(n, "%s %s: allowed are %v to %v", k.What, text, k.Min, k.Max)
		return nil, false
	}
	return v, true
}

func (k Duration) Schema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`}
}

// Size is a number of bytes such as 256MiB.
type Size struct {
	What     string
	Min, Max int64
}

func (k Size) Decode(p *Parser, n *yaml.Node) (any, bool) {
	text, ok := Scalar(p, n, k.What)
	if !ok {
		return nil, false
	}
	v, err := algo.ParseSize(text)
	if err != nil || n.Tag == "!!null" {
		p.Errorf(n, "%s %s: give a size like 64KiB or 256MiB", k.What, Describe(n))
		return nil, false
	}
	if v < k.Min || v > k.Max {
		p.Errorf(n, "%s %s: allowed are %d to %d bytes", k.What, text, k.Min, k.Max)
		return nil, false
	}
	return v, true
}

func (k Size) Schema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": k.Min, "maximum": k.Max},
		map[string]any{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)? *(KiB|MiB|GiB|kB|MB|GB|B)?$`}}}
}

// List is a sequence of values of one kind.
type List[T any] struct {
	What string
	Of   Kind
	Min  int
}

func (k List[T]) Decode(p *Parser, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		p.Errorf(n, "%s is a list, not %s", k.What, Describe(n))
		return nil, false
	}
	if len(n.Content) < k.Min {
		p.Errorf(n, "%s is empty", k.What)
		return nil, false
	}
	values, good := make([]T, 0, len(n.Content)), true
	for _, c := range n.Content {
		v, ok := Decode(p, k.Of, c)
		if !ok {
			good = false
			continue
		}
		values = append(values, v.(T))
	}
	return values, good
}

func (k List[T]) Schema() map[string]any {
	s := map[string]any{"type": "array", "items": k.Of.Schema()}
	if k.Min > 0 {
		s["minItems"] = k.Min
	}
	return s
}

// Decode decodes a node as a kind, following aliases.
func Decode(p *Parser, k Kind, n *yaml.Node) (any, bool) {
	if n = p.enter(n); n == nil {
		return nil, false
	}
	defer p.leave()
	return k.Decode(p, n)
}

// Field is a key of an object.
type Field[T any] struct {
	Key, Help string
	Kind      Kind
	Required  bool
	Set       func(*T, any)
}

// Object is a mapping with known keys.
type Object[T any] struct {
	What     string
	Defaults func() T
	Fields   []Field[T]
	Also     map[string]any // further parts of the schema
	// Check checks the object as a whole; at returns the node of a key, or of the object.
	Check func(p *Parser, at func(key string) *yaml.Node, v *T)
}

func (o Object[T]) keys() []string {
	keys := make([]string, len(o.Fields))
	for i, f := range o.Fields {
		keys[i] = f.Key
	}
	return keys
}

func (o Object[T]) Decode(p *Parser, n *yaml.Node) (any, bool) {
	v := o.Defaults()
	entries, good := p.Pairs(n, o.What)
	given := map[string]*yaml.Node{}
	for _, e := range entries {
		i := slices.Index(o.keys(), e.Key.Value)
		if i < 0 {
			p.Unknown(e.Key, o.What, o.keys())
			good = false
			continue
		}
		given[e.Key.Value] = e.Value
		value, ok := Decode(p, o.Fields[i].Kind, e.Value)
		if !ok {
			good = false
			continue
		}
		o.Fields[i].Set(&v, value)
	}
	for _, f := range o.Fields {
		if f.Required && given[f.Key] == nil && (n.Kind == yaml.MappingNode || n.Tag == "!!null") {
			p.Errorf(n, "%s lacks %s: %s", o.What, f.Key, f.Help)
			good = false
		}
	}
	if good && o.Check != nil {
		before := len(p.Problems)
		o.Check(p, func(key string) *yaml.Node {
			if given[key] != nil {
				return given[key]
			}
			return n
		}, &v)
		good = len(p.Problems) == before
	}
	return v, good
}

func (o Object[T]) Schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range o.Fields {
		s := f.Kind.Schema()
		s["description"] = f.Help
		properties[f.Key] = s
		if f.Required {
			required = append(required, f.Key)
		}
	}
	s := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["type"], s["required"] = "object", required
	}
	maps.Copy(s, o.Also)
	return s
}

// To returns a setter of a field.
func To[T, V any](f func(*T) *V) func(*T, any) {
	return func(t *T, v any) { *f(t) = v.(V) }
}
