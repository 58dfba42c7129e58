package pin

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/xdpmon/xdpmon/bpf/chain"
	"github.com/xdpmon/xdpmon/loader"
	"github.com/xdpmon/xdpmon/loader/namespace"
)

// adapt adopts the registers of algorithms that are unchanged, and nothing where seeds, hashes or the layout of shared maps have changed.
// Everything else is replaced; Fresh names it.
func (p *Pin) adapt(opts *loader.Options) error {
	if diffs := p.meta.sharedDifferences(p.want); len(diffs) > 0 {
		p.opts.Notice("the pinned instance %s cannot be continued, starting fresh: %s", p.opts.Name, strings.Join(diffs, "; "))
		return p.discard()
	}
	found, err := p.loadMaps()
	if err != nil {
		return fmt.Errorf("adopt pin %s: %w", p.opts.Name, err)
	}
	p.maps = map[string]*ebpf.Map{}
	for key, m := range found {
		owner, _, _ := strings.Cut(key, "/")
		if owner == "chain" || p.keeps(owner) {
			p.maps[key] = m
			continue
		}
		m.Close()
	}
	for _, a := range p.want.Algorithms {
		if !p.keeps(a.Name) {
			p.fresh = append(p.fresh, a.Name)
		}
	}
	opts.Maps = p.maps
	p.opts.Notice("continuing the pinned instance %s: registers and counts are preserved%s", p.opts.Name, but(p.fresh))
	return nil
}

func but(fresh []string) string {
	if len(fresh) == 0 {
		return ""
	}
	return ", except those of " + strings.Join(fresh, ", ") + ", whose layout or constants have changed"
}

// keeps reports whether an algorithm is pinned with the same maps and constants.
func (p *Pin) keeps(name string) bool {
	find := func(m pinMeta) (pinAlgorithm, bool) {
		i := slices.IndexFunc(m.Algorithms, func(a pinAlgorithm) bool { return a.Name == name })
		if i < 0 {
			return pinAlgorithm{}, false
		}
		return m.Algorithms[i], true
	}
	pinned, was := find(p.meta)
	wanted, is := find(p.want)
	return was && is && len(compareText("", pinned.Maps, wanted.Maps)) == 0 && len(compareText("", pinned.Constants, wanted.Constants)) == 0
}

// Fresh are the algorithms of a continued pin whose registers are new: their first window is incomplete.
func (p *Pin) Fresh() []string { return p.fresh }

// discard detaches and removes everything that is pinned.
func (p *Pin) discard() error {
	var errs []error
	for _, path := range linkPins(p.path()) {
		errs = append(errs, releasePinned(path))
	}
	for _, i := range p.meta.Interfaces {
		for _, pt := range i.Points {
			errs = append(errs, p.releaseFilters(i.Index, pt.Direction))
		}
	}
	p.meta = pinMeta{}
	return errors.Join(append(errs, os.RemoveAll(p.path()))...)
}

// Abandon removes a pin of this network namespace that no process runs; ok is false for pins that are left in place.
func Abandon(root, name string) (ok bool, err error) {
	p, err := Open(Options{Name: name, Root: root})
	if errors.Is(err, ErrInUse) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if p.meta.NetNS != namespace.Inode() {
		return false, p.Close()
	}
	return true, errors.Join(p.discard(), p.Close())
}

// Describe records that the chain now runs other algorithms; the next Commit pins them.
func (p *Pin) Describe(objects []loader.Object) {
	p.want.Algorithms = describeObjects(objects, loader.Options{}).Algorithms
}

// sharedDifferences are the differences with which nothing can be adopted.
func (m pinMeta) sharedDifferences(want pinMeta) []string {
	m.Algorithms, want.Algorithms = nil, nil
	diffs := m.differences(want)
	return append(diffs, compareText("chain", m.Chain, want.Chain)...)
}

// chainLayout is the layout of the maps that all programs of a chain share, with the fields of the packet header vector: programs of two
// builds use them at the same time during an adoption.
func chainLayout() map[string]string {
	spec, err := chain.LoadChain()
	if err != nil {
		return map[string]string{"object": err.Error()}
	}
	return shapesOf(spec)
}

func layoutOf(t btf.Type) string {
	if t == nil {
		return ""
	}
	s, ok := btf.UnderlyingType(t).(*btf.Struct)
	if !ok {
		return ""
	}
	fields := make([]string, len(s.Members))
	for i, m := range s.Members {
		fields[i] = fmt.Sprintf("%s at %d", m.Name, m.Offset)
	}
	return strings.Join(fields, ", ")
}
