package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/lab/eval/figure"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

func TestUnknown(t *testing.T) {
	o := Options{Dir: t.TempDir(), Only: []string{"no-such"}}
	if err := Run(t.Context(), o); !errors.Is(err, ErrNoStudy) {
		t.Errorf("an unknown study: %v", err)
	}
}

// A document keeps the sections that are not run again, and begins with the bars of all.
func TestDocument(t *testing.T) {
	version := "first"
	section := func(name string) Section {
		return Section{Name: name, Title: "About " + name, Run: func(_ context.Context, p *Page) error {
			p.Text("%s says %s", name, version)
			p.Bar("bar of "+name, "1 or less", "0.5", version == "first")
			p.Unjudged("another of "+name, "3 or less", "nobody came")
			return nil
		}}
	}
	s := &Study{Name: "toy", Title: "Toy", Intro: "Intro.", Sections: []Section{section("one"), section("two")}}
	o := Options{Dir: t.TempDir(), Command: "make eval", Log: t.Logf}
	if err := o.study(t.Context(), s, &sources{commit: "abc"}); err != nil {
		t.Fatal(err)
	}
	version = "second"
	o.Only = []string{"toy.two"}
	if err := o.study(t.Context(), s, &sources{commit: "abc"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.Dir, "toy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Toy\n\nIntro.\n", "one says first", "two says second", "| bar of one | 1 or less | 0.5 | yes |",
		"| bar of two | 1 or less | 0.5 | **no** |",
		"| another of two | 3 or less | - | not judged: nobody came |", ", commit abc, `make eval`"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "two says first") {
		t.Error("a section that ran again is still there as it was")
	}
}

// Only what a commit has is called one, and pages of anything else are refused.
func TestSources(t *testing.T) {
	for want, s := range map[string]*sources{"commit abc": {commit: "abc"}, "draft: 1 files differ from abc": {commit: "abc", changed: []string{"x.go"}},
		"draft of sources without a commit": {}} {
		if s.String() != want || s.clean() != strings.HasPrefix(want, "commit") {
			t.Errorf("%+v is %q and clean %v", s, s, s.clean())
		}
	}
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(path), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Dir: "docs/eval"}
	if err := Run(t.Context(), o); !errors.Is(err, ErrDraft) {
		t.Errorf("outside of a tree: %v", err)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "x")
	write("docs/eval/toy.md")
	if err := Run(t.Context(), o); err != nil || !sourcesNow(t.Context()).clean() {
		t.Errorf("pages alone are changed: %v, %v", sourcesNow(t.Context()), err)
	}
	write("study.go")
	if err := Run(t.Context(), o); !errors.Is(err, ErrDraft) || !strings.Contains(err.Error(), "study.go") {
		t.Errorf("a file that no commit has: %v", err)
	}
	o.Draft = true
	if err := Run(t.Context(), o); err != nil {
		t.Errorf("a draft: %v", err)
	}
}

// A check lets a page stand that a second run repeats, but for numbers within the spread that they are printed with.
func TestCheck(t *testing.T) {
	row := "0.953 ± 0.007 | 27"
	section := Section{Name: "one", Title: "One", Run: func(_ context.Context, p *Page) error {
		p.Text("| entries | recall | found |\n|:---|---:|---:|\n| ways = 2 | %s |", row)
		return p.Figure(&figure.Figure{Panels: []figure.Panel{{Title: row[:5]}}}, "one", "a figure")
	}}
	s := &Study{Name: "toy", Title: "Toy", Sections: []Section{section}}
	kept := studies
	studies = []*Study{s}
	defer func() { studies = kept }()
	var log strings.Builder
	o := Options{Dir: t.TempDir(), Only: []string{"toy"}, Log: func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }}
	if err := Check(t.Context(), o, 1); !errors.Is(err, ErrDiffers) {
		t.Errorf("a section without a page: %v", err)
	}
	if err := o.study(t.Context(), s, &sources{commit: "abc"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row, want string
		same      bool
	}{
		{row, "toy.one (commit abc): 0 differences", true},
		{"0.961 ± 0.006 | 27", "2 differences, 0 of them", true},
		{"0.993 ± 0.007 | 27", "ways = 2, recall: 0.953, now 0.993 (+4.2 %)", false},
		{"0.953 ± 0.007 | 30", "ways = 2, found: 27, now 30 (+11 %)", false},
		{"0.953 ± 0.007 | none", "now \"| ways = 2 | 0.953 ± 0.007 | none |\"", false},
	} {
		row = c.row
		log.Reset()
		if err := Check(t.Context(), o, 1); (err == nil) != c.same || err != nil && !errors.Is(err, ErrDiffers) || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: %v\n%s", c.row, err, log.String())
		}
	}
	row = "0.953 ± 0.007 | 27"
	if err := os.WriteFile(filepath.Join(o.Dir, "toy-one.svg"), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), o, 1); !errors.Is(err, ErrDiffers) {
		t.Errorf("another figure: %v", err)
	}
}

// A tenth is drawn, by the seed alone.
func TestDrawn(t *testing.T) {
	kept := studies
	defer func() { studies = kept }()
	studies = []*Study{{Name: "toy", Sections: make([]Section, 31)}}
	for i := range studies[0].Sections {
		studies[0].Sections[i].Name = fmt.Sprint(i)
	}
	o, found := &Options{}, map[string]bool{}
	for seed := range uint64(40) {
		list := o.drawn(seed)
		if len(list) != 4 || fmt.Sprint(list) != fmt.Sprint(o.drawn(seed)) {
			t.Fatalf("seed %d: %v", seed, list)
		}
		for _, at := range list {
			found[at.String()] = true
		}
	}
	if len(found) < 28 {
		t.Errorf("40 draws of 4 of 31 find %d", len(found))
	}
}
