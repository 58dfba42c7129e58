package mutate

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// handKinds are bugs of what is written by hand around the arithmetic: entries and their masks, defaults, operands, headers, predicates.
var handKinds = []string{"mask", "operand", "default", "missing entry", "argument", "header", "predicate", "flag"}

// entries: one that is missing, and masks, flags and arguments of those that are there. Left out is what no key can show: keys that an earlier
// entry takes, and those that another entry gives the same.
func (f *finder) entries(t *syntax.Table) {
	table := f.rows[t.Pos]
	for i, e := range t.Entries {
		was, less := t.Entries, slices.Concat(t.Entries[:i], t.Entries[i+1:])
		f.entry(t, i, "missing entry", fmt.Sprintf("no entry %d of %s", i, t.Name), func() { t.Entries = less }, func() { t.Entries = was })
		f.seen("missing entry", func() bool { return differs(table, i, table.Rows[i].Match) })
		for k, key := range table.Keys {
			f.masks(t, i, k, key)
		}
		for k, was := range e.Action.Args {
			n, ok := was.(*syntax.Number)
			if !ok {
				continue
			}
			other := &syntax.Number{Pos: n.Pos, Width: n.Width, Value: n.Value ^ 1}
			f.entry(t, i, "argument", fmt.Sprintf("%d for %d in entry %d of %s", other.Value, n.Value, i, t.Name), func() { e.Action.Args[k] = other }, func() { e.Action.Args[k] = n })
			f.seen("argument", func() bool { return reachable(table.Rows[i].Match, table.Rows[:i]) })
		}
	}
	f.standard(t)
}

// entry adds a bug of an entry.
func (f *finder) entry(t *syntax.Table, i int, kind, what string, plant, remove func()) {
	e := t.Entries[i]
	f.add(e.Pos, kind, what, plant, remove)
	last := f.bugs[kind][len(f.bugs[kind])-1]
	last.Table, last.Row = f.rows[t.Pos], f.rows[t.Pos].Rows[i]
}

// standard is what a table does on a miss, if the control plane cannot change it.
func (f *finder) standard(t *syntax.Table) {
	table := f.rows[t.Pos]
	if !t.ConstDefault || t.Default == nil || len(t.Keys) == 0 {
		return
	}
	was := t.Default
	for _, n := range t.Actions {
		if n.ID == was.Fn.(*syntax.Name).ID {
			continue
		}
		var args []syntax.Expr
		for _, e := range t.Entries {
			if e.Action.Fn.(*syntax.Name).ID == n.ID {
				args = e.Action.Args
			}
		}
		other := &syntax.Call{Pos: was.Pos, Fn: n, Args: args}
		f.add(was.Pos, "default", fmt.Sprintf("%s for %s in a miss of %s", n.ID, was.Fn.(*syntax.Name).ID, t.Name), func() { t.Default = other }, func() { t.Default = was })
		f.seen("default", func() bool { return reachable(anything(table), table.Rows) })
	}
}

// masks of a key of an entry: a bit more, a bit less, or a range one number longer. Each bit of TCP's flags, of others the lowest and the
// highest that any entry of the table looks at.
func (f *finder) masks(t *syntax.Table, i, k int, key lang.Key) {
	table := f.rows[t.Pos]
	m := table.Rows[i].Match[k]
	kind, each := "mask", false
	if strings.HasSuffix(key.Name, "tcp.flags") {
		kind, each = "flag", true
	}
	switch {
	case m.Range && m.High < lang.Mask(key.Width):
		f.mask(t, i, k, kind, lang.Match{Value: m.Value, High: m.High + 1, Range: true}, lang.Match{Value: m.High + 1, High: m.High + 1, Range: true}, true)
	case key.Kind == "ternary":
		used := lang.Mask(key.Width)
		if !strings.HasPrefix(key.Name, "hdr.") { // a small number: bits that some entry has
			used = 1
			for _, row := range table.Rows {
				used |= row.Match[k].Value
			}
		}
		for _, bit := range bitsOf(m.Mask&used, each) {
			f.mask(t, i, k, kind, lang.Match{Value: m.Value &^ bit, Mask: m.Mask &^ bit}, lang.Match{Value: m.Value ^ bit, Mask: m.Mask}, true)
		}
		for _, bit := range bitsOf(used&^m.Mask, each) {
			f.mask(t, i, k, kind, lang.Match{Value: m.Value, Mask: m.Mask | bit}, lang.Match{Value: m.Value | bit, Mask: m.Mask | bit}, false)
		}
	}
}

func bitsOf(mask uint64, each bool) (all []uint64) {
	for n := mask; n != 0; n &= n - 1 {
		all = append(all, n&-n)
	}
	if each || len(all) < 3 {
		return all
	}
	return []uint64{all[0], 1 << (bits.Len64(mask) - 1)}
}

// mask plants to as a key of an entry, which gives or takes (more: gives) it the keys that are changed.
func (f *finder) mask(t *syntax.Table, i, k int, kind string, to, changed lang.Match, more bool) {
	table := f.rows[t.Pos]
	keys := slices.Clone(table.Rows[i].Match)
	keys[k] = changed
	op, second := "&&&", to.Mask
	if to.Range {
		op, second = "..", to.High
	}
	e := t.Entries[i]
	was := e.Keys[k]
	other := &syntax.Binary{Pos: e.Pos, Op: op, X: &syntax.Number{Pos: e.Pos, Value: to.Value}, Y: &syntax.Number{Pos: e.Pos, Value: second}}
	what := fmt.Sprintf("%s for %s of %s in entry %d of %s", syntax.Print(other), syntax.Print(was), table.Keys[k].Name, i, t.Name)
	plant, remove := func() { e.Keys[k] = other }, func() { e.Keys[k] = was }
	if more { // what earlier rows leave of it is not this row's
		f.add(e.Pos, kind, what, plant, remove)
	} else {
		f.entry(t, i, kind, what, plant, remove)
	}
	f.seen(kind, func() bool { return differs(table, i, keys) })
}

// seen is asked of the bug of a kind that was found last, when it is drawn: whether any key could show it.
func (f *finder) seen(kind string, by func() bool) { f.bugs[kind][len(f.bugs[kind])-1].Shows = by }

// differs reports whether some of the keys, which rows before entry i leave, get from later entries something else than entry i gives.
func differs(t *lang.Table, i int, keys []lang.Match) bool {
	before, splits := t.Rows[:i], 0
	for j := i + 1; j < len(t.Rows); j++ {
		shared, meet := common(keys, t.Rows[j].Match)
		if meet && !sameEffect(t.Rows[j], t.Rows[i]) && remains(regionOf(shared), slices.Concat(before, t.Rows[i+1:j]), &splits) {
			return true
		}
	}
	return (t.Default == nil || !sameEffect(t.Default, t.Rows[i])) && remains(regionOf(keys), slices.Concat(before, t.Rows[i+1:]), &splits)
}

func sameEffect(a, b *lang.Row) bool { return a.Action == b.Action && slices.Equal(a.Args, b.Args) }

// anything is all keys of a table.
func anything(t *lang.Table) (keys []lang.Match) {
	for _, k := range t.Keys {
		keys = append(keys, lang.Match{High: lang.Mask(k.Width), Range: k.Kind == "range"})
	}
	return keys
}

// operands of a control: each variable and parameter, by its type.
func operands(c *syntax.Control) map[string][]string {
	of := map[string][]string{}
	add := func(t *syntax.Type, name string) {
		key := typeText(t)
		of[key] = append(of[key], name)
	}
	for _, p := range c.Params {
		add(p.Type, p.Name)
	}
	for _, d := range c.Locals {
		if v, ok := d.(*syntax.Var); ok {
			add(v.Type, v.Name)
		}
	}
	return of
}

func typeText(t *syntax.Type) string {
	if t.Width != nil {
		return t.Name + syntax.Print(t.Width)
	}
	return t.Name
}

// name is an operand, in whose place others of its type could stand.
func (f *finder) name(e *syntax.Name) {
	for _, all := range f.operands {
		if !slices.Contains(all, e.ID) {
			continue
		}
		at := slices.Index(all, e.ID)
		if other := all[(at+1)%len(all)]; other != e.ID {
			was := e.ID
			f.add(e.Pos, "operand", fmt.Sprintf("%s for %s%s", other, was, f.to), func() { e.ID = other }, func() { e.ID = was })
		}
	}
}

// header: a field of a header that is left as it was.
func (f *finder) header(b *syntax.Block, i int) {
	at := b.Stmts[i]
	var what string
	switch s := at.(type) {
	case *syntax.Assign:
		what = syntax.Print(s.L)
	case *syntax.Do:
		what = syntax.Print(s.Call)
		if !strings.HasSuffix(what, "setValid()") && !strings.HasSuffix(what, "setInvalid()") {
			return
		}
	}
	if strings.Count(what, ".") < 2 {
		return
	}
	nothing := &syntax.Block{Pos: at.At()}
	f.add(at.At(), "header", "without "+what, func() { b.Stmts[i] = nothing }, func() { b.Stmts[i] = at })
}

// predicate: one that is not asked, is asked the other way round, or of which a half is missing.
func (f *finder) predicate(b *syntax.Block, i int, s *syntax.If) {
	was, text := s.Cond, syntax.Print(s.Cond)
	f.add(s.Pos, "predicate", "unless "+text, func() { s.Cond = &syntax.Unary{Pos: s.Pos, Op: "!", X: was} }, func() { s.Cond = was })
	if c, ok := was.(*syntax.Binary); ok && (c.Op == "&&" || c.Op == "||") {
		f.add(s.Pos, "predicate", fmt.Sprintf("%s alone of %s", syntax.Print(c.X), text), func() { s.Cond = c.X }, func() { s.Cond = was })
		f.add(s.Pos, "predicate", fmt.Sprintf("%s alone of %s", syntax.Print(c.Y), text), func() { s.Cond = c.Y }, func() { s.Cond = was })
	}
	f.add(s.Pos, "predicate", "whether or not "+text, func() { b.Stmts[i] = s.Then }, func() { b.Stmts[i] = s })
}
