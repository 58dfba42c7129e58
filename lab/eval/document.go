package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
)

// Options of a run of studies.
type Options struct {
	Dir   string   // of the documents and figures
	Only  []string // STUDY or STUDY.SECTION; empty: all
	Quick bool
	Draft bool // from sources that no commit has, too: the footers then say draft
	Look
	// Command is how the run was started, for the documents.
	Command string
	Log     func(format string, args ...any)
}

// ErrNoStudy is returned when Options.Only names what is not there.
var ErrNoStudy = errors.New("no such study or section")

// ErrDraft is returned when pages would not say which commit they are of.
var ErrDraft = errors.New("the sources are not those of a commit")

// Run runs studies and writes their documents. Sections that are not run stay as the document has them.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	from := sourcesNow(ctx)
	if !from.clean() && !o.Quick && !o.Draft {
		return fmt.Errorf("%w: %s %v; commit them, or write drafts with -draft", ErrDraft, from, from.changed)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make folder for documents: %w", err)
	}
	for _, s := range studies {
		if err := o.study(ctx, s, from); err != nil {
			return fmt.Errorf("evaluate %s: %w", s.Name, err)
		}
	}
	return nil
}

func (o *Options) check() error {
	for _, name := range o.Only {
		found := false
		for _, s := range studies {
			found = found || s.Name == name
			for _, section := range s.Sections {
				found = found || s.Name+"."+section.Name == name
			}
		}
		if !found {
			return fmt.Errorf("%w: %s", ErrNoStudy, name)
		}
	}
	return nil
}

func (o *Options) wants(study, section string) bool {
	for _, name := range o.Only {
		if name == study || name == study+"."+section {
			return true
		}
	}
	return len(o.Only) == 0
}

// study runs the wanted sections and writes the document after each, so that an interrupted run keeps what it has. It is read
// again before: another run may have written other sections meanwhile.
func (o *Options) study(ctx context.Context, s *Study, from *sources) error {
	path := filepath.Join(o.Dir, s.Name+".md")
	for _, section := range s.Sections {
		if !o.wants(s.Name, section.Name) {
			continue
		}
		o.Log("%s.%s ...", s.Name, section.Name)
		page := NewPage(o.Dir, s.Name, o.Quick, o.Log)
		page.Look = o.Look
		text, err := section.run(ctx, page, from.provenance(o.Command))
		if err != nil {
			return fmt.Errorf("section %s: %w", section.Name, err)
		}
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read document: %w", err)
		}
		parts := sections(string(old))
		parts[section.Name] = text
		if err := os.WriteFile(path, []byte(s.document(parts)), 0o644); err != nil {
			return fmt.Errorf("write document: %w", err)
		}
	}
	return nil
}

var (
	sectionMark = regexp.MustCompile(`(?s)<!-- section: (\S+) -->\n(.*?)<!-- end -->\n`)
	barMark     = regexp.MustCompile(`<!-- bar: (.*) -->`)
)

// ErrNoSection is wrapped for a document without the marks of a section.
var ErrNoSection = errors.New("no such section")

// Rewritten is the document as a run would leave it that measures nothing: what of the text is lost belongs into the study.
func (s *Study) Rewritten(document string) string { return s.document(sections(document)) }

// ReadSection is what stands between the marks of a section: <!-- section: NAME -->, <!-- end -->.
func ReadSection(path, name string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read document: %w", err)
	}
	part, ok := sections(string(text))[name]
	if !ok {
		return "", fmt.Errorf("read section %s of %s: %w", name, path, ErrNoSection)
	}
	return part, nil
}

// WriteSection replaces what stands between the marks of a section; everything else of the document stays.
func WriteSection(path, name, part string) error {
	old, err := ReadSection(path, name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	mark := "<!-- section: " + name + " -->\n"
	whole := strings.Replace(string(text), mark+old, mark+part, 1)
	if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// sections of a document, by name.
func sections(document string) map[string]string {
	parts := map[string]string{}
	for _, m := range sectionMark.FindAllStringSubmatch(document, -1) {
		parts[m[1]] = m[2]
	}
	return parts
}

// document joins introduction, the table of bars and the sections that there are.
func (s *Study) document(parts map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", s.Title, strings.TrimSpace(s.Intro))
	bars := figure.Table{Columns: []string{"what", "bar", "measured", "met"}}
	for _, section := range s.Sections {
		for _, m := range barMark.FindAllStringSubmatch(parts[section.Name], -1) {
			bars.Add(strings.Split(m[1], " ; ")...)
		}
	}
	if len(bars.Rows) > 0 {
		b.WriteString(bars.String() + "\n")
	}
	for _, section := range s.Sections {
		if text, ok := parts[section.Name]; ok {
			fmt.Fprintf(&b, "<!-- section: %s -->\n%s<!-- end -->\n\n", section.Name, text)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
