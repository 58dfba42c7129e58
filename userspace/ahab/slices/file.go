package slices

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/xdpmon/xdpmon/userspace/config"
)

// Parse checks a file; name is the file's in complaints.
func Parse(name string, text []byte) (*File, error) {
	p := &config.Parser{File: name, Depth: 3*maxDepth + 8}
	root := p.Read(text, "slices are")
	if root == nil {
		return nil, p.Err()
	}
	v, ok := whole().Decode(p, root)
	if !ok {
		return nil, p.Err()
	}
	f := v.(File)
	c := &checker{p: p, file: &f, rules: map[condition]*Slice{}}
	c.check()
	if err := p.Err(); err != nil {
		return nil, err
	}
	return &f, nil
}

// Schema is the JSON schema of the file.
func Schema() ([]byte, error) {
	return config.WriteSchema(whole(), "slices of xdpmon's ahab", map[string]any{"slice": slice().Schema()})
}

// rate is bits a second.
type rate struct{ what string }

func (k rate) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	text, ok := config.Scalar(p, n, k.what)
	if !ok {
		return nil, false
	}
	v, err := ParseRate(text)
	if err != nil {
		p.Errorf(n, "%s %s", k.what, err)
	}
	return v, err == nil
}

func (rate) Schema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)? *[kMGT]?bit$`}
}

// network is a prefix, or an address alone.
type network struct{}

func (network) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	text, ok := config.Scalar(p, n, "a prefix")
	if !ok {
		return nil, false
	}
	v, err := netip.ParsePrefix(text)
	if a, e := netip.ParseAddr(text); err != nil && e == nil && a.Zone() == "" {
		v, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil || v.Addr().Is4In6():
		p.Errorf(n, "%q is no prefix like 10.0.0.0/8 or 2001:db8::/32", text)
		return nil, false
	case v != v.Masked():
		p.Errorf(n, "%s has bits after its length: is %s meant?", text, v.Masked())
		return nil, false
	}
	return v, true
}

func (network) Schema() map[string]any { return map[string]any{"type": "string", "minLength": 2} }

// again is a list of slices within one: the schema names itself.
type again struct{}

func (again) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	if len(n.Content) > MaxSlices { // before each of them is looked at
		p.Errorf(n, "%d slices are too many: at most %d", len(n.Content), MaxSlices)
		return nil, false
	}
	return config.List[Slice]{What: "slices", Of: placed{}, Min: 1}.Decode(p, n)
}

func (again) Schema() map[string]any {
	return map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"$ref": "#/$defs/slice"}}
}

// placed is a slice that remembers where it stands.
type placed struct{}

func (placed) Decode(p *config.Parser, n *yaml.Node) (any, bool) {
	v, ok := slice().Decode(p, n)
	if !ok {
		return nil, false
	}
	s := v.(Slice)
	s.line, s.column = n.Line, n.Column
	return s, true
}

func (placed) Schema() map[string]any { return slice().Schema() }

func whole() config.Object[File] {
	return config.Object[File]{What: "the file", Defaults: func() File { return File{} }, Fields: []config.Field[File]{
		{Key: "slices", Help: "who shares the capacity", Kind: again{}, Required: true, Set: config.To(func(f *File) *[]Slice { return &f.Slices })},
		{Key: "capacity", Help: "what all slices together may take, in bits a second (1Gbit); without it slices are limited by their ceilings only",
			Kind: rate{"capacity"}, Set: config.To(func(f *File) *float64 { return &f.Capacity })},
		{Key: "room", Help: "slices that there may be while it runs, in a changed file or for interfaces that are added (64 more than at the start)",
			Kind: config.Number{What: "room", Min: 1, Max: MaxSlices}, Set: func(f *File, v any) { f.Room = int(v.(uint64)) }},
	}}
}

var sliceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$`)

func slice() config.Object[Slice] {
	number := func(what string, most uint64) config.Kind { return config.Number{What: what, Min: 1, Max: most} }
	return config.Object[Slice]{What: "a slice", Defaults: func() Slice { return Slice{Weight: 1} }, Fields: []config.Field[Slice]{
		{Key: "name", Help: "of the slice, within its parent", Kind: config.Word{What: "name", Pattern: sliceName.String(), Check: checkName}, Required: true,
			Set: config.To(func(s *Slice) *string { return &s.Name })},
		{Key: "match", Help: "what belongs to it, of what belongs to its parent; nothing: what belongs to no sibling", Kind: match(),
			Set: config.To(func(s *Slice) *Match { return &s.Match })},
		{Key: "weight", Help: "its share against its siblings', 1 to 1000 (1)", Kind: number("weight", maxWeight), Set: func(s *Slice, v any) { s.Weight = float64(v.(uint64)) }},
		{Key: "floor", Help: "bits a second that it gets if it wants them", Kind: rate{"floor"}, Set: config.To(func(s *Slice) *float64 { return &s.Floor })},
		{Key: "ceiling", Help: "bits a second that it never passes", Kind: rate{"ceiling"}, Set: config.To(func(s *Slice) *float64 { return &s.Ceiling })},
		{Key: "user", Help: "what a user is: 5tuple, source or destination (its parent's; 5tuple)", Kind: config.Word{What: "user", Choices: []string{Flow, Source, Destination}},
			Set: config.To(func(s *Slice) *string { return &s.User })},
		{Key: "prefix4", Help: "bits of an IPv4 address that distinguish users (its parent's; 32)", Kind: number("prefix4", 32), Set: func(s *Slice, v any) { s.Prefix4 = int(v.(uint64)) }},
		{Key: "prefix6", Help: "bits of an IPv6 address that distinguish users (its parent's; 128)", Kind: number("prefix6", 128), Set: func(s *Slice, v any) { s.Prefix6 = int(v.(uint64)) }},
		{Key: "users", Help: "weights of users that are not 1", Kind: config.List[User]{What: "users", Of: user()}, Set: config.To(func(s *Slice) *[]User { return &s.Users })},
		{Key: "slices", Help: "who shares it", Kind: again{}, Set: config.To(func(s *Slice) *[]Slice { return &s.Children })},
	}}
}

func checkName(text string) error {
	if !sliceName.MatchString(text) {
		return fmt.Errorf("name %q: 1 to 64 letters, digits, and . : - _", text)
	}
	return nil
}

// longestName is what the kernel takes of an interface.
const longestName = 15

// named is what is no pattern.
func named(text string) bool { return !strings.ContainsAny(text, `*?[\`) }

func checkPattern(text string) error {
	if _, err := path.Match(text, ""); err != nil || strings.ContainsAny(text, "/ ") {
		return fmt.Errorf("interface %q: a name or a pattern with * ? and [a-z]", text)
	}
	if named(text) && len(text) > longestName {
		return fmt.Errorf("interface %q: a name has %d characters at most", text, longestName)
	}
	return nil
}

func match() config.Object[Match] {
	networks := func(what string) config.Kind { return config.List[netip.Prefix]{What: what, Of: network{}, Min: 1} }
	numbers := func(what string, least, most uint64) config.Kind {
		return config.List[uint64]{What: what, Of: config.Number{What: what, Min: least, Max: most}, Min: 1}
	}
	return config.Object[Match]{What: "match", Defaults: func() Match { return Match{} }, Fields: []config.Field[Match]{
		{Key: "interfaces", Help: "names or patterns (vnet*) of the interfaces that packets are seen on", Kind: config.List[string]{What: "interfaces", Of: config.Word{What: "interface", Check: checkPattern}, Min: 1},
			Set: config.To(func(m *Match) *[]string { return &m.Interfaces })},
		{Key: "each", Help: "a slice for every interface, named after it (false)", Kind: config.Flag{What: "each"}, Set: config.To(func(m *Match) *bool { return &m.Each })},
		{Key: "vlans", Help: "outermost VLAN identifiers", Kind: numbers("vlans", 0, 4095), Set: config.To(func(m *Match) *[]uint64 { return &m.VLANs })},
		{Key: "marks", Help: "firewall marks; XDP sees none", Kind: numbers("marks", 0, 1<<32-1), Set: config.To(func(m *Match) *[]uint64 { return &m.Marks })},
		{Key: "sources", Help: "prefixes of source addresses", Kind: networks("sources"), Set: config.To(func(m *Match) *[]netip.Prefix { return &m.Sources })},
		{Key: "destinations", Help: "prefixes of destination addresses", Kind: networks("destinations"), Set: config.To(func(m *Match) *[]netip.Prefix { return &m.Destinations })},
	}}
}

func user() config.Object[User] {
	return config.Object[User]{What: "a user", Defaults: func() User { return User{} }, Fields: []config.Field[User]{
		{Key: "prefix", Help: "its address, or that of several", Kind: network{}, Required: true, Set: config.To(func(u *User) *netip.Prefix { return &u.Prefix })},
		{Key: "weight", Help: "its share against other users', 1 to 1000", Kind: config.Number{What: "weight", Min: 1, Max: maxWeight}, Required: true,
			Set: config.To(func(u *User) *uint64 { return &u.Weight })},
	}}
}
