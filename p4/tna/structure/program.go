package structure

import (
	"maps"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Touch is how a program uses the registers of one name: exclusive instances count as one.
type Touch struct {
	Register  string   `json:"register"`
	WidthBits int      `json:"width_bits"`
	Entries   uint64   `json:"entries"` // of all instances
	Initial   []uint64 `json:"initial"`
	Actions   []string `json:"actions"`   // RegisterActions that packets reach, in the order of the text
	Condition []string `json:"condition"` // what decides whether a packet reaches it
	Index     []string `json:"index"`     // what decides which element
	Written   []string `json:"written"`   // what is written depends on
	Before    []string `json:"before"`    // registers that some packet reaches before it
	Unused    []string `json:"unused"`    // RegisterActions that no packet reaches
	Uneven    []string `json:"uneven"`    // "ACTION SOURCE": a source of the index of other actions, but not of this one's
}

// Of returns a program's registers in the order in which packets reach them; window is the table that selects the bank.
func Of(p *syntax.Program, window string) (_ []Touch, err error) {
	defer syntax.Catch(&err)
	w := newWalker(p, window)
	w.gress("Ingress", 0)
	w.bridge()
	w.gress("Egress", 3)
	out := make([]Touch, 0, len(w.found))
	for _, name := range w.order {
		out = append(out, w.found[name].touch(w))
	}
	return out, nil
}

// found is a register that was reached, with what was read since the last fork.
type found struct {
	register  *register
	instances map[string]uint64 // entries by path
	actions   []string
	indices   map[string]set // by action
	before    map[string]bool

	condition set
	index     set // data alone
	written   set // ... and conditions of RegisterActions
	writing   set // what decides whether it is written
	writes    bool
}

func (f *found) touch(w *walker) Touch {
	written := set{}
	if f.writes {
		written = f.written.or(f.writing)
	}
	t := Touch{Register: f.register.name, WidthBits: f.register.width, Initial: f.register.initial, Actions: f.actions,
		Condition: w.names.sorted(f.condition), Index: w.names.sorted(f.index.or(f.condition)), Written: w.names.sorted(written), Before: []string{}}
	for _, n := range f.instances {
		t.Entries += n
	}
	t.Unused, t.Uneven = []string{}, []string{}
	for _, name := range f.register.actions {
		if !slices.Contains(f.actions, name) {
			t.Unused = append(t.Unused, name)
		}
	}
	all := set{}
	for _, s := range f.indices {
		all = all.or(s)
	}
	for _, name := range f.actions {
		for _, source := range w.names.sorted(all.without(f.indices[name])) {
			t.Uneven = append(t.Uneven, name+" "+source)
		}
	}
	for _, name := range w.order {
		if f.before[name] {
			t.Before = append(t.Before, name)
		}
	}
	return t
}

// with combines two alternatives, or two statements.
func (f *found) with(o *found) *found {
	out := &found{register: f.register, instances: maps.Clone(f.instances), actions: slices.Clone(f.actions), before: maps.Clone(f.before),
		condition: f.condition.or(o.condition), index: f.index.or(o.index), written: f.written.or(o.written), writing: f.writing.or(o.writing),
		writes: f.writes || o.writes}
	maps.Copy(out.instances, o.instances)
	out.indices = maps.Clone(f.indices)
	for name, s := range o.indices {
		out.indices[name] = out.indices[name].or(s)
	}
	maps.Copy(out.before, o.before)
	for _, a := range o.actions {
		if !slices.Contains(out.actions, a) {
			out.actions = append(out.actions, a)
		}
	}
	return out
}

// reached are registers by name.
type reached map[string]*found

func (r reached) add(o reached) {
	for name, f := range o {
		if known := r[name]; known != nil {
			f = known.with(f)
		}
		r[name] = f
	}
}

// either is what alternatives reach, of which a packet takes one. If each reaches an instance of its own of one register, the decision
// is part of the index: on Tofino 2 two registers hold what is one array elsewhere.
func either(decides set, all []reached) reached {
	out := reached{}
	for _, r := range all {
		out.add(r)
	}
	for name, f := range out {
		if split(name, all) {
			f.index = f.index.or(decides)
			continue
		}
		f.condition = f.condition.or(decides)
		if f.writes {
			f.writing = f.writing.or(decides)
		}
	}
	return out
}

func split(name string, all []reached) bool {
	seen := map[string]bool{}
	for _, r := range all {
		f := r[name]
		if f == nil {
			return false
		}
		for path := range f.instances {
			if seen[path] {
				return false
			}
			seen[path] = true
		}
	}
	return len(all) > 1
}

// walker traverses a program once, for all packets together.
type walker struct {
	names    names
	window   string
	global   *scope
	controls map[string]*syntax.Control
	structs  map[string]*syntax.Struct
	types    map[string]*syntax.Type

	pipe *syntax.Instance

	env     env
	guard   set
	passed  map[string]bool // registers that were passed
	found   reached
	order   []string
	running *execution // nil: outside of RegisterActions
}

func newWalker(p *syntax.Program, window string) *walker {
	w := &walker{names: names{}, window: window, controls: map[string]*syntax.Control{}, structs: map[string]*syntax.Struct{},
		types: map[string]*syntax.Type{}, env: env{}, passed: map[string]bool{}, found: reached{}}
	w.global = &scope{w: w, names: map[string]any{}}
	for _, d := range p.Decls {
		switch d := d.(type) {
		case *syntax.Const:
			w.global.names[d.Name] = d
		case *syntax.Typedef:
			w.types[d.Name] = d.Type
		case *syntax.Struct:
			w.structs[d.Name] = d
		case *syntax.Control:
			w.controls[d.Name] = d
		case *syntax.Instance:
			if d.Type.Name == "Pipeline" {
				w.pipe = d
			}
		}
	}
	if w.pipe == nil || len(w.pipe.Args) != 6 {
		syntax.Throw(syntax.Pos{}, "the program has no Pipeline of six parts")
	}
	return w
}

// part of the pipeline.
func (w *walker) part(n int) *syntax.Control {
	if c, ok := w.pipe.Args[n].(*syntax.Call); ok {
		if name, ok := c.Fn.(*syntax.Name); ok && w.controls[name.ID] != nil {
			return w.controls[name.ID]
		}
	}
	syntax.Throw(w.pipe.Args[n].At(), "a parser or control is expected here")
	return nil
}

// gress reads a parser and the control after it. Places of both are named by the half and their role, since each part uses names of its own.
func (w *walker) gress(half string, first int) {
	parser, control := w.part(first), w.part(first+1)
	in := w.inside(half, parser, 1)
	for range 2 { // states may be in any order
		for _, st := range parser.States {
			w.guard = w.names.of(kindSource)
			for _, s := range st.Stmts {
				in.parserStatement(s)
			}
		}
	}
	w.guard = set{}
	s := w.inside(half, control, 0)
	s.path = half + "."
	s.body(control)
}

// inside binds the parameters of a part to places.
func (w *walker) inside(half string, c *syntax.Control, first int) *scope {
	s := &scope{w: w, outer: w.global, names: map[string]any{}, path: half + "." + c.Name + "."}
	for n, p := range c.Params {
		where := place(half + "/" + p.Type.Name)
		switch {
		case n == first:
			where = place(half + "/headers")
		case n == first+1:
			where = place(half + "/metadata")
		}
		s.names[p.Name] = where
	}
	return s
}

// bridge: the egress parses in front of a packet what the ingress has put there.
func (w *walker) bridge() {
	const from, to = "Ingress/headers.bridged", "Egress/headers.bridged"
	for p, s := range w.env {
		if rest, ok := strings.CutPrefix(string(p), from); ok {
			defer func() { w.env[place(to+rest)] = s }()
		}
	}
}

// reach records an access.
func (w *walker) reach(r *register, action string, index set) *found {
	f := &found{register: r, instances: map[string]uint64{r.path: r.entries}, actions: []string{action}, indices: map[string]set{action: index}, before: map[string]bool{}, index: index}
	if !slices.Contains(w.order, r.name) {
		w.order = append(w.order, r.name)
	}
	for name := range w.passed {
		if name != r.name {
			f.before[name] = true
		}
	}
	w.passed[r.name] = true
	if known := w.found[r.name]; known != nil {
		if known.register.width != r.width {
			syntax.Throw(r.at, "registers of one name, %s, differ in width", r.name)
		}
		f = known.with(f)
	}
	w.found[r.name] = f
	return f
}
