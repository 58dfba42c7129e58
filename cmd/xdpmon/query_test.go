package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

// A file of queries is planned with what each will do; the same by --query; a file that is not there, or a query that is none, is
// named.
func TestPlanQueries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queries.yaml")
	text := "queries:\n  - spreader: count distinct dst by src > 1000 in 30s\n  - scan: count distinct dport by src+dst > 100 in 10s\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	if code := w.run("plan", "beaucoup", "-f", file, "--rate", "500k/s", "--output", "json"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	plan := lines(t, w.out.String())[0]["plan"].(map[string]any)
	queries := plan["queries"].([]any)
	if len(queries) != 2 || plan["attributes"] != 2.0 || plan["memory"].(float64) <= 0 {
		t.Errorf("plan %v", plan)
	}
	for _, q := range queries {
		row := q.(map[string]any)
		threshold, draws, bias := row["threshold"].(float64), row["draws"].(float64), row["bias"].(float64)
		if off := draws/threshold - 1; off-bias > 0.01 || bias-off > 0.01 || bias > 0.05 || bias < -0.05 {
			t.Errorf("%v: %v draws for a threshold of %v, bias %v", row["query"], draws, threshold, bias)
		}
		for _, name := range []string{"m", "n", "p", "error", "memory", "window", "collectors"} {
			if v, ok := row[name].(float64); !ok || v <= 0 {
				t.Errorf("%v: %s is %v", row["query"], name, row[name])
			}
		}
	}
	w = newWorld()
	w.run("plan", "beaucoup", "--query", "a: count distinct dst by src > 10 in 1s")
	if out := w.out.String(); !strings.Contains(out, "a ") || !strings.Contains(out, "37.8 %") {
		t.Errorf("plan of a query: %s", out)
	}
	for _, c := range []struct{ args, want string }{
		{"-f " + file + ".not", "no such file"}, {"--query x", "write queries as NAME"}, {"--query q:count.distinct", "write queries as NAME"},
	} {
		w = newWorld()
		if code := w.run(append([]string{"plan", "beaucoup"}, strings.Fields(c.args)...)...); code == cli.ExitDone || !strings.Contains(w.err.String(), c.want) {
			t.Errorf("plan beaucoup %s: exit code %d, %s; want %q", c.args, code, w.err.String(), c.want)
		}
	}
}

// A device has no end: it is refused before it fills the memory.
func TestPlanQueriesOfADevice(t *testing.T) {
	w := newWorld()
	if code := w.run("plan", "beaucoup", "-f", "/dev/zero"); code != cli.ExitUsage || !strings.Contains(w.err.String(), "/dev/zero has more than") {
		t.Errorf("exit code %d: %s", code, w.err.String())
	}
}
