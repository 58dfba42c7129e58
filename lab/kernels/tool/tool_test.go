package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpmon/xdpmon/lab/kernels/verdict"
	"github.com/xdpmon/xdpmon/tests/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// unpacked reads an archive as the kernel does.
func unpacked(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for {
		if string(archive[:6]) != "070701" {
			t.Fatalf("no header where one must be: %q", archive[:6])
		}
		field := func(n int) int {
			v, err := strconv.ParseUint(string(archive[6+8*n:14+8*n]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
		mode, size, length := field(1), field(6), field(11)
		name := string(archive[110 : 110+length-1])
		begin := (110 + length + 3) &^ 3
		if name == "TRAILER!!!" {
			return files
		}
		files[name] = fmt.Sprintf("%o %s", mode, archive[begin:begin+size])
		archive = archive[(begin+size+3)&^3:]
	}
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"init": "program", "a/b": "", "a/c": "12345"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := writeArchive(&b, dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"init": "100755 program", "a": "40755 ", "a/b": "100755 ", "a/c": "100755 12345"}
	if got := unpacked(t, b.Bytes()); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the archive holds %q, want %q", got, want)
	}
}

func TestTraceIsTheSameEveryTime(t *testing.T) {
	var first, second bytes.Buffer
	if err := trace(&first); err != nil {
		t.Fatal(err)
	}
	if err := trace(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) || first.Len() < 100_000 {
		t.Errorf("captures of %d and %d bytes, want the same and not few", first.Len(), second.Len())
	}
}

// log is a console with what a firmware, a kernel and xdpmon write around the lines.
func log(t *testing.T, lines ...verdict.Line) string {
	t.Helper()
	text := "SeaBIOS\r\nBooting from ROM...\x1b[2J"
	for _, l := range lines {
		text += l.String() + "\r\n[    1.5] some driver talks\r\n"
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReport(t *testing.T) {
	old := log(t, verdict.Line{Name: verdict.Kernel, OK: true, Detail: "6.1.0"}, verdict.Line{Name: "features", OK: true, Detail: "all\nthere", Seconds: 2},
		verdict.Line{Name: "replay x", Detail: "another answer"}, verdict.Line{Name: verdict.End, OK: true})
	recent := log(t, verdict.Line{Name: verdict.Kernel, OK: true, Detail: "6.12.0"}, verdict.Line{Name: "features", OK: true})
	var b bytes.Buffer
	err := report(&b, []string{old, recent})
	for _, want := range []string{"kernel 6.1.0: replay x: another answer", "kernel 6.12.0: the machine stopped after 1 checks"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	for _, want := range []string{"| check | 6.1.0 | 6.12.0 |", "| features | passed | passed |", "| replay x | **FAILED** | not run |",
		"- features: all there (2.0 s)", "- **FAILED** replay x: another answer", "**the machine stopped here**"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the document lacks %q:\n%s", want, b.String())
		}
	}
	if err := report(&b, []string{log(t, verdict.Line{Name: verdict.Kernel, Detail: "6.1.0"}, verdict.Line{Name: verdict.End})}); err != nil {
		t.Errorf("a machine without failures: %v", err)
	}
}

func TestScriptParses(t *testing.T) {
	bash := testutil.NeedTool(t, "bash")
	if out, err := exec.Command(bash, "-n", filepath.Join(testutil.Root(t), "lab", "kernels", "run")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestGuestRefusesARealMachine: it would mount over what is there.
func TestGuestRefusesARealMachine(t *testing.T) {
	guest := filepath.Join(t.TempDir(), "guest")
	build := exec.Command("go", "build", "-o", guest, "github.com/xdpmon/xdpmon/lab/kernels/guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(guest)
	cmd.Env = []string{"xdpmon_guest=1"}
	if os.Geteuid() == 0 { // what must not happen could not, either
		open(t, guest)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "make kernels") {
		t.Errorf("ended with %v and printed %q", err, out)
	}
}

// open lets everybody reach a file in a test's folder.
func open(t *testing.T, path string) {
	t.Helper()
	for dir := filepath.Dir(path); strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
