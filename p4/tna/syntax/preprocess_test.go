package syntax

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// TestPreprocessorIsTheCompilers: every twin is the same text to this preprocessor and to C's, which the compiler runs: #if, macros whose
// names are macros, pasted names.
func TestPreprocessorIsTheCompilers(t *testing.T) {
	clang := testutil.NeedTool(t, "clang-19")
	include := t.TempDir()
	library := map[string]string{"core.p4": "", "tna.p4": "", "t2na.p4": ""}
	for name := range library {
		if err := os.WriteFile(filepath.Join(include, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tops, err := filepath.Glob("../../*/top.p4")
	if err != nil || len(tops) == 0 {
		t.Fatalf("find twins: %d (%v)", len(tops), err)
	}
	for _, top := range tops {
		name := filepath.Base(filepath.Dir(top))
		for _, define := range []map[string]string{
			{"__TARGET_TOFINO__": "1"}, {"__TARGET_TOFINO__": "2"},
			{"__TARGET_TOFINO__": "1", "LEAN_STATS": "5", "REORDER_METHOD": "0", "REORDER_DEFINITION": "3"},
			{"__TARGET_TOFINO__": "1", "LEAN_STATS": "10", "REORDER_METHOD": "1", "REORDER_DEFINITION": "2"},
		} {
			args := []string{"-E", "-P", "-x", "c", "-undef", "-nostdinc", "-Wno-everything", "-I" + include}
			for k, v := range define {
				args = append(args, "-D"+k+"="+v)
			}
			text, err := exec.Command(clang, append(args, top)...).Output()
			if err != nil {
				t.Fatalf("%s: %v", top, err)
			}
			theirs := lex("clang", string(text))
			mine := preprocess(Source{Files: os.DirFS("../.."), Top: name + "/top.p4", Define: define, Library: library})
			if len(mine) != len(theirs) || len(mine) < 1000 {
				t.Errorf("%s %v: %d words here, %d by clang", name, define, len(mine), len(theirs))
			}
			for i := range min(len(mine), len(theirs)) {
				if mine[i].text != theirs[i].text {
					t.Errorf("%s %v: %s: %q here, %q by clang", name, define, mine[i].Pos, mine[i].text, theirs[i].text)
					break
				}
			}
		}
	}
}
