package run

import (
	"io/fs"
	"strings"

	"github.com/xdpmon/xdpmon/p4/tna/syntax"
)

// builder turns a program into a switch.
type builder struct {
	sw      *Switch
	global  *scope
	used    map[*syntax.Control]bool
	applied map[*Table]bool
}

// Spot is a place of the text that packets may or may not reach.
type Spot struct {
	syntax.Pos
	Name string
	Runs uint64
}

// Wrap is an unsigned comparison of a difference in a register action that wrapped: on a chip that compares with more bits it
// would have come out differently.
type Wrap struct {
	syntax.Pos
	Packets uint64
}

func (b *builder) spot(at syntax.Pos, name string) *Spot {
	s := &Spot{Pos: at, Name: name}
	b.sw.Spots = append(b.sw.Spots, s)
	return s
}

func (b *builder) wrap(at syntax.Pos) *Wrap {
	w := &Wrap{Pos: at}
	b.sw.Wraps = append(b.sw.Wraps, w)
	return w
}

// Read parses the program in a file of fsys for a target; define is -D NAME=VALUE.
func Read(fsys fs.FS, top string, target Target, define map[string]string) (*syntax.Program, error) {
	return syntax.Parse(syntax.Source{Files: fsys, Top: top, Define: defines(target, define), Library: library(target)})
}

// New makes a switch that runs a program. Every error names file and line.
func New(p *syntax.Program, target Target) (sw *Switch, err error) {
	defer syntax.Catch(&err)
	b := newBuilder(target)
	var pipe *syntax.Instance
	for _, d := range p.Decls {
		if i := b.top(d); i != nil {
			pipe = i
		}
	}
	if pipe == nil || len(pipe.Args) != 6 {
		syntax.Throw(syntax.Pos{}, "the program has no Pipeline of six parts")
	}
	b.ingress(pipe)
	b.egress(pipe)
	b.unused(p, target)
	for _, d := range p.Decls {
		if c, ok := d.(*syntax.Control); ok && b.used[c] {
			b.sw.Controls = append(b.sw.Controls, c.Name)
		}
	}
	return b.sw, nil
}

func newBuilder(target Target) *builder {
	b := &builder{sw: &Switch{target: target, Coins: func(string, int) uint64 { return 0 }}, used: map[*syntax.Control]bool{},
		applied: map[*Table]bool{}}
	b.global = &scope{names: map[string]any{}, build: b}
	return b
}

// top declares, and returns the Pipeline.
func (b *builder) top(d syntax.Decl) *syntax.Instance {
	s := b.global
	switch d := d.(type) {
	case *syntax.Const:
		s.declareConst(d)
	case *syntax.Typedef:
		s.declare(d.Pos, d.Name, s.typeOf(d.Type))
	case *syntax.Struct:
		s.declareStruct(d)
	case *syntax.Enum:
		s.declareEnum(d)
	case *syntax.Control:
		s.declare(d.Pos, d.Name, d)
	case *syntax.Instance:
		switch d.Type.Name {
		case "Pipeline":
			return d
		case "Switch":
			return nil
		}
		syntax.Throw(d.Pos, "%s outside of a control is outside of the model", d.Type.Name)
	}
	return nil
}

// gress is one half of the pipeline: what its three parts share.
type gress struct {
	b       *builder
	hdr, md *place
	by      map[string]*place // intrinsic metadata, by type
	parse   step
	control step
	deparse step
}

func (b *builder) part(pipe *syntax.Instance, n int) *syntax.Control {
	if c, ok := pipe.Args[n].(*syntax.Call); ok && len(c.Args) == 0 {
		if name, ok := c.Fn.(*syntax.Name); ok {
			if d, ok := b.global.find(name.ID).(*syntax.Control); ok {
				b.used[d] = true
				return d
			}
		}
	}
	syntax.Throw(pipe.Args[n].At(), "a parser or control is wanted here")
	return nil
}

func (b *builder) gress(pipe *syntax.Instance, first int) *gress {
	g := &gress{b: b, by: map[string]*place{}}
	parser, control, deparser := b.part(pipe, first), b.part(pipe, first+1), b.part(pipe, first+2)
	if !parser.IsParser || control.IsParser || deparser.IsParser {
		syntax.Throw(pipe.Pos, "a pipeline is a parser, a control and a deparser, twice")
	}
	g.parse = g.inside(parser, 1).parser(parser)
	s := g.inside(control, 0)
	g.unshared(control)
	g.control = s.controlBody(control)
	g.deparse = g.inside(deparser, 1).controlBody(deparser)
	return g
}

// inside binds the parameters of a part: headers and metadata from number first on, all else by type.
func (g *gress) inside(d *syntax.Control, first int) *scope {
	s := g.b.global.inner()
	for n, p := range d.Params {
		switch p.Type.Name {
		case "packet_in":
			s.declare(p.Pos, p.Name, packetIn{})
			continue
		case "packet_out":
			s.declare(p.Pos, p.Name, packetOut{})
			continue
		}
		t := g.b.global.typeOf(p.Type)
		var to **place
		switch n - first {
		case 0:
			to = &g.hdr
		case 1:
			to = &g.md
		default:
			q := g.by[t.name]
			to = &q
		}
		if *to == nil {
			*to = g.b.newPlace(t)
			if n != first { // the chip's parser begins with zeros; headers are not there before they are extracted
				g.b.zero(*to)
			}
		}
		if !same((*to).typ, t) {
			syntax.Throw(p.Pos, "%s here, %s in the part before", t, (*to).typ)
		}
		if n-first > 1 {
			g.by[t.name] = *to
		}
		bound := **to
		bound.readonly = p.Dir == "in"
		s.declare(p.Pos, p.Name, &bound)
	}
	return s
}

// unshared are fields that no other field shares a place with (@pa_no_overlay): of a header that is not there they are zeros.
func (g *gress) unshared(d *syntax.Control) {
	for _, name := range d.NoShare {
		parts := strings.Split(name, ".")
		p := g.hdr
		for _, part := range parts[1:] {
			p = p.field(d.Pos, part)
		}
		g.b.zero(p)
	}
}

func (b *builder) ingress(pipe *syntax.Instance) {
	g := b.gress(pipe, 0)
	sw := b.sw
	sw.ingress = g
	sw.parserError = g.slotOf("ingress_intrinsic_metadata_from_parser_t", "parser_err")
	sw.parserTime = g.slotOf("ingress_intrinsic_metadata_from_parser_t", "global_tstamp")
	sw.drop = g.slotOf("ingress_intrinsic_metadata_for_deparser_t", "drop_ctl")
	sw.port = g.slotOf("ingress_intrinsic_metadata_for_tm_t", "ucast_egress_port")
	sw.bypass = g.slotOf("ingress_intrinsic_metadata_for_tm_t", "bypass_egress")
	sw.cpu = g.slotOf("ingress_intrinsic_metadata_for_tm_t", "copy_to_cpu")
}

func (b *builder) egress(pipe *syntax.Instance) {
	g := b.gress(pipe, 3)
	b.sw.egress = g
	b.sw.egressDrop = g.slotOf("egress_intrinsic_metadata_for_deparser_t", "drop_ctl")
	b.sw.egressError = g.slotOf("egress_intrinsic_metadata_from_parser_t", "parser_err")
	b.sw.egressTime = g.slotOf("egress_intrinsic_metadata_from_parser_t", "global_tstamp")
}

// slotOf a field of intrinsic metadata, whether or not the program looks at it.
func (g *gress) slotOf(typeName, field string) int {
	p := g.by[typeName]
	if p == nil {
		t, _ := g.b.global.find(typeName).(*typ)
		p = g.b.newPlace(t)
		g.b.zero(p)
		g.by[typeName] = p
	}
	return p.field(syntax.Pos{}, field).slot
}

// unused compiles what no form of this program applies, so that an error in it is found all the same.
func (b *builder) unused(p *syntax.Program, target Target) {
	aside := newBuilder(target)
	for _, d := range p.Decls {
		aside.top(d)
	}
	for _, d := range p.Decls {
		decl, ok := d.(*syntax.Control)
		if !ok || b.used[decl] || decl.IsParser {
			continue
		}
		c := &control{decl: decl, home: aside.global}
		for _, param := range decl.Ctor {
			c.ctor = append(c.ctor, constant{typ: aside.global.typeOf(param.Type), val: 8})
		}
		bound := make([]*place, len(decl.Params))
		for i, param := range decl.Params {
			bound[i] = aside.newPlace(aside.global.typeOf(param.Type))
		}
		c.inside(aside, bound).controlBody(decl)
	}
}
