package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/nearest"
)

// kind is what a value may be: how it is read, and how the schema says it.
type kind interface {
	decode(p *parser, n *yaml.Node) (v any, ok bool)
	schema() map[string]any
}

// word is a text; check may refuse it with what is allowed.
type word struct {
	what    string
	choices []string
	pattern string // of the schema; check says the same
	check   func(string) error
}

func (k word) decode(p *parser, n *yaml.Node) (any, bool) {
	text, ok := scalar(p, n, k.what)
	if !ok {
		return nil, false
	}
	if n.Tag == "!!null" || text == "" {
		p.say(n, "%s is empty", k.what)
		return nil, false
	}
	if len(k.choices) > 0 && !slices.Contains(k.choices, text) {
		p.say(n, "%s %q: choose one of %s%s", k.what, text, strings.Join(k.choices, ", "), nearest.Hint(text, k.choices))
		return nil, false
	}
	if k.check != nil {
		if err := k.check(text); err != nil {
			p.say(n, "%s", err)
			return nil, false
		}
	}
	return text, true
}

func (k word) schema() map[string]any {
	s := map[string]any{"type": "string", "minLength": 1}
	if len(k.choices) > 0 {
		return map[string]any{"enum": k.choices}
	}
	if k.pattern != "" {
		s["pattern"] = k.pattern
	}
	return s
}

func scalar(p *parser, n *yaml.Node, what string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		p.say(n, "%s is one value, not %s", what, describe(n))
		return "", false
	}
	return n.Value, true
}

// flag is true or false.
type flag struct{ what string }

func (k flag) decode(p *parser, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		p.say(n, "%s is true or false, not %s", k.what, describe(n))
		return nil, false
	}
	v, err := strconv.ParseBool(strings.ToLower(n.Value))
	if err != nil {
		p.say(n, "%s is true or false, not %s", k.what, describe(n))
	}
	return v, err == nil
}

func (k flag) schema() map[string]any { return map[string]any{"type": "boolean"} }

// number is a whole number within bounds.
type number struct {
	what     string
	min, max uint64
}

func (k number) decode(p *parser, n *yaml.Node) (any, bool) {
	text, ok := scalar(p, n, k.what)
	if !ok {
		return nil, false
	}
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil || n.Tag != "!!int" || v < k.min || v > k.max {
		p.say(n, "%s %s: a whole number from %d to %d", k.what, describe(n), k.min, k.max)
		return nil, false
	}
	return v, true
}

func (k number) schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": k.min, "maximum": k.max}
}

// duration is a time like 10s.
type duration struct {
	what     string
	min, max time.Duration
}

func (k duration) decode(p *parser, n *yaml.Node) (any, bool) {
	text, ok := scalar(p, n, k.what)
	if !ok {
		return nil, false
	}
	v, err := time.ParseDuration(text)
	if err != nil || n.Tag == "!!int" {
		p.say(n, "%s %s: a time like 10s, 500ms or 24h", k.what, describe(n))
		return nil, false
	}
	if v < k.min || v > k.max {
		p.say(n, "%s %s: allowed are %v to %v", k.what, text, k.min, k.max)
		return nil, false
	}
	return v, true
}

func (k duration) schema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`}
}

// size is a number of bytes like 256MiB.
type size struct {
	what     string
	min, max int64
}

func (k size) decode(p *parser, n *yaml.Node) (any, bool) {
	text, ok := scalar(p, n, k.what)
	if !ok {
		return nil, false
	}
	v, err := algo.ParseSize(text)
	if err != nil || n.Tag == "!!null" {
		p.say(n, "%s %s: a size like 64KiB or 256MiB", k.what, describe(n))
		return nil, false
	}
	if v < k.min || v > k.max {
		p.say(n, "%s %s: allowed are %d to %d bytes", k.what, text, k.min, k.max)
		return nil, false
	}
	return v, true
}

func (k size) schema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": k.min, "maximum": k.max},
		map[string]any{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)? *(KiB|MiB|GiB|kB|MB|GB|B)?$`}}}
}

// list is a sequence of one kind.
type list[T any] struct {
	what string
	of   kind
	min  int
}

func (k list[T]) decode(p *parser, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		p.say(n, "%s is a list, not %s", k.what, describe(n))
		return nil, false
	}
	if len(n.Content) < k.min {
		p.say(n, "%s is empty", k.what)
		return nil, false
	}
	values, good := make([]T, 0, len(n.Content)), true
	for _, c := range n.Content {
		v, ok := decode(p, k.of, c)
		if !ok {
			good = false
			continue
		}
		values = append(values, v.(T))
	}
	return values, good
}

func (k list[T]) schema() map[string]any {
	s := map[string]any{"type": "array", "items": k.of.schema()}
	if k.min > 0 {
		s["minItems"] = k.min
	}
	return s
}

func decode(p *parser, k kind, n *yaml.Node) (any, bool) {
	if n = p.enter(n); n == nil {
		return nil, false
	}
	defer p.leave()
	return k.decode(p, n)
}

// field is a key of an object.
type field[T any] struct {
	key, help string
	kind      kind
	required  bool
	set       func(*T, any)
}

// object is a mapping with known keys.
type object[T any] struct {
	what     string
	defaults func() T
	fields   []field[T]
	// check looks at what belongs together; at finds the value of a key, or the object.
	check func(p *parser, at func(key string) *yaml.Node, v *T)
}

func (o object[T]) keys() []string {
	keys := make([]string, len(o.fields))
	for i, f := range o.fields {
		keys[i] = f.key
	}
	return keys
}

func (o object[T]) decode(p *parser, n *yaml.Node) (any, bool) {
	v := o.defaults()
	entries, good := p.pairs(n, o.what)
	given := map[string]*yaml.Node{}
	for _, e := range entries {
		i := slices.Index(o.keys(), e.key.Value)
		if i < 0 {
			p.unknown(e.key, o.what, o.keys())
			good = false
			continue
		}
		given[e.key.Value] = e.value
		value, ok := decode(p, o.fields[i].kind, e.value)
		if !ok {
			good = false
			continue
		}
		o.fields[i].set(&v, value)
	}
	for _, f := range o.fields {
		if f.required && given[f.key] == nil && (n.Kind == yaml.MappingNode || n.Tag == "!!null") {
			p.say(n, "%s lacks %s: %s", o.what, f.key, f.help)
			good = false
		}
	}
	if good && o.check != nil {
		before := len(p.problems)
		o.check(p, func(key string) *yaml.Node {
			if given[key] != nil {
				return given[key]
			}
			return n
		}, &v)
		good = len(p.problems) == before
	}
	return v, good
}

func (o object[T]) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range o.fields {
		s := f.kind.schema()
		s["description"] = f.help
		properties[f.key] = s
		if f.required {
			required = append(required, f.key)
		}
	}
	s := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["type"], s["required"] = "object", required
	}
	return s
}

// to makes the setter of a field of a type.
func to[T, V any](f func(*T) *V) func(*T, any) {
	return func(t *T, v any) { *f(t) = v.(V) }
}
