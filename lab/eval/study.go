// Package eval runs evaluations: the figures of the papers through the real bytecode, written as one document an
// algorithm under docs/eval. A study registers itself in init, as algorithms do; its sections can be run one by one.
package eval

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// Study is the evaluation of one algorithm: docs/eval/NAME.md.
type Study struct {
	Name     string // of the document, and in -only
	Title    string
	Intro    string // Markdown
	Sections []Section
}

// Section is a part of a study that can be run alone.
type Section struct {
	Name  string // in -only STUDY.NAME, and of its figures
	Title string
	Run   func(ctx context.Context, p *Page) error
}

var studies []*Study

// Register adds a study; it is called from init.
func Register(s *Study) {
	if slices.ContainsFunc(studies, func(o *Study) bool { return o.Name == s.Name }) {
		panic("eval: " + s.Name + " is registered twice")
	}
	studies = append(studies, s)
	slices.SortFunc(studies, func(a, b *Study) int { return strings.Compare(a.Name, b.Name) })
}

// Studies lists what is registered, by name.
func Studies() []*Study { return slices.Clone(studies) }

// Page is what a section writes to.
type Page struct {
	Quick bool // a few seeds and packets: to see that everything works, not for conclusions
	Look
	Log func(format string, args ...any)

	dir    string
	prefix string
	text   strings.Builder
	bars   []bar
}

// Look is for who looks for the reason of a figure: other seeds, some cells, what did not hold. Sections of kind coverage know it.
type Look struct {
	Seeds  int            // a cell; 0: what the section takes
	Cells  *regexp.Regexp // nil: all
	Misses bool           // log them
	Pieces string         // folder in which an interrupted section leaves what it has, and finds it; "": none
}

// NewPage makes a page whose figures are dir/PREFIX-NAME.svg.
func NewPage(dir, prefix string, quick bool, log func(string, ...any)) *Page {
	return &Page{Quick: quick, Log: log, dir: dir, prefix: prefix}
}

// Pick returns the full value, or the one for a quick run.
func Pick[T any](p *Page, full, quick T) T {
	if p.Quick {
		return quick
	}
	return full
}

// Text writes a paragraph of Markdown.
func (p *Page) Text(format string, args ...any) {
	p.text.WriteString(strings.TrimSpace(fmt.Sprintf(format, args...)) + "\n\n")
}

// Table writes a table.
func (p *Page) Table(t *figure.Table) { p.text.WriteString(t.String() + "\n") }

// Figure draws a picture and shows it.
func (p *Page) Figure(f *figure.Figure, name, alternative string) error {
	link, err := f.Save(p.dir, p.prefix+"-"+name+".svg", alternative)
	p.text.WriteString(link + "\n")
	return err
}

// Bar compares a figure with what is demanded of it; the document begins with all of them.
func (p *Page) Bar(what, demanded, measured string, met bool) {
	verdict := "yes"
	if !met {
		verdict = "**no**"
	}
	p.bars = append(p.bars, bar{what, demanded, measured, verdict})
}

// Unjudged is a bar that this run cannot judge, and why: "-" meets nothing.
func (p *Page) Unjudged(what, demanded, why string) {
	p.bars = append(p.bars, bar{what, demanded, "-", "not judged: " + why})
}

// Shown is a figure beside the bars of which nothing is demanded.
func (p *Page) Shown(what, measured string) {
	p.bars = append(p.bars, bar{what, "shown", measured, ""})
}

// Bars so far: what, the bar, what was measured, whether that meets it.
func (p *Page) Bars() (list [][]string) {
	for _, b := range p.bars {
		list = append(list, b.cells())
	}
	return list
}

type bar struct{ what, demanded, measured, verdict string }

func (b bar) cells() []string { return []string{b.what, b.demanded, b.measured, b.verdict} }

// run a section and return its Markdown.
func (s Section) run(ctx context.Context, p *Page, provenance string) (string, error) {
	started := time.Now()
	if err := s.Run(ctx, p); err != nil {
		return "", err
	}
	took := time.Since(started)
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", s.Title)
	for _, cells := range p.Bars() {
		fmt.Fprintf(&b, "<!-- bar: %s -->\n", strings.Join(cells, " ; "))
	}
	b.WriteString(p.text.String())
	fmt.Fprintf(&b, "*%s; %s.*\n", provenance, took.Round(time.Second))
	return b.String(), nil
}
