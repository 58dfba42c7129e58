package parts

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/maps"
	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/config"
	"github.com/xdpmon/xdpmon/userspace/nearest"
	"github.com/xdpmon/xdpmon/userspace/session"
)

// Chosen is an algorithm of the file, with its node.
type Chosen struct {
	session.Selected
	At *yaml.Node
}

// Algorithms is a mapping of names to parameters, in the order of the chain.
type Algorithms struct{}

func (Algorithms) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	entries, good := p.Pairs(n, "algorithms")
	var all []Chosen
	for _, e := range entries {
		d, err := algo.Lookup(e.Key.Value)
		if err != nil {
			p.Errorf(e.Key, "there is no algorithm %q: there are %s%s", e.Key.Value, strings.Join(algo.Names(), ", "), nearest.Hint(e.Key.Value, algo.Names()))
			good = false
			continue
		}
		v, ok := config.Decode(p, parameters{d}, e.Value)
		if !ok {
			good = false
			continue
		}
		all = append(all, Chosen{algo.Selected{Descriptor: d, Values: v.(algo.Values)}, e.Key})
	}
	if good && len(all) == 0 {
		p.Errorf(n, "algorithms are missing: choose from %s", strings.Join(algo.Names(), ", "))
		good = false
	}
	if most := maps.ChainSlots; len(all) > most {
		p.Errorf(n, "%d algorithms are too many for one instance: at most %d", len(all), most)
		good = false
	}
	return all, good
}

// AlgorithmsFile is the schema of all algorithms' parameters, which the schemas of configurations refer to.
const AlgorithmsFile = "algorithms.schema.json"

// Schema refers to AlgorithmsFile, which both configurations share.
func (Algorithms) Schema() map[string]any { return map[string]any{"$ref": AlgorithmsFile} }

// blocks is the content of AlgorithmsFile.
type blocks struct{ Algorithms }

func (blocks) Schema() map[string]any {
	properties := map[string]any{}
	for _, d := range algo.All() {
		s := parameters{d}.Schema()
		s["description"] = d.Summary
		properties[d.Name] = s
	}
	return map[string]any{"$id": AlgorithmsFile, "type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": maps.ChainSlots}
}

// Bundled is what a self-contained schema includes.
func Bundled() map[string]any { return map[string]any{"algorithms": blocks{}.Schema()} }

// AlgorithmsSchema is the content of AlgorithmsFile.
func AlgorithmsSchema() ([]byte, error) {
	return config.WriteSchema(blocks{}, "algorithms of xdpmon and their parameters", nil)
}

// parameters of an algorithm.
type parameters struct{ d *algo.Descriptor }

func (k parameters) keys() []string {
	keys := make([]string, len(k.d.Params))
	for i, p := range k.d.Params {
		keys[i] = p.Key
	}
	return keys
}

func (k parameters) find(key string) (algo.Param, bool) {
	for _, p := range k.d.Params {
		if p.Key == key {
			return p, true
		}
	}
	return algo.Param{}, false
}

func (k parameters) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	entries, good := p.Pairs(n, k.d.Name)
	set := map[string]string{}
	for _, e := range entries {
		param, known := k.find(e.Key.Value)
		if !known {
			p.Unknown(e.Key, k.d.Name, k.keys())
			good = false
			continue
		}
		text, ok := k.value(p, e, param)
		if !ok {
			good = false
			continue
		}
		set[param.Key] = text
	}
	v, err := algo.NewValues(k.d.Name, k.d.Params, set)
	return v, good && err == nil
}

func (k parameters) value(p *config.Parser, e config.Pair, param algo.Param) (string, bool) {
	n := e.Value
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	text, ok := config.Scalar(p, n, k.d.Name+"."+param.Key)
	if !ok {
		return "", false
	}
	if n.Tag == "!!null" {
		p.Errorf(n, "%s.%s has no value", k.d.Name, param.Key)
		return "", false
	}
	if n.Tag == "!!bool" {
		text = strings.ToLower(text)
	}
	if _, err := algo.NewValues(k.d.Name, k.d.Params, map[string]string{param.Key: text}); err != nil {
		p.Errorf(n, "%s", strings.TrimPrefix(err.Error(), "set "))
		return "", false
	}
	return text, true
}

func (k parameters) Schema() map[string]any {
	properties := map[string]any{}
	for _, p := range k.d.Params {
		s := map[string]any{"type": paramTypes[p.Type], "description": p.Help, "default": p.Default}
		if p.Type == algo.Enum {
			s["enum"] = p.Choices
			delete(s, "type")
		}
		properties[p.Key] = s
	}
	return map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// paramTypes are the YAML types of a parameter in the file; its range is checked by the algorithm's declaration.
var paramTypes = map[algo.Type][]string{
	algo.Int: {"integer", "string"}, algo.Float: {"number", "string"}, algo.String: {"string", "number", "boolean"},
	algo.Duration: {"string"}, algo.Size: {"integer", "string"}, algo.Bool: {"boolean", "string"},
}

// Judge configures the algorithms, which may reject combinations of values that are allowed one by one.
func Judge(p *config.Parser, list []Chosen, setup algo.Setup, env algo.Env) (selected []session.Selected) {
	window := setup.WindowNS
	for _, c := range list {
		setup.WindowNS = session.LengthOf(c.Selected, time.Duration(window))
		s, err := c.For(setup)
		if err == nil {
			_, err = s.New(env)
		}
		if err != nil {
			p.Errorf(c.At, "%s", strings.TrimPrefix(err.Error(), "set "))
			s = c.Selected
		}
		selected = append(selected, s)
	}
	return selected
}
