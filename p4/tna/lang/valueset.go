package lang

import (
	"fmt"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// ValueSet is a parser's value set, which the control plane fills. It is initially empty.
type ValueSet struct {
	Name    string
	Width   int // bits
	Size    int
	members []Match
}

// NewValueSet makes a value_set.
func NewValueSet(s *Scope, i *syntax.Instance) any {
	Arguments(i, 1, 1)
	v := &ValueSet{Name: s.Path + i.Name, Width: s.ScalarType(i.Type.Args[0]).Width, Size: s.Positive(i.Args[0], 1<<10)}
	s.Build.ValueSets = append(s.Build.ValueSets, v)
	return v
}

// Call rejects all methods.
func (*ValueSet) Call(_ *Scope, e *syntax.Call, _ string) Expr {
	syntax.Throw(e.Pos, "a value set has no methods")
	return Expr{}
}

// Add adds a value with its mask.
func (v *ValueSet) Add(value, under uint64) error {
	if all := Mask(v.Width); value&^all != 0 || under&^all != 0 {
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

// valueSet is the value set of a select case; nil: none.
func (s *Scope) valueSet(c *syntax.Case, keys []Key) *ValueSet {
	n, ok := c.Keys[0].(*syntax.Name)
	if !ok {
		return nil
	}
	v, ok := s.Find(n.ID).(*ValueSet)
	if !ok {
		return nil
	}
	if len(keys) != 1 || len(c.Keys) != 1 || keys[0].Width != v.Width {
		syntax.Throw(c.Pos, "value set %s is matched with one key of %d bits", v.Name, v.Width)
	}
	return v
}
