package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/p4/tna/dump"
	"github.com/xdpmon/xdpmon/p4/tna/twin"
	"github.com/xdpmon/xdpmon/tests/builder"
	"github.com/xdpmon/xdpmon/tests/testutil"
	captures "github.com/xdpmon/xdpmon/userspace/capture"
	"github.com/xdpmon/xdpmon/userspace/packet"
)

// reportOf is a window's report, without the fields that only one of the runs has.
func reportOf(t *testing.T, w *world) map[string]any {
	t.Helper()
	return lines(t, w.out.String())[1]["report"].(map[string]any)
}

// TestP4RunReportsWhatReplayReports: the switch's registers, the bytecode's, and registers from a file are one report.
func TestP4RunReportsWhatReplayReports(t *testing.T) {
	testutil.NeedRoot(t)
	folder := t.TempDir()
	capture, registers := filepath.Join(folder, "handshakes.pcap"), filepath.Join(folder, "switch.json")
	if err := os.WriteFile(capture, builder.Handshakes(t, 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string][]string{"rtt-array": nil, "fridge": {"--set", "fridge.correction=table"}} {
		sayTheSame(t, [][]string{
			append([]string{"replay", capture, "--algo", name, "--hash", "crc"}, set...),
			{"p4", "run", name, capture, "--dump", registers},
			{"p4", "run", name, "--registers", registers},
		})
	}
	if code := realWorld().run("p4", "run", "fridge", capture, "--dump", registers); code != cli.ExitDone {
		t.Fatalf("exit code %d", code)
	}
	t.Run("refused", func(t *testing.T) { refuseDumps(t, registers) })
}

// TestP4RunWithDigests: digests are part of the report, and of a dump.
func TestP4RunWithDigests(t *testing.T) {
	testutil.NeedRoot(t)
	capture, registers := testutil.Trace(t, "web_reordered.pcap"), filepath.Join(t.TempDir(), "switch.json")
	sayTheSame(t, [][]string{{"p4", "run", "reorder", capture, "--dump", registers}, {"p4", "run", "reorder", "--registers", registers}})
	prefixes := func(arguments ...string) (names []string) {
		w := realWorld()
		if code := w.run(arguments...); code != cli.ExitDone {
			t.Fatalf("%v: exit code %d: %s", arguments, code, w.err.String())
		}
		for _, row := range reportOf(t, w)["prefixes"].([]any) {
			names = append(names, row.(map[string]any)["prefix"].(string))
		}
		return names
	}
	replayed := []string{"replay", capture, "--algo", "reorder", "--hash", "crc"}
	for _, set := range []string{"method=hybrid", "buckets=3072", "x=0.667", "prefix6=32", "ways=2", "definition=1"} {
		replayed = append(replayed, "--set", "reorder."+set)
	}
	host, mine := prefixes(replayed...), prefixes("p4", "run", "reorder", capture)
	if len(host) < 4 {
		t.Errorf("the bytecode finds %v alone", host)
	}
	for _, name := range host { // an empty record of a switch lets every second packet in only
		if !slices.Contains(mine, name) {
			t.Errorf("prefix %s is the bytecode's alone; the switch names %v", name, mine)
		}
	}
}

// TestP4RunLean: the sketches of the switch name the flows that those of the bytecode name, with the same numbers, and so do bits of keys.
func TestP4RunLean(t *testing.T) {
	testutil.NeedRoot(t)
	folder := t.TempDir()
	capture, registers := filepath.Join(folder, "measured.pcap"), filepath.Join(folder, "switch.json")
	measured(t, testutil.Trace(t, "web_reordered.pcap"), capture)
	run := []string{"p4", "run", "lean", capture, "--dump", registers}
	sayTheSame(t, [][]string{run, {"p4", "run", "lean", "--registers", registers}})
	replayed := []string{"replay", capture, "--algo", "lean", "--hash", "crc"}
	for _, set := range []string{"loss.id=ipid", "p=1/32", "candidates=65536"} {
		replayed = append(replayed, "--set", "lean."+set)
	}
	for _, table := range []string{"loss", "ooo", "retrans"} {
		sameRows(t, table, 4, run, replayed)
	}
	bits := []string{testutil.Trace(t, "speedtest_server.pcap"), "--set", "lean.keys=bits", "--set", "lean.stat=loss", "--set", "lean.loss.id=ipid"}
	sameRows(t, "loss", 1, append([]string{"p4", "run", "lean"}, bits...), append([]string{"replay", "--algo", "lean", "--hash", "crc"}, bits...))
}

// TestP4RunBeaucoup: packets that the switch copies are the alerts of the bytecode: their queries, keys and times.
func TestP4RunBeaucoup(t *testing.T) {
	testutil.NeedRoot(t)
	folder := t.TempDir()
	capture, registers := filepath.Join(folder, "handshakes.pcap"), filepath.Join(folder, "switch.json")
	if err := os.WriteFile(capture, builder.Handshakes(t, 6000), 0o600); err != nil {
		t.Fatal(err)
	}
	run := []string{"p4", "run", "beaucoup", capture, "--dump", registers}
	sayTheSame(t, [][]string{run, {"p4", "run", "beaucoup", "--registers", registers}})
	sameRows(t, "alerts", 3, run, []string{"replay", capture, "--algo", "beaucoup", "--hash", "crc", "--set", "beaucoup.set=many"})
}

// TestP4RunCarpe and AHAB: what the switch counts is what the bytecode counts, in a form that is made for the parameters, and in a dump.
func TestP4RunCarpe(t *testing.T) {
	testutil.NeedRoot(t)
	set := []string{"--set", "carpe.threshold=300", "--set", "carpe.epsilon=0.2", "--set", "carpe.s=1/4"}
	report := compareFields(t, "carpe", set, []string{"--set", "carpe.family=4"})
	if n := report["bundles"].(float64); n < 10 {
		t.Errorf("%v bundles became full: the test shows nothing", n)
	}
}

func TestP4RunAHAB(t *testing.T) {
	testutil.NeedRoot(t)
	set := []string{"--set", `ahab.config={"capacity":"60kbit","slices":[{"name":"all"}]}`}
	report := compareFields(t, "ahab", set, []string{"--set", "ahab.form=table"})
	if n := report["segments_dropped"].(float64); n < 100 {
		t.Errorf("%v segments were dropped: the test shows nothing", n)
	}
}

// compareFields compares all values and tables of a switch's report with those of a replay, of which it may lack some.
func compareFields(t *testing.T, name string, set, replayed []string) map[string]any {
	t.Helper()
	folder := t.TempDir()
	capture, registers := filepath.Join(folder, "measured.pcap"), filepath.Join(folder, "switch.json")
	measured(t, testutil.Trace(t, "web_reordered.pcap"), capture)
	run := append([]string{"p4", "run", name, capture, "--dump", registers}, set...)
	sayTheSame(t, [][]string{run, append([]string{"p4", "run", name, "--registers", registers}, set...)})
	var reports [2]map[string]any
	for i, arguments := range [][]string{run, slices.Concat([]string{"replay", capture, "--algo", name, "--hash", "crc"}, set, replayed)} {
		w := realWorld()
		if code := w.run(arguments...); code != cli.ExitDone {
			t.Fatalf("%v: exit code %d: %s", arguments, code, w.err.String())
		}
		reports[i] = reportOf(t, w)
	}
	delete(reports[0], "notes")
	for key, v := range reports[0] {
		mine, err1 := json.Marshal(v)
		host, err2 := json.Marshal(withColumns(v, reports[1][key]))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if string(mine) != string(host) {
			t.Errorf("%s is %s on the switch, %s on the host", key, mine, host)
		}
	}
	return reports[0]
}

// withColumns is a table of the host with the columns of the switch's.
func withColumns(mine, host any) any {
	rows, ok := host.([]any)
	if !ok {
		return host
	}
	for i, row := range rows {
		if i >= len(mine.([]any)) {
			break
		}
		for column := range row.(map[string]any) {
			if _, there := mine.([]any)[i].(map[string]any)[column]; !there {
				delete(row.(map[string]any), column)
			}
		}
	}
	return rows
}

// measured writes the frames of a capture that switch and host both measure: IPv4 without options, in Ethernet.
func measured(t *testing.T, from, to string) {
	t.Helper()
	source, err := captures.Open(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := builder.NewPcapWriter(out, packet.LinkEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for f := (packet.Frame{}); source.Next(&f) == nil; {
		if len(f.Data) > 34 && f.Data[12] == 8 && f.Data[13] == 0 && f.Data[14] == 0x45 {
			if err := w.Write(&f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// sameRows compares a table's rows, of which there must be some, in the fields that both have.
func sameRows(t *testing.T, table string, least int, mine, host []string) {
	t.Helper()
	var rows [2][]any
	for i, arguments := range [][]string{mine, host} {
		w := realWorld()
		if code := w.run(arguments...); code != cli.ExitDone {
			t.Fatalf("%v: exit code %d: %s", arguments, code, w.err.String())
		}
		rows[i], _ = reportOf(t, w)[table].([]any)
	}
	if len(rows[0]) != len(rows[1]) || len(rows[0]) < least {
		t.Fatalf("%s: %d rows of the switch, %d of the host, want as many and %d at least", table, len(rows[0]), len(rows[1]), least)
	}
	for n, row := range rows[0] {
		other := rows[1][n].(map[string]any)
		for column, v := range row.(map[string]any) {
			if !reflect.DeepEqual(other[column], v) {
				t.Errorf("%s: row %d: %s is %v on the switch, %v on the host", table, n, column, v, other[column])
			}
		}
	}
}

// sayTheSame compares the reports of several command lines.
func sayTheSame(t *testing.T, runs [][]string) {
	t.Helper()
	var texts []string
	for _, arguments := range runs {
		w := realWorld()
		if code := w.run(arguments...); code != cli.ExitDone {
			t.Fatalf("%v: exit code %d: %s", arguments, code, w.err.String())
		}
		text, err := json.Marshal(reportOf(t, w))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for i, text := range texts[1:] {
		if text != texts[0] {
			t.Errorf("%v reports\n%s\nand %v\n%s", runs[0], texts[0], runs[1+i], text)
		}
	}
}

// refuseDumps of another schema, twin, geometry or bank.
func refuseDumps(t *testing.T, registers string) {
	text, err := os.ReadFile(registers)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(d *dump.Dump){
		"schema":   func(d *dump.Dump) { d.Schema = "xdpmon.registers/0" },
		"twin":     func(d *dump.Dump) { d.Twin = "hhh" },
		"bank":     func(d *dump.Dump) { d.Bank = 2 },
		"window":   func(d *dump.Dump) { d.End = d.Start },
		"missing":  func(d *dump.Dump) { delete(d.Registers, "fridge_inserts") },
		"unknown":  func(d *dump.Dump) { d.Registers["other"] = dump.Register{} },
		"size":     func(d *dump.Dump) { r := d.Registers["fridge_inserts"]; r.Entries--; d.Registers["fridge_inserts"] = r },
		"too wide": func(d *dump.Dump) { d.Registers["fridge_inserts"].Data[0] = 1 << 32 },
	} {
		d := &dump.Dump{}
		if err := json.Unmarshal(text, d); err != nil {
			t.Fatal(err)
		}
		change(d)
		other := filepath.Join(t.TempDir(), "other.json")
		f, err := os.Create(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		w := realWorld()
		if code := w.run("p4", "run", "fridge", "--registers", other); code != cli.ExitFailed || !strings.Contains(w.err.String(), "read registers") {
			t.Errorf("%s: exit code %d, %q", name, code, w.err.String())
		}
	}
}

// TestP4RunUsage: what cannot be run is refused with the reason.
func TestP4RunUsage(t *testing.T) {
	testutil.NeedRoot(t)
	for _, arguments := range [][]string{
		{"p4", "run", "fridge"},
		{"p4", "run", "fridge", "a.pcap", "--registers", "b.json"},
		{"p4", "run", "conquest", "a.pcap"},
		{"p4", "run", "lean", "a.pcap", "--set", "lean.p=1"},
		{"p4", "run", "carpe", "a.pcap", "--set", "carpe.ways=3"},
	} {
		w := realWorld()
		if code := w.run(arguments...); code != cli.ExitUsage {
			t.Errorf("%v: exit code %d: %s", arguments, code, w.err.String())
		}
	}
}

// TestP4Plan: a plan names all that a control plane has to do.
func TestP4Plan(t *testing.T) {
	w := realWorld()
	if code := w.run("p4", "plan", "precision"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	var p dump.Plan
	if err := json.Unmarshal([]byte(w.out.String()), &p); err != nil {
		t.Fatal(err)
	}
	if p.Schema != dump.PlanSchema || p.Flip == nil || p.Flip.Table != "Ingress.precision.window" || len(p.Registers) != 6 ||
		!p.Registers[0].Banked || len(p.Fill) != 5 || len(p.Counters) != 2 {
		t.Errorf("the plan is %+v", p)
	}
}

// TestP4PlanNames: a plan names in full what a client cannot guess.
func TestP4PlanNames(t *testing.T) {
	for name, objects := range map[string][]string{
		"conquest": {"mirror session 1", "mirror session 4", "Egress.conquest.ports"},
		"carpe":    {"Ingress.carpe.groups"},
		"beaucoup": {"port to the CPU", "xdpmon p4 rules beaucoup"},
		"ahab":     {"mirror session 4", "xdpmon p4 rules ahab", "Ingress.ahab.lease"},
		"reorder":  {"mirror session 1", "Ingress.reorder.budget"},
		"lean":     {"xdpmon p4 rules lean"},
	} {
		w := realWorld()
		if code := w.run("p4", "plan", name); code != cli.ExitDone {
			t.Errorf("%s: exit code %d: %s", name, code, w.err.String())
			continue
		}
		var p dump.Plan
		if err := json.Unmarshal([]byte(w.out.String()), &p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, object := range objects {
			if !slices.ContainsFunc(p.Fill, func(f twin.Fill) bool { return f.Object == object }) {
				t.Errorf("the plan of %s does not name %s", name, object)
			}
		}
	}
}

// TestSwitchRefusesAlike: every verb that makes something of a switch's configuration refuses what the twin has no form for in the same words.
func TestSwitchRefusesAlike(t *testing.T) {
	for _, setting := range []string{
		"ahab.form=exact", "ahab.dry-run=true", "beaucoup.coupons=64", "beaucoup.export=true", "carpe.family=6", "carpe.ways=3", "conquest.action=drop", "conquest.history=1s",
		"fridge.match=ntp", "fridge.group=dst/24", "fridge.legs=false", "hhh.admission=exact", "hhh.family=6", "hhh.method=stacking", "lean.memory=80kB", "lean.agree=5",
		"precision.family=both", "precision.ways=4", "reorder.prefix6=48",
	} {
		name, _, _ := strings.Cut(setting, ".")
		key, value, _ := strings.Cut(strings.TrimPrefix(setting, name+"."), "=")
		var first string
		for _, verb := range []string{"params", "tables", "plan", "run"} {
			w := realWorld()
			arguments := []string{"p4", verb, name, "--set", setting}
			if verb == "run" {
				arguments = append(arguments, "none.pcap")
			}
			for _, other := range settingsOf(t, name) {
				if !strings.HasPrefix(other, name+"."+key+"=") && verb != "plan" && verb != "run" {
					arguments = append(arguments, "--set", other)
				}
			}
			if code := w.run(arguments...); code == cli.ExitDone {
				t.Errorf("%v is accepted", arguments)
			}
			_, reason, _ := strings.Cut(w.err.String(), "set "+name)
			reason, _, _ = strings.Cut(reason, "\nSee ") // that verb's help
			if want := fmt.Sprintf(".%s=%s: the P4 twin has ", key, value); !strings.HasPrefix(reason, want) {
				t.Errorf("%v: %q, want %q", arguments, w.err.String(), want)
			}
			if first == "" {
				first = reason
			}
			if reason != first {
				t.Errorf("%v: %q, and others report %q", arguments, reason, first)
			}
		}
	}
}

// settingsOf are the parameters for which the eBPF form is a twin's.
func settingsOf(t *testing.T, name string) (all []string) {
	t.Helper()
	tw, ok := twin.Of(name)
	if !ok {
		t.Fatalf("no twin of %s", name)
	}
	set, err := tw.Settings(twin.Form{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range set {
		all = append(all, name+"."+key+"="+value)
	}
	return all
}
