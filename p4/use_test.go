package p4

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/p4/tna/run"
)

const docFile = "../docs/twins.md"

// use is what a program takes of a chip.
type use struct{ stages, sram, mapRAM, tcam, hashBits, salus, tables int }

// chip has so much of everything.
var chip = map[run.Target]use{
	run.Tofino1: {stages: 12, sram: 960, mapRAM: 576, tcam: 288, hashBits: 4992, salus: 48, tables: 192},
	run.Tofino2: {stages: 20, sram: 1600, mapRAM: 960, tcam: 480, hashBits: 8320, salus: 80, tables: 320},
}

func (u use) fits(target run.Target) error {
	most := chip[target]
	for _, part := range []struct {
		name      string
		have, max int
	}{
		{"stages", u.stages, most.stages}, {"SRAM", u.sram, most.sram}, {"map RAM", u.mapRAM, most.mapRAM}, {"TCAM", u.tcam, most.tcam},
		{"hash bits", u.hashBits, most.hashBits}, {"stateful ALUs", u.salus, most.salus}, {"logical tables", u.tables, most.tables},
	} {
		if part.have < 1 || part.have > part.max {
			return fmt.Errorf("%s: %d of %d", part.name, part.have, part.max)
		}
	}
	return nil
}

func useKey(twin string, form Form, target run.Target) string {
	return fmt.Sprintf("%s %s Tofino %d", twin, form, target)
}

// row of the table in docs/twins.md.
func (u use) row(twin string, form Form, target run.Target) string {
	cells := []string{twin, "", fmt.Sprint(target)}
	if text := form.String(); text != "" {
		cells[1] = "`" + text + "`"
	}
	for _, n := range []int{u.stages, u.sram, u.mapRAM, u.tcam, u.hashBits, u.salus, u.tables} {
		cells = append(cells, strconv.Itoa(n))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// useRow: twin | -D | target | seven numbers.
var useRow = regexp.MustCompile("(?m)^\\| (\\w+) \\| (?:`([^`]*)`)? ?\\| ([12]) \\|((?: \\d+ \\|){7})$")

// documentedUses reads the rows of docs/twins.md.
func documentedUses(path string) (map[string]use, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[string]use{}
	for _, m := range useRow.FindAllStringSubmatch(string(text), -1) {
		var u use
		if _, err := fmt.Sscanf(strings.ReplaceAll(m[4], "|", ""), "%d %d %d %d %d %d %d",
			&u.stages, &u.sram, &u.mapRAM, &u.tcam, &u.hashBits, &u.salus, &u.tables); err != nil {
			return nil, fmt.Errorf("read %s: row %q: %w", path, m[0], err)
		}
		key := fmt.Sprintf("%s %s Tofino %s", m[1], m[2], m[3])
		if _, twice := found[key]; twice {
			return nil, fmt.Errorf("read %s: two rows for %s", path, key)
		}
		found[key] = u
	}
	return found, nil
}

// report is the part of the compiler's resources.json that is read here; lists have one element a resource in use.
type report struct {
	Resources struct {
		MAU struct {
			Stages []struct {
				Number int `json:"stage_number"`
				RAMs   struct {
					SRAMs []any `json:"srams"`
				} `json:"rams"`
				MapRAMs struct {
					MapRAMs []any `json:"maprams"`
				} `json:"map_rams"`
				TCAMs struct {
					TCAMs []any `json:"tcams"`
				} `json:"tcams"`
				Hash struct {
					Bits []any `json:"bits"`
				} `json:"hash_bits"`
				Meters struct {
					ALUs []any `json:"meters"`
				} `json:"meter_alus"`
				Tables struct {
					IDs []any `json:"ids"`
				} `json:"logical_tables"`
			} `json:"mau_stages"`
		} `json:"mau"`
	} `json:"resources"`
}

// readUse finds and adds up the compiler's report below the folder that it wrote.
func readUse(out string) (use, error) {
	var found string
	err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "resources.json" {
			found = path
		}
		return err
	})
	if err != nil || found == "" {
		return use{}, fmt.Errorf("find resources.json below %s: none (%v)", out, err)
	}
	text, err := os.ReadFile(found)
	if err != nil {
		return use{}, err
	}
	return parseUse(text)
}

func parseUse(text []byte) (u use, err error) {
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return u, fmt.Errorf("read resources.json: %w", err)
	}
	for _, s := range r.Resources.MAU.Stages {
		if len(s.Tables.IDs) > 0 {
			u.stages = max(u.stages, s.Number+1)
		}
		u.sram += len(s.RAMs.SRAMs)
		u.mapRAM += len(s.MapRAMs.MapRAMs)
		u.tcam += len(s.TCAMs.TCAMs)
		u.hashBits += len(s.Hash.Bits)
		u.salus += len(s.Meters.ALUs)
		u.tables += len(s.Tables.IDs)
	}
	if u.stages == 0 {
		return u, fmt.Errorf("read resources.json: no stage has a table")
	}
	return u, nil
}

// TestReport: a report as the compiler writes it.
func TestReport(t *testing.T) {
	u, err := parseUse([]byte(`{"resources": {"mau": {"nStages": 12, "mau_stages": [
		{"stage_number": 0, "rams": {"srams": [{}, {}]}, "map_rams": {"maprams": [{}]}, "tcams": {"tcams": []},
		 "hash_bits": {"bits": [{}, {}, {}]}, "meter_alus": {"meters": [{}]}, "logical_tables": {"ids": [{}, {}]}},
		{"stage_number": 3, "rams": {"srams": [{}]}, "map_rams": {"maprams": []}, "tcams": {"tcams": [{}]},
		 "hash_bits": {"bits": []}, "meter_alus": {"meters": []}, "logical_tables": {"ids": [{}]}},
		{"stage_number": 4, "logical_tables": {"ids": []}}]}}}`))
	want := use{stages: 4, sram: 3, mapRAM: 1, tcam: 1, hashBits: 3, salus: 1, tables: 3}
	if err != nil || u != want {
		t.Errorf("read %+v (%v), want %+v", u, err, want)
	}
	if _, err := parseUse([]byte(`{}`)); err == nil {
		t.Error("a report without stages is taken for a program")
	}
	row := want.row("lean", Form{"LEAN_STATS": "3"}, run.Tofino2)
	path := filepath.Join(t.TempDir(), "table.md")
	if err := os.WriteFile(path, []byte("| twin |\n"+row+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := documentedUses(path)
	if err != nil || back[useKey("lean", Form{"LEAN_STATS": "3"}, run.Tofino2)] != want {
		t.Errorf("row %q is read as %v (%v)", row, back, err)
	}
}
