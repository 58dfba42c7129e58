package state

import (
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa/declared"
	"github.com/xdpmon/xdpmon/loader/pisa/value"
)

// Access is the read-modify-write of one register array on a path, until an array of a later stage is
// touched: after that any further access breaks a rule, so the record is not needed.
type Access struct {
	Array   int32
	Lookups uint8 // made on this path
	Touched bool
	Lookup  uint8   // the one whose pointer was used
	Written uint8   // bytes of the element
	First   int32   // instruction that touched it first
	Tests   []int32 // branches since, on the path with most of them
	Own     []int32 // branches since on a number that depends on the element, on any path
}

// AccessTo is the unfinished access to an array on this path, or nil.
func (s *State) AccessTo(array int32) *Access {
	i := slices.IndexFunc(s.Access, func(a Access) bool { return a.Array == array })
	if i < 0 {
		return nil
	}
	return &s.Access[i]
}

// CountTest records a branch in every unfinished read-modify-write.
func (s *State) CountTest(pc int, t value.Taint, arrays []*declared.Array) {
	for i := range s.Access {
		a := &s.Access[i]
		if !a.Touched {
			continue
		}
		if len(a.Tests) <= Conditions {
			a.Tests = append(slices.Clone(a.Tests), int32(pc))
		}
		if t.From.Meets(arrays[a.Array].Bit) && !slices.Contains(a.Own, int32(pc)) && len(a.Own) <= Conditions {
			a.Own = append(slices.Clone(a.Own), int32(pc))
		}
	}
}

const (
	ManyLookups = 3 // lookups of one array that are distinguished on one path
	Conditions  = 2 // in one read-modify-write
)
