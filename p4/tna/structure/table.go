package structure

import (
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// apply runs one of a table's actions: those of its entries and its default one, or all if the control plane may choose.
func (t *table) apply() set {
	w, d := t.in.w, t.decl
	entries, always := t.reached()
	decides := t.decides(entries)
	fixed := d.ConstEntries && (d.ConstDefault || d.Default == nil)
	chosen := map[string]bool{}
	if fixed {
		for _, e := range entries {
			chosen[actionOf(e.Action)] = true
		}
		if d.Default != nil && !always {
			chosen[actionOf(d.Default)] = true
		}
	} else {
		for _, a := range d.Actions {
			chosen[a.ID] = true
		}
	}
	data := t.data(fixed)
	if len(chosen) == 1 && len(d.Keys) == 0 {
		decides = set{}
	}
	var alternatives []func()
	for _, name := range d.Actions {
		a, ok := t.in.find(name.ID).(*action)
		if !ok || !chosen[name.ID] {
			continue
		}
		alternatives = append(alternatives, func() {
			params := make([]set, len(a.decl.Params))
			for i := range params {
				params[i] = data.or(decides).or(w.guard)
			}
			a.run(params)
		})
	}
	if d.Default == nil && !always { // nothing on a miss
		alternatives = append(alternatives, func() {})
	}
	if len(alternatives) == 1 {
		alternatives[0]()
		return decides
	}
	w.fork(decides, alternatives...)
	return decides
}

func actionOf(c *syntax.Call) string {
	if name, ok := c.Fn.(*syntax.Name); ok {
		return name.ID
	}
	return ""
}

// data is the source of an action's parameters: what the control plane writes.
func (t *table) data(fixed bool) set {
	name := t.in.path + t.decl.Name
	switch {
	case t.in.w.window != "" && strings.HasSuffix("."+name, "."+t.in.w.window):
		return t.in.w.names.of(bankSource)
	case fixed:
		return set{}
	}
	return t.in.w.names.of(tablePrefix + t.decl.Name)
}

// reached are the entries up to the first that matches every key; always reports whether there is one.
func (t *table) reached() (entries []*syntax.Entry, always bool) {
	for i, e := range t.decl.Entries {
		looks := false
		for _, k := range e.Keys {
			_, one := t.maskOf(k)
			looks = looks || one
		}
		if !looks {
			return t.decl.Entries[:i+1], true
		}
	}
	return t.decl.Entries, false
}

// decides is what the parts of the key that entries look at depend on; all of the key if the control plane writes the entries.
func (t *table) decides(entries []*syntax.Entry) (of set) {
	for i, k := range t.decl.Keys {
		if !t.decl.ConstEntries {
			of = of.or(t.in.expr(k.X))
			continue
		}
		var mask uint64
		looks := false
		for _, e := range entries {
			m, any := t.maskOf(e.Keys[i])
			mask |= m
			looks = looks || any
		}
		if !looks {
			continue
		}
		if p, sliced, ok := t.in.place(k.X); ok && !sliced && p == flags {
			of = of.or(t.in.w.flagBits(mask))
		} else {
			of = of.or(t.in.expr(k.X))
		}
	}
	return of
}

// maskOf returns the bits of an entry's part that must match; ok is false if there are none.
func (t *table) maskOf(e syntax.Expr) (uint64, bool) {
	switch e := e.(type) {
	case *syntax.Any:
		return 0, false
	case *syntax.Binary:
		if e.Op == "&&&" {
			if m, ok := t.in.constant(e.Y); ok {
				return m, m != 0
			}
		}
	}
	return ^uint64(0), true
}
