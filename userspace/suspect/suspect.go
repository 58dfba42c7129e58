// Package suspect finds lossy links from the flows with losses: a link that many of their paths share, and paths of
// flows without losses do not, is suspect (Liu, Zhou, Rottenstreich, Braverman, Rexford: "Memory-Efficient Performance Monitoring on
// Programmable Switches with Lean Algorithms", APOCS 2020, section 2).
package suspect

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// Bounds of a file of paths.
const (
	maxLines = 1 << 20
	maxLinks = 64 // of a path
)

// pair is traffic that takes the same paths.
type pair struct{ source, destination netip.Prefix }

// Paths are the links that traffic of prefix pairs takes. Several paths of a pair share its traffic.
type Paths struct {
	pairs   map[pair][][]string
	lengths [][2]int // of sources and destinations, the most bits first
	crossed map[string]float64
}

// Load reads a file of paths.
func Load(path string) (*Paths, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read paths: %w", err)
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads lines of a source prefix, a destination prefix, and the links between them. Several lines of a pair are several paths, of
// which each packet takes one. A # starts a comment.
func Read(name string, r io.Reader) (*Paths, error) {
	p := &Paths{pairs: map[pair][][]string{}, crossed: map[string]float64{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<16)
	for n := 1; lines.Scan(); n++ {
		if n > maxLines {
			return nil, fmt.Errorf("%s: more than %d lines", name, maxLines)
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		if err := p.add(strings.Fields(text)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(p.pairs) == 0 {
		return nil, fmt.Errorf("%s: no paths: a line is SOURCE/BITS DESTINATION/BITS and links", name)
	}
	p.index()
	return p, nil
}

func (p *Paths) add(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if len(words) < 3 || len(words) > 2+maxLinks {
		return fmt.Errorf("a line is SOURCE/BITS DESTINATION/BITS and 1 to %d links", maxLinks)
	}
	var at [2]netip.Prefix
	for i := range at {
		prefix, err := netip.ParsePrefix(words[i])
		if err != nil {
			return fmt.Errorf("%q is no prefix: 192.0.2.0/24, 2001:db8::/32", words[i])
		}
		at[i] = prefix.Masked()
	}
	if at[0].Addr().Is4() != at[1].Addr().Is4() {
		return fmt.Errorf("%s and %s are of two families", at[0], at[1])
	}
	links := slices.Clone(words[2:])
	slices.Sort(links)
	key := pair{at[0], at[1]}
	p.pairs[key] = append(p.pairs[key], slices.Compact(links))
	return nil
}

// index prepares a lookup and a ranking: lengths of prefixes, and how many pairs cross each link.
func (p *Paths) index() {
	seen := map[[2]int]bool{}
	for key, paths := range p.pairs {
		seen[[2]int{key.source.Bits(), key.destination.Bits()}] = true
		for _, links := range paths {
			for _, l := range links {
				p.crossed[l] += 1 / float64(len(paths))
			}
		}
	}
	p.lengths = slices.SortedFunc(maps.Keys(seen), func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(b[0]+b[1], a[0]+a[1]), cmp.Compare(b[0], a[0]))
	})
}

// of is the pair with the most bits that a flow belongs to.
func (p *Paths) of(source, destination netip.Addr) (pair, bool) {
	for _, n := range p.lengths {
		s, err := source.Prefix(n[0])
		if err != nil {
			continue
		}
		d, err := destination.Prefix(n[1])
		if err != nil {
			continue
		}
		if _, known := p.pairs[pair{s, d}]; known {
			return pair{s, d}, true
		}
	}
	return pair{}, false
}

// Link is a link that flows with losses cross.
type Link struct {
	Name string
	// Explained is the share of all losses whose flows may have crossed it.
	Explained float64
	// Afflicted is the share of the pairs across it of which a flow has losses.
	Afflicted float64
	// Score is the log-likelihood ratio between losing more than the rest of the network and losing as much (nats); 0 where there is no more
	// across it than elsewhere.
	Score float64
	Pairs int // with losses
}

// Ranking is the result.
type Ranking struct {
	Links   []Link // the most suspect first
	Flows   int    // with losses, whose paths are known
	Unknown int    // ... whose paths are not
}

// Rank finds the common links of flows with losses, by a scan statistic (Kulldorff, "A spatial scan statistic", Communications in
// Statistics 1997) over the pairs: across which link are losses so much more frequent than elsewhere that it is least likely
// chance? Losses of a pair count by their root, since pairs of few large flows are most of the sum and carry the least evidence.
func (p *Paths) Rank(losses []algo.Loss) Ranking {
	lost, r := map[pair]float64{}, Ranking{}
	for _, l := range losses {
		if !(l.Lost > 0) {
			continue
		}
		at, known := p.of(l.Source.Unmap(), l.Destination.Unmap())
		if !known {
			r.Unknown++
			continue
		}
		r.Flows++
		lost[at] += l.Lost
	}
	sum := 0.
	for at, n := range lost {
		lost[at] = math.Sqrt(n)
		sum += lost[at]
	}
	type evidence struct {
		weight, pairs float64
		n             int
	}
	of := map[string]*evidence{}
	for at, n := range lost {
		paths := p.pairs[at]
		for _, links := range paths {
			share := 1 / float64(len(paths))
			for _, l := range links {
				if of[l] == nil {
					of[l] = &evidence{}
				}
				of[l].weight += n * share
				of[l].pairs += share
				of[l].n++
			}
		}
	}
	for name, e := range of {
		l := Link{Name: name, Explained: e.weight / sum, Afflicted: e.pairs / p.crossed[name], Pairs: e.n}
		l.Score = scan(e.weight, p.crossed[name], sum, float64(len(p.pairs)))
		r.Links = append(r.Links, l)
	}
	slices.SortFunc(r.Links, func(a, b Link) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name)) })
	return r
}

// scan is the statistic: in of all losses are on across of all pairs.
func scan(in, across, sum, pairs float64) float64 {
	rate := sum / pairs
	if across <= 0 || in/across <= rate {
		return 0
	}
	ratio := in * math.Log(in/across/rate)
	if out := sum - in; out > 1e-9*sum && pairs > across {
		ratio += out * math.Log(out/(pairs-across)/rate)
	}
	return ratio
}

// shown bounds the table.
const shown = 10

// Body is the verdict as a part of a report.
func (r Ranking) Body() report.Body {
	t := report.Table{Name: "suspect_links", Title: "Links that losses have in common", Limit: shown, Help: "the most suspect first",
		Columns: []report.Column{
			{Name: "link", Label: true, Help: "as the file of paths names it"},
			{Name: "score", Metric: true, Help: "log-likelihood ratio: that it loses more than the rest of the network, against as much"},
			{Name: "explained", Unit: report.Ratio, Help: "share of the losses whose flows may have crossed it"},
			{Name: "afflicted", Unit: report.Ratio, Help: "share of the prefix pairs across it of which a flow has lost something"},
			{Name: "pairs", Unit: report.Prefixes, Help: "prefix pairs with losses across it"},
		}}
	for _, l := range r.Links[:min(len(r.Links), shown)] {
		t.Rows = append(t.Rows, []any{l.Name, l.Score, l.Explained, l.Afflicted, int64(l.Pairs)})
	}
	return report.Body{Tables: []report.Table{t}, Values: []report.Value{
		{Name: "lossy_flows", Value: int64(r.Flows), Unit: report.Flows, Help: "flows with losses whose paths are known"},
		{Name: "lossy_flows_unknown", Value: int64(r.Unknown), Unit: report.Flows, Help: "... whose paths are in no line of the file"},
	}}
}
