package testutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type suite func() int

func (s suite) Run() int { return s() }

func discard(string) (int, error) { return 0, nil }

func TestMain(m *testing.M) { Main(m) }

func TestLeakIsFound(t *testing.T) {
	var open *os.File
	code := run(suite(func() int {
		f, err := os.Open(filepath.Join(Root(t), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		open = f
		return 0
	}), discard)
	if code == 0 {
		t.Error("an open file was not reported")
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	code = run(suite(func() int { go func() { <-stop }(); return 0 }), discard)
	close(stop)
	if code == 0 {
		t.Error("a goroutine was not reported")
	}
	if code := run(suite(func() int { return 0 }), discard); code != 0 {
		t.Error("a clean suite was reported")
	}
	if code := run(suite(func() int { return 3 }), discard); code != 3 {
		t.Error("a failing suite must keep its code")
	}
}

func TestRoot(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(Root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "module github.com/xdpmon/xdpmon") {
		t.Error("Root is not the module's folder")
	}
}

func TestSeedFromEnvironment(t *testing.T) {
	t.Setenv("XDPMON_SEED", "0x2a")
	if got := Seed(t); got != 42 {
		t.Errorf("seed %d, want 42", got)
	}
}

func TestBPFFS(t *testing.T) {
	var dir string
	t.Run("mounted", func(t *testing.T) {
		dir = BPFFS(t)
		if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if dir == "" {
		t.Skip("not mounted: see above")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there", dir)
	}
}
