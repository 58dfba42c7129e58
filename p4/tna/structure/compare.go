package structure

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/loader/pisa"
)

// Sides of a comparison.
const (
	Host   = "host"
	Switch = "switch"
	Both   = "both" // index or written value depend on Source on both sides, though only one side's condition does
)

// Facets in which a register may differ.
const (
	Missing   = "missing"   // on Side
	Width     = "width"     // Source: bits of the host and of the switch
	Entries   = "entries"   // likewise
	Initial   = "initial"   // Source: initial value on the switch; on the host it is 0
	Order     = "order"     // Source: a register that the switch reaches before, and the host has in a later stage
	Condition = "condition" // only Side's condition depends on Source
	Index     = "index"
	Written   = "written"
	Unused    = "unused" // Source: a RegisterAction that no packet reaches
	Uneven    = "uneven" // Source: an action, and what the index of the register's other actions depends on
)

// Difference is a difference found by a comparison.
type Difference struct {
	Register string `json:"register"`
	Facet    string `json:"facet"`
	Side     string `json:"side"`
	Source   string `json:"source"`
}

// String is the difference as a list has it.
func (d Difference) String() string {
	return fmt.Sprintf("%s %s %s %s", d.Register, d.Facet, d.Side, d.Source)
}

// Compare compares a twin with its bytecode.
func Compare(host []pisa.Touch, twin []Touch) []Difference {
	c := comparison{stages: map[string]int{}}
	for _, h := range host {
		c.stages[h.Array] = h.Stage
	}
	for _, h := range host {
		i := slices.IndexFunc(twin, func(t Touch) bool { return t.Register == h.Array })
		if i < 0 {
			c.add(h.Array, Missing, Switch, "all")
			continue
		}
		c.one(h, twin[i])
	}
	for _, t := range twin {
		if _, ok := c.stages[t.Register]; !ok {
			c.add(t.Register, Missing, Host, "all")
		}
	}
	return c.found
}

type comparison struct {
	stages map[string]int // of the host's arrays
	found  []Difference
}

func (c *comparison) add(register, facet, side, source string) {
	d := Difference{register, facet, side, source}
	if !slices.Contains(c.found, d) {
		c.found = append(c.found, d)
	}
}

func (c *comparison) one(h pisa.Touch, t Touch) {
	if h.WidthBits != t.WidthBits {
		c.add(h.Array, Width, Switch, fmt.Sprintf("%d:%d", h.WidthBits, t.WidthBits))
	}
	if h.Entries != t.Entries {
		c.add(h.Array, Entries, Switch, fmt.Sprintf("%d:%d", h.Entries, t.Entries))
	}
	for _, n := range t.Initial {
		if n != 0 {
			c.add(h.Array, Initial, Switch, fmt.Sprint(n))
		}
	}
	for _, earlier := range t.Before {
		if stage, ok := c.stages[earlier]; ok && stage > h.Stage {
			c.add(h.Array, Order, Switch, earlier)
		}
	}
	for _, name := range t.Unused {
		c.add(h.Array, Unused, Switch, name)
	}
	for _, which := range t.Uneven {
		c.add(h.Array, Uneven, Switch, which)
	}
	// The condition of an access also affects index and value: a source that is in one side's condition alone is reported if the
	// other side's index or value has it.
	c.sources(h.Array, Condition, hostSources(h.Condition), t.Condition, nil)
	known := slices.Clone(c.found)
	c.sources(h.Array, Index, hostSources(h.Index), t.Index, known)
	if h.Write || len(t.Written) > 0 {
		c.sources(h.Array, Written, hostSources(h.Written), t.Written, known)
	}
}

func (c *comparison) sources(register, facet string, host, twin []string, known []Difference) {
	for _, side := range []struct {
		name      string
		has, less []string
	}{{Host, host, twin}, {Switch, twin, host}} {
		for _, s := range side.has {
			if !slices.Contains(side.less, s) && !slices.Contains(known, Difference{register, Condition, side.name, s}) {
				c.add(register, facet, side.name, s)
			}
			if slices.Contains(side.less, s) && slices.Contains(known, Difference{register, Condition, side.name, s}) {
				c.add(register, facet, Both, s)
			}
		}
	}
}

// hostSources are the bytecode's sources by the names that both sides use.
func hostSources(of []string) []string {
	var out []string
	for _, name := range of {
		if to := hostSource(name); to != "" && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	slices.Sort(out)
	return out
}
