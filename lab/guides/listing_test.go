package guides

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// notRun are the fenced blocks of guides that nothing runs, by page and first word, with the reason.
var notRun = map[string]string{
	"kubernetes.md helm": "there is no cluster here: lab/chart renders, lints and decodes the chart with each of these sets of values",
}

var fileFence = regexp.MustCompile("<!-- file: [^\n]* -->\n```([a-z]*)\n([^\n ]*)")

var anyFence = regexp.MustCompile("(?m)^```([a-z]*)\n([^\n ]*)")

// TestNothingIsLeftOut: what stands in a block of a guide is a command that TestGuides runs and whose output is compared, a file that they find, a query that lab/metrics asks, or on the list above; and each page that
// docs/guides/README.md lists has one of these.
func TestNothingIsLeftOut(t *testing.T) {
	root := testutil.Root(t)
	list, err := os.ReadFile(filepath.Join(root, "docs/guides/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/guides/*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d guides: %v", len(pages), err)
	}
	used := map[string]bool{}
	for _, page := range pages {
		name := filepath.Base(page)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if name != "README.md" && !strings.Contains(string(list), "("+name+")") {
			t.Errorf("docs/guides/README.md does not list %s", name)
		}
		run, isFile := 0, map[string]bool{}
		for _, m := range fileFence.FindAllStringSubmatch(string(text), -1) {
			isFile[m[1]+" "+m[2]] = true
		}
		for n, fence := range anyFence.FindAllStringSubmatch(string(text), -1) {
			if n%2 == 1 {
				continue // the end of a block
			}
			switch reason := notRun[name+" "+fence[2]]; {
			case fence[1] == "sh":
				run++
			case isFile[fence[1]+" "+fence[2]]:
			case fence[1] == "promql":
			case reason == "":
				t.Errorf("%s: nothing runs the block that begins with %q", name, fence[2])
			default:
				used[name+" "+fence[2]] = true
			}
		}
		if list := blocks(t, page); len(list) != run {
			t.Errorf("%s: %d of %d blocks of commands are run", name, len(list), run)
		}
		for _, b := range blocks(t, page) {
			if len(b.prints) == 0 {
				t.Errorf("%s: nothing is expected of what this prints:\n%s", name, b.commands)
			}
		}
	}
	for block := range notRun {
		if !used[block] {
			t.Errorf("%s is not there any more", block)
		}
	}
}
