package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpmon/xdpmon/userspace/report"
)

// Windows' snapshots become files, the oldest of which go when there is no room, those of an earlier run first.
func TestSnapshotsStayWithinTheirLimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	full := 0
	opts := Options{Limit: 1000, Clock: report.Clock{UnixOffsetNS: 1_700_000_000e9}, Full: func() { full++ }}
	writer, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	line := report.Line{Algorithm: "test-sums", Identity: report.Identity{Instance: "../eth0,eth1"}}
	for n := range 5 {
		line.Window.End, line.Snapshot = int64(n)*1e9, make([]byte, 300)
		if err := writer.Write(&line); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(files(t, dir)); n != 3 {
		t.Errorf("%d files of 300 bytes, 1000 are allowed", n)
	}
	if name := files(t, dir)[2]; name != "20231114T221324.000000000Z-test-sums-eth0,eth1.xdpsnap" {
		t.Errorf("the last is %s", name)
	}
	if full != 1 {
		t.Errorf("the full folder was logged %d times", full)
	}
	opts.Clock = report.Clock{}
	again, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	line.Window.End, line.Snapshot = 1_800_000_000e9, make([]byte, 600)
	if err := again.Write(&line); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) != 2 || !strings.HasPrefix(left[0], "20231114T221324") {
		t.Errorf("left are %v", left)
	}
	line.Snapshot = make([]byte, 1001)
	if err := again.Write(&line); err == nil {
		t.Error("a snapshot above the limit was written")
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Whatever an interface is called, its files are; a window that is written again takes the place of the one before.
func TestNames(t *testing.T) {
	f, err := Open(t.TempDir(), Options{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{"a/eth0": "eth0", "azAZ09-.,": "azAZ09-.,", "`{@[/:+": "_+", "a{b@c[d`e:f+g é": "a_b_c_d_e_f_g__", strings.Repeat("n", 65): strings.Repeat("n", 64), "": "."} {
		want = "19700101T000001.000000002Z-lean-" + strings.ReplaceAll(want, "+", "_") + Suffix
		if got := f.name(&report.Line{Algorithm: "lean", Identity: report.Identity{Instance: where}, Window: report.Window{End: 1_000_000_002}}); got != want {
			t.Errorf("%q: %s, want %s", where, got, want)
		}
	}
	line := report.Line{Algorithm: "lean", Identity: report.Identity{Instance: "eth0"}}
	for _, size := range []int{400, 600, 1000, 300, 200} {
		line.Snapshot = make([]byte, size)
		if err := f.Write(&line); err != nil {
			t.Fatal(err)
		}
		if f.bytes != int64(size) || len(f.files) != 1 {
			t.Errorf("%d files of %d bytes, one of %d was written", len(f.files), f.bytes, size)
		}
	}
	for n := range int64(3) {
		line.Window.End = n + 1
		line.Snapshot = make([]byte, 400)
		if err := f.Write(&line); err != nil {
			t.Fatal(err)
		}
	}
	if got := files(t, f.Dir); len(got) != 2 || f.bytes != 800 {
		t.Errorf("%d bytes in %v", f.bytes, got)
	}
}
