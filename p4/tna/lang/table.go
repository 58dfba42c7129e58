package lang

import (
	"fmt"
	"slices"

	"github.com/xdpmon/xdpmon/p4/tna/match"
	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Table is a table of one instance of a control.
type Table struct {
	Name         string // with its control's path: fridge.window
	At           syntax.Pos
	Keys         []Key
	Size         int
	Rows         []*Row // in order of priority
	Default      *Row   // nil: a miss does nothing
	Fixed        bool   // entries are constant
	FixedDefault bool
	HasCounters  bool
	actions      map[string]*action
	names        []string     // in the order of the list
	outcome      *Place       // nil: the result of apply is not used
	index        *match.Index // of Rows; nil: not built yet
}

// Key is one part of a table's key.
type Key struct {
	Name  string
	Kind  string // exact, ternary, range, lpm
	Width int
	eval  Eval
}

// Match is a row's condition on one key.
type Match = match.One

// Row is an entry, or the default action, with its direct counter.
type Row struct {
	At      syntax.Pos
	Match   []Match
	Action  string
	Args    []uint64
	Runs    uint64
	Packets uint64 // of the direct counter
	action  *action
}

const (
	mostKeys = 16
	noAction = "NoAction" // predefined in every program
)

func (s *Scope) table(d *syntax.Table) *Table {
	t := &Table{Name: s.Path + d.Name, At: d.Pos, Fixed: d.ConstEntries, FixedDefault: d.ConstDefault, actions: map[string]*action{}}
	if d.Size != nil {
		t.Size = s.Positive(d.Size, 1<<24)
	}
	for _, n := range d.Actions {
		t.actions[n.ID] = s.listed(n)
		t.names = append(t.names, n.ID)
	}
	if len(d.Keys) > mostKeys {
		syntax.Throw(d.Pos, "%d keys: the model has %d", len(d.Keys), mostKeys)
	}
	for _, k := range d.Keys {
		t.Keys = append(t.Keys, s.key(k))
	}
	for _, e := range d.Entries {
		t.Rows = append(t.Rows, s.entry(t, e))
	}
	if n := t.kinds("lpm"); n > 1 || n == 1 && t.kinds("ternary")+t.kinds("range") > 0 {
		syntax.Throw(d.Pos, "table %s: one key that is lpm, beside exact ones: that is what the Tofino back end has", d.Name)
	}
	if t.Size > 0 && len(t.Rows) > t.Size {
		syntax.Throw(d.Pos, "table %s has %d entries and size %d", d.Name, len(t.Rows), t.Size)
	}
	if d.Default != nil {
		t.Default = s.row(t, d.Default)
	}
	t.hit(s)
	s.counted(t, d)
	s.Build.Tables = append(s.Build.Tables, t)
	return t
}

// listed is an action of a table's list.
func (s *Scope) listed(n *syntax.Name) *action {
	if n.ID == noAction && s.Find(n.ID) == nil {
		return &action{name: noAction, at: n.Pos, body: func(*Machine) {}}
	}
	a, ok := s.Must(n.Pos, n.ID).(*action)
	if !ok {
		syntax.Throw(n.Pos, "%s is no action", n.ID)
	}
	return a
}

// kinds counts the keys of a kind.
func (t *Table) kinds(kind string) (n int) {
	for _, k := range t.Keys {
		n += int(Number(k.Kind == kind))
	}
	return n
}

func (s *Scope) counted(t *Table, d *syntax.Table) {
	if d.Counters == nil {
		return
	}
	c, ok := s.Must(d.Counters.Pos, d.Counters.ID).(direct)
	if !ok || !c.Join(t) {
		syntax.Throw(d.Counters.Pos, "%s is no DirectCounter of this table alone", d.Counters.ID)
	}
	t.HasCounters = true
}

func (s *Scope) key(k *syntax.Key) Key {
	x := s.Value(k.X)
	if x.Type.Class == classInt {
		syntax.Throw(k.Pos, "a key without a width")
	}
	switch k.Kind {
	case "exact", "ternary", "lpm":
	case "range":
		if x.Type.Width > 20 {
			syntax.Throw(k.Pos, "a range over %d bits: the chip has 20", x.Type.Width)
		}
	default:
		syntax.Throw(k.Pos, "a key that is %s is outside of the model", k.Kind)
	}
	return Key{Name: syntax.Print(k.X), Kind: k.Kind, Width: x.Type.Width, eval: x.Eval}
}

func (s *Scope) entry(t *Table, e *syntax.Entry) *Row {
	if len(e.Keys) != len(t.Keys) {
		syntax.Throw(e.Pos, "%d values for the %d keys of table %s", len(e.Keys), len(t.Keys), t.Name)
	}
	r := s.row(t, e.Action)
	r.At = e.Pos
	for i, k := range e.Keys {
		r.Match = append(r.Match, s.match(k, t.Keys[i]))
	}
	return r
}

// row compiles a call of one of the table's actions with constants.
func (s *Scope) row(t *Table, c *syntax.Call) *Row {
	name := c.Fn.(*syntax.Name)
	a, ok := t.actions[name.ID]
	if !ok {
		syntax.Throw(name.Pos, "%s is no action of table %s", name.ID, t.Name)
	}
	if len(c.Args) != len(a.params) {
		syntax.Throw(c.Pos, "action %s has %d parameters, %d are given", name.ID, len(a.params), len(c.Args))
	}
	r := &Row{At: c.Pos, Action: name.ID, action: a}
	for i, arg := range c.Args {
		x := s.Value(arg).As(a.params[i].Type)
		if !x.Const {
			syntax.Throw(arg.At(), "an entry's values are constants")
		}
		r.Args = append(r.Args, uint64(x.Val)&Mask(x.Type.Width))
	}
	return r
}

// match compiles a set of a key, in a table or in a select.
func (s *Scope) match(e syntax.Expr, k Key) Match {
	t, all := BitsType(k.Width), Mask(k.Width)
	one := func(e syntax.Expr) uint64 {
		x := s.Value(e)
		if x.Type == BoolType && k.Width == 1 {
			x.Type = t
		}
		x = x.As(t)
		if !x.Const {
			syntax.Throw(e.At(), "what a key is matched with is a constant")
		}
		return uint64(x.Val) & all
	}
	switch e := e.(type) {
	case *syntax.Any:
		if k.Kind == "exact" {
			syntax.Throw(e.Pos, "an exact key needs a value")
		}
		return Match{High: all, Range: k.Kind == "range"}
	case *syntax.Binary:
		switch e.Op {
		case "&&&":
			if k.Kind != "ternary" {
				syntax.Throw(e.Pos, "a mask for a key that is %s", k.Kind)
			}
			m := one(e.Y)
			return Match{Value: one(e.X) & m, Mask: m}
		case "..":
			if k.Kind != "range" {
				syntax.Throw(e.Pos, "a range for a key that is %s", k.Kind)
			}
			return Match{Value: one(e.X), High: one(e.Y), Range: true}
		}
	}
	if k.Kind == "lpm" {
		syntax.Throw(e.At(), "constant entries of a key that is lpm: the Tofino back end has none")
	}
	v := one(e)
	return Match{Value: v, Mask: all, High: v, Range: k.Kind == "range"}
}

// lookup finds the row, unless undefined bits of the key may change the result.
func (t *Table) lookup(m *Machine) (row *Row, defined bool) {
	vals, any := &m.keys.val, uint64(0)
	for i := range t.Keys {
		vals[i], m.keys.undef[i] = t.Keys[i].eval(m)
		any |= m.keys.undef[i]
	}
	if any != 0 {
		return nil, false
	}
	if t.index == nil {
		t.index = match.NewIndex(len(t.Rows), func(at int) []Match { return t.Rows[at].Match })
	}
	if at := t.index.First(vals[:]); at >= 0 {
		return t.Rows[at], true
	}
	return t.Default, true
}

// careful appends all rows that could match.
func (t *Table) careful(m *Machine) {
	for _, r := range t.Rows {
		switch match.Fits(r.Match, m.keys.val[:], m.keys.undef[:]) {
		case -1:
			m.could = append(m.could, r)
		case 1:
			m.could = append(m.could, r)
			return
		}
	}
	m.could = append(m.could, t.Default)
}

func (t *Table) apply(m *Machine) {
	if len(t.Keys) == 0 {
		t.run(m, t.Default)
		return
	}
	r, defined := t.lookup(m)
	if defined {
		t.run(m, r)
		return
	}
	begin := len(m.could)
	t.careful(m)
	could := m.could[begin:]
	if len(could) == 1 {
		t.run(m, could[0])
	} else {
		m.fork()
		for _, r := range could {
			t.run(m, r)
			m.collect()
		}
		m.merge()
	}
	m.could = m.could[:begin]
}

// run runs a row, and records it if the result is used.
func (t *Table) run(m *Machine, r *Row) {
	if t.outcome != nil {
		hit, action := uint64(Number(r != t.Default)), uint64(len(t.names))
		if r != nil {
			action = uint64(slices.Index(t.names, r.Action))
		}
		m.Set(t.outcome.Slot, action<<1|hit, 0)
	}
	r.run(m)
}

func (r *Row) run(m *Machine) {
	if r == nil {
		return
	}
	for i, p := range r.action.params {
		m.Set(p.Slot, r.Args[i], 0)
	}
	if m.Taint == 0 {
		r.Runs++
	}
	before := m.Row
	m.Row = r
	r.action.body(m)
	m.Row = before
}

// Action returns the parameters that a control plane writes, in bits.
func (t *Table) Action(name string) (widths []int, err error) {
	a, ok := t.actions[name]
	if !ok {
		return nil, fmt.Errorf("table %s has no action %s (it has %v)", t.Name, name, t.names)
	}
	for _, p := range a.params {
		widths = append(widths, p.Type.Width)
	}
	return widths, nil
}

// Actions of the table, in the order of the list.
func (t *Table) Actions() []string { return t.names }

// SetDefault sets the default action, as a control plane does.
func (t *Table) SetDefault(name string, args ...uint64) error {
	if t.FixedDefault {
		return fmt.Errorf("set default of table %s: it is constant", t.Name)
	}
	r, err := t.call(name, args)
	if err != nil {
		return fmt.Errorf("set default of table %s: %w", t.Name, err)
	}
	if t.Default != nil {
		r.At = t.Default.At
	}
	t.Default = r
	return nil
}

// Add appends an entry, as a control plane does; the first one has priority, except with lpm, where the longest prefix has.
func (t *Table) Add(match []Match, name string, args ...uint64) error {
	if t.Fixed {
		return fmt.Errorf("add to table %s: its entries are constant", t.Name)
	}
	if len(match) != len(t.Keys) {
		return fmt.Errorf("add to table %s: %d matches for %d keys", t.Name, len(match), len(t.Keys))
	}
	if t.Size > 0 && len(t.Rows) >= t.Size {
		return fmt.Errorf("add to table %s: it has %d entries", t.Name, t.Size)
	}
	r, err := t.call(name, args)
	if err != nil {
		return fmt.Errorf("add to table %s: %w", t.Name, err)
	}
	for i := range match {
		if err := suits(match[i], &t.Keys[i]); err != nil {
			return fmt.Errorf("add to table %s: key %s: %w", t.Name, t.Keys[i].Name, err)
		}
	}
	r.Match, r.At = match, t.At
	at := len(t.Rows)
	for at > 0 && t.prefix(r) > t.prefix(t.Rows[at-1]) {
		at--
	}
	t.Rows, t.index = slices.Insert(t.Rows, at, r), nil
	return nil
}

// Remove removes the entry of a match.
func (t *Table) Remove(match []Match) error {
	i := slices.IndexFunc(t.Rows, func(r *Row) bool { return slices.Equal(r.Match, match) })
	if t.Fixed || i < 0 {
		return fmt.Errorf("remove %v from table %s: there is none, or its entries are constant", match, t.Name)
	}
	t.Rows, t.index = slices.Delete(slices.Clone(t.Rows), i, i+1), nil
	return nil
}

// Clear removes all entries, as a control plane does before it rewrites them.
func (t *Table) Clear() error {
	if t.Fixed {
		return fmt.Errorf("clear table %s: its entries are constant", t.Name)
	}
	t.Rows, t.index = nil, nil
	return nil
}

// suits reports an error if a key cannot have this match.
func suits(w Match, k *Key) error {
	all := Mask(k.Width)
	switch {
	case (w.Value|w.Mask|w.High)&^all != 0:
		return fmt.Errorf("%+v has more than %d bits", w, k.Width)
	case w.Range != (k.Kind == "range"):
		return fmt.Errorf("%+v where the key is %s", w, k.Kind)
	case w.Range && w.Value > w.High:
		return fmt.Errorf("%d .. %d is empty", w.Value, w.High)
	case k.Kind == "exact" && w.Mask != all:
		return fmt.Errorf("mask %#x where the key is exact", w.Mask)
	case k.Kind == "lpm" && (all^w.Mask)&(all^w.Mask+1) != 0:
		return fmt.Errorf("mask %#x is no prefix", w.Mask)
	case w.Value&^w.Mask != 0 && !w.Range:
		return fmt.Errorf("value %#x has bits outside of its mask %#x", w.Value, w.Mask)
	}
	return nil
}

// prefix is the length of a row's prefix, 0 in tables without lpm.
func (t *Table) prefix(r *Row) int {
	n := 0
	for i, k := range t.Keys {
		if k.Kind == "lpm" {
			for b := r.Match[i].Mask; b != 0; b &= b - 1 {
				n++
			}
		}
	}
	return n
}

func (t *Table) call(name string, args []uint64) (*Row, error) {
	widths, err := t.Action(name)
	if err != nil {
		return nil, err
	}
	if len(args) != len(widths) {
		return nil, fmt.Errorf("action %s has %d parameters, %d are given", name, len(widths), len(args))
	}
	for i, v := range args {
		if v&^Mask(widths[i]) != 0 {
			return nil, fmt.Errorf("action %s: %d does not fit into %d bits", name, v, widths[i])
		}
	}
	return &Row{Action: name, Args: args, action: t.actions[name]}, nil
}
