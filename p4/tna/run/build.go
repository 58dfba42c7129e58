package run

import (
	"github.com/xdpmon/xdpmon/p4/tna/lang"
	"io/fs"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// Wrap is an unsigned comparison of a difference in a register action that wrapped: a chip that compares with more bits
// would have another result.
type Wrap struct {
	syntax.Pos
	Packets uint64
}

// Read parses the program in a file of fsys for a target; define is -D NAME=VALUE.
func Read(fsys fs.FS, top string, target Target, define map[string]string) (*syntax.Program, error) {
	return syntax.Parse(syntax.Source{Files: fsys, Top: top, Define: defines(target, define), Library: library(target)})
}

// New makes a switch that runs a program. Each error names file and line.
func New(p *syntax.Program, target Target) (sw *Switch, err error) {
	return compile(p, newSwitch(target))
}

func compile(p *syntax.Program, sw *Switch) (_ *Switch, err error) {
	defer syntax.Catch(&err)
	var pipe *syntax.Instance
	for _, d := range p.Decls {
		if i := sw.top(d); i != nil {
			pipe = i
		}
	}
	if pipe == nil || len(pipe.Args) != 6 {
		syntax.Throw(syntax.Pos{}, "the program has no Pipeline of six parts")
	}
	sw.buildIngress(pipe)
	sw.buildEgress(pipe)
	unused(p, sw)
	for _, d := range p.Decls {
		if c, ok := d.(*syntax.Control); ok && sw.Used[c] {
			sw.Controls = append(sw.Controls, c.Name)
		}
	}
	return sw, nil
}

func newSwitch(target Target) *Switch {
	sw := &Switch{target: target, Coins: func(string, int) uint64 { return 0 }}
	sw.Builder = lang.NewBuilder(externs, []string{"value_set", "Checksum"}, sw)
	return sw
}

// switchOf is the switch that a scope's program is compiled for.
func switchOf(s *lang.Scope) *Switch { return s.Build.Env.(*Switch) }

// top handles a top-level declaration, and returns the Pipeline.
func (sw *Switch) top(d syntax.Decl) *syntax.Instance {
	i, ok := d.(*syntax.Instance)
	switch {
	case !ok:
		sw.Declare(d)
	case i.Type.Name == "Pipeline":
		return i
	case i.Type.Name != "Switch":
		syntax.Throw(i.Pos, "%s outside of a control is outside of the model", i.Type.Name)
	}
	return nil
}

// gress is the state that the three parts of one half of the pipeline share.
type gress struct {
	b       *lang.Builder
	hdr, md *lang.Place
	by      map[string]*lang.Place // intrinsic metadata, by type
	parse   lang.Step
	control lang.Step
	deparse lang.Step
}

func (sw *Switch) part(pipe *syntax.Instance, n int) *syntax.Control {
	if c, ok := pipe.Args[n].(*syntax.Call); ok && len(c.Args) == 0 {
		if name, ok := c.Fn.(*syntax.Name); ok {
			if d, ok := sw.Global.Find(name.ID).(*syntax.Control); ok {
				sw.Used[d] = true
				return d
			}
		}
	}
	syntax.Throw(pipe.Args[n].At(), "a parser or control is expected here")
	return nil
}

func (sw *Switch) gress(pipe *syntax.Instance, first int) *gress {
	g := &gress{b: sw.Builder, by: map[string]*lang.Place{}}
	parser, control, deparser := sw.part(pipe, first), sw.part(pipe, first+1), sw.part(pipe, first+2)
	if !parser.IsParser || control.IsParser || deparser.IsParser {
		syntax.Throw(pipe.Pos, "a pipeline is a parser, a control and a deparser, twice")
	}
	g.parse = g.inside(parser, 1).Parser(parser)
	s := g.inside(control, 0)
	g.unshared(control)
	g.control = s.ControlBody(control)
	out := g.inside(deparser, 1)
	out.Deparses = true
	g.deparse = out.ControlBody(deparser)
	return g
}

// inside binds the parameters of a part: headers and metadata from number first on, the others by type.
func (g *gress) inside(d *syntax.Control, first int) *lang.Scope {
	s := g.b.Global.Inner()
	for n, p := range d.Params {
		switch p.Type.Name {
		case "packet_in":
			s.Declare(p.Pos, p.Name, lang.PacketIn{})
			continue
		case "packet_out":
			s.Declare(p.Pos, p.Name, lang.PacketOut{})
			continue
		}
		t := g.b.Global.TypeOf(p.Type)
		var to **lang.Place
		switch n - first {
		case 0:
			to = &g.hdr
		case 1:
			to = &g.md
		default:
			q := g.by[t.Name]
			to = &q
		}
		if *to == nil {
			*to = g.b.NewPlace(t)
			if n != first { // the chip's parser initializes metadata to zeros; headers are invalid until they are extracted
				g.b.Zero(*to)
			}
		}
		if !lang.Same((*to).Type, t) {
			syntax.Throw(p.Pos, "%s here, %s in the part before", t, (*to).Type)
		}
		if n-first > 1 {
			g.by[t.Name] = *to
		}
		bound := **to
		bound.Readonly = p.Dir == "in"
		s.Declare(p.Pos, p.Name, &bound)
	}
	return s
}

// unshared are fields that share their container with no other field (@pa_no_overlay): they are zeros if their header is invalid.
func (g *gress) unshared(d *syntax.Control) {
	for _, name := range d.NoShare {
		parts := strings.Split(name, ".")
		p := g.hdr
		for _, part := range parts[1:] {
			p = p.Field(d.Pos, part)
		}
		g.b.Zero(p)
	}
}

func (sw *Switch) buildIngress(pipe *syntax.Instance) {
	g := sw.gress(pipe, 0)
	sw.ingress = g
	sw.parserError = g.slotOf("ingress_intrinsic_metadata_from_parser_t", "parser_err")
	sw.parserTime = g.slotOf("ingress_intrinsic_metadata_from_parser_t", "global_tstamp")
	sw.drop = g.slotOf("ingress_intrinsic_metadata_for_deparser_t", "drop_ctl")
	sw.port = g.slotOf("ingress_intrinsic_metadata_for_tm_t", "ucast_egress_port")
	sw.bypass = g.slotOf("ingress_intrinsic_metadata_for_tm_t", "bypass_egress")
	sw.cpu = g.slotOf("ingress_intrinsic_metadata_for_tm_t", "copy_to_cpu")
}

func (sw *Switch) buildEgress(pipe *syntax.Instance) {
	registers, tables := len(sw.Registers), len(sw.Tables)
	g := sw.gress(pipe, 3)
	sw.ofEgress = map[string]bool{}
	for _, r := range sw.Registers[registers:] {
		sw.ofEgress[r.Path] = true
	}
	for _, t := range sw.Tables[tables:] {
		sw.ofEgress[t.Name] = true
	}
	sw.egress = g
	sw.egressDrop = g.slotOf("egress_intrinsic_metadata_for_deparser_t", "drop_ctl")
	sw.egressError = g.slotOf("egress_intrinsic_metadata_from_parser_t", "parser_err")
	sw.egressTime = g.slotOf("egress_intrinsic_metadata_from_parser_t", "global_tstamp")
}

// slotOf is the slot of a field of intrinsic metadata, even if the program does not use it.
func (g *gress) slotOf(typeName, field string) int {
	p := g.by[typeName]
	if p == nil {
		t, _ := g.b.Global.Find(typeName).(*lang.Type)
		p = g.b.NewPlace(t)
		g.b.Zero(p)
		g.by[typeName] = p
	}
	return p.Field(syntax.Pos{}, field).Slot
}

// unused compiles controls that this form does not apply, so that errors in them are found.
func unused(p *syntax.Program, sw *Switch) {
	aside := newSwitch(sw.target)
	aside.Loose = sw.Loose
	for _, d := range p.Decls {
		aside.top(d)
	}
	for _, d := range p.Decls {
		decl, ok := d.(*syntax.Control)
		if !ok || sw.Used[decl] || decl.IsParser {
			continue
		}
		c := &lang.Control{Decl: decl, Home: aside.Global}
		for _, param := range decl.Ctor {
			c.Ctor = append(c.Ctor, lang.Constant{Type: aside.Global.TypeOf(param.Type), Val: 8})
		}
		bound := make([]*lang.Place, len(decl.Params))
		for i, param := range decl.Params {
			bound[i] = aside.NewPlace(aside.Global.TypeOf(param.Type))
		}
		c.Inside(aside.Builder, bound).ControlBody(decl)
	}
}
