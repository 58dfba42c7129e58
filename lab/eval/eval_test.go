package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if err := o.study(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	version = "second"
	o.Only = []string{"toy.two"}
	if err := o.study(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(o.Dir, "toy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Toy\n\nIntro.\n", "one says first", "two says second", "| bar of one | 1 or less | 0.5 | yes |",
		"| bar of two | 1 or less | 0.5 | **no** |",
		"| another of two | 3 or less | - | not judged: nobody came |", "`make eval`"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "two says first") {
		t.Error("a section that ran again is still there as it was")
	}
}
