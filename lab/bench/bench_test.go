package bench

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/tests/mutator"
	"github.com/xdpmon/xdpmon/tests/testutil"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// Every benchmark runs once, so that it cannot rot: the figures of so few packets mean nothing.
func TestEveryBenchmarkRuns(t *testing.T) {
	testutil.NeedRoot(t)
	subjects, err := Subjects()
	if err != nil {
		t.Fatal(err)
	}
	result, err := Run(subjects, Options{Packets: 2000, Rounds: 1, Flows: 500, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range result.Rows {
		for _, c := range Cases {
			if cell, ok := row.Cells[c.Name]; !ok || cell.Total <= 0 {
				t.Errorf("%s, %s: %+v", row.Subject, c.Name, cell)
			}
		}
	}
	for _, name := range algo.Names() {
		if _, ok := result.Row(name); !ok {
			t.Errorf("algorithm %s is not measured", name)
		}
	}
	checkMatches(t, result)
	checkOutput(t, result)
}

// The live benchmark runs once, for long enough that a sender on a busy machine has its turn: packets arrive at XDP and at TC, whatever is attached, and each way to send has its figure.
func TestLive(t *testing.T) {
	testutil.NeedRoot(t)
	testutil.NeedTool(t, "ethtool")
	subjects, err := Subjects()
	if err != nil {
		t.Fatal(err)
	}
	subjects = slices.DeleteFunc(subjects, func(s Subject) bool { return s.Name != "empty" && s.Name != "alone_precision" })
	rows, err := Live(subjects, LiveOptions{Seconds: .1, Rounds: 1, Bytes: 64, Flows: 500, Traffic: mutator.Data}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 4 {
		t.Fatalf("%d rows of two subjects at two hooks", len(rows))
	}
	for _, r := range rows {
		if slices.Min(r.Packets[:]) <= 0 {
			t.Errorf("%s at %s: %.2f million packets a second", r.Subject, r.Hook, r.Packets)
		}
	}
}

// checkMatches: a benchmark of responses that find nothing would flatter.
func checkMatches(t *testing.T, r *Result) {
	t.Helper()
	row, ok := r.Row("fridge")
	if !ok {
		t.Fatal("no figures of the fridge")
	}
	for _, name := range []string{"response", "mixed"} {
		if matched := row.Cells[name].Matched; matched < 0.8 || matched > 1 {
			t.Errorf("%s: %.0f %% of the responses matched, want 80 to 100", name, 100*matched)
		}
	}
}

func checkOutput(t *testing.T, r *Result) {
	t.Helper()
	var table, object bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if !strings.Contains(table.String(), row.Subject) {
			t.Errorf("the table has no line for %s", row.Subject)
		}
	}
	var back Result
	if err := json.Unmarshal(object.Bytes(), &back); err != nil || len(back.Rows) != len(r.Rows) {
		t.Errorf("JSON does not come back: %v, %d of %d rows", err, len(back.Rows), len(r.Rows))
	}
	t.Log("\n" + table.String())
}

// A parameter that is not there is refused by name.
func TestConfiguredRefuses(t *testing.T) {
	if _, err := Configured("fridge", map[string]string{"nothing": "1"}); err == nil {
		t.Error("an unknown parameter was accepted")
	}
	if _, err := Configured("nothing", nil); err == nil {
		t.Error("an unknown algorithm was accepted")
	}
}
