package beaucoup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/userspace/algo"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// A run follows its file: what is in it is what runs, and a file that cannot be used changes nothing and is named in the next report,
// once.
func TestFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queries.yaml")
	written := time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // whatever the file system's resolution is
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write("queries:\n  - a: count distinct dst by src > 100 in 10s\n")
	i, _ := loaded(t, map[string]string{"file": path})
	var notices []string
	i.notify = func(format string, args ...any) { notices = append(notices, fmt.Sprintf(format, args...)) }
	check := func(names, trouble string) {
		t.Helper()
		if err := i.Tick(1); err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, q := range i.program.Queries {
			have = append(have, q.Name)
		}
		r, err := algo.Window(i, report.Window{End: 1}, 0)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(r.Body.Notes, "\n")
		if strings.Join(have, " ") != names || !strings.Contains(notes, trouble) || trouble == "" && strings.Contains(notes, "stay as they were") {
			t.Errorf("queries %v, notes %q; want %s, %q", have, notes, names, trouble)
		}
	}
	check("a", "")
	write("queries:\n  - a: count distinct dst by src > 100 in 10s\n  - b: count distinct src by dst > 100 in 10s\n")
	check("a b", "")
	for text, trouble := range map[string]string{"queries: [": "did not find", "": "0 given", "queries:\n  - c: count everything\n": "write queries as NAME",
		"queries:\n  - c: count distinct dns.qname by src > 5 in 1s\n": "dns.qname"} {
		notices = nil
		write(text)
		check("a b", trouble)
		check("a b", "")
		if len(notices) != 1 || !strings.Contains(notices[0], trouble) || !strings.Contains(notices[0], path) {
			t.Errorf("the operator got %q; want one sentence with %s and %q", notices, path, trouble)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("a b", "")
	write("queries:\n  - b: count distinct src by dst > 100 in 10s\n")
	check("b", "")
}
