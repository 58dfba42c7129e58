package run

import (
	"fmt"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// ValueSet is a parser's set of values, which the control plane fills. It begins empty.
type ValueSet struct {
	Name    string
	Width   int // bits
	Size    int
	members []Match
}

func newValueSet(s *scope, i *syntax.Instance) any {
	arguments(i, 1, 1)
	v := &ValueSet{Name: s.path + i.Name, Width: s.scalarType(i.Type.Args[0]).width, Size: s.positive(i.Args[0], 1<<10)}
	s.build.ValueSets = append(s.build.ValueSets, v)
	return v
}

func (*ValueSet) call(_ *scope, e *syntax.Call, _ string) expr {
	syntax.Throw(e.Pos, "a value set has no methods")
	return expr{}
}

// Add a value under a mask.
func (v *ValueSet) Add(value, under uint64) error {
	if all := mask(v.Width); value&^all != 0 || under&^all != 0 {
		return fmt.Errorf("add to value set %s: %#x under %#x has more than %d bits", v.Name, value, under, v.Width)
	}
	if len(v.members) == v.Size {
		return fmt.Errorf("add to value set %s: it has %d members", v.Name, v.Size)
	}
	v.members = append(v.members, Match{Value: value & under, Mask: under})
	return nil
}

func (v *ValueSet) has(key uint64) bool {
	for i := range v.members {
		if (key^v.members[i].Value)&v.members[i].Mask == 0 {
			return true
		}
	}
	return false
}

// valueSet is the one that a case of a select names; nil: it names none.
func (s *scope) valueSet(c *syntax.Case, keys []Key) *ValueSet {
	n, ok := c.Keys[0].(*syntax.Name)
	if !ok {
		return nil
	}
	v, ok := s.find(n.ID).(*ValueSet)
	if !ok {
		return nil
	}
	if len(keys) != 1 || len(c.Keys) != 1 || keys[0].Width != v.Width {
		syntax.Throw(c.Pos, "value set %s is matched with one key of %d bits", v.Name, v.Width)
	}
	return v
}
