// Package testutil is shared by the tests of all packages: privileges, captures, seeds, a bpf file system,
// and the check that a package's tests leave no file descriptor and no goroutine open.
package testutil

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Skip skips a test that this machine cannot run, with the reason. In CI (environment variable CI=true) it fails
// instead: there everything has to run.
func Skip(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatalf("CI must not skip this test: "+format, args...)
	}
	tb.Skipf(format, args...)
}

// NeedRoot skips a test that needs privileges.
func NeedRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		Skip(tb, "needs root: run it with sudo")
	}
}

// NeedTool returns the path of a program, or skips; the package that has it is usually called the same.
func NeedTool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Skip(tb, "needs the program %s: install its package", name)
	}
	return path
}

// start is the working directory at the start of the test: its package's folder.
var start, _ = os.Getwd()

// Root is the repository's root folder. Binaries contain no paths (-trimpath), so that worktrees share one build cache.
func Root(tb testing.TB) string {
	tb.Helper()
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "go")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatalf("find repository: no folder above %s has .ci/go", start)
		}
	}
}

// Traces is the folder of captures: the environment variable XDPMON_TRACES, or ../shared/traces beside the
// repository. Captures are not part of the repository, so a test without them is skipped, in CI as well.
func Traces(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("XDPMON_TRACES")
	if dir == "" {
		dir = filepath.Join(Root(tb), "..", "shared", "traces")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		tb.Skipf("no captures in %s: set XDPMON_TRACES to the folder that has them", dir)
	}
	return dir
}

// Trace is the path of one capture.
func Trace(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(Traces(tb), name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		tb.Skipf("no capture %s: set XDPMON_TRACES to the folder that has it", path)
	}
	return path
}

// CornerCaptures are the paths of the small captures with odd packets.
func CornerCaptures(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(Traces(tb), "corner", "*.pcap*"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(paths) == 0 {
		tb.Skipf("no captures in %s", filepath.Join(Traces(tb), "corner"))
	}
	return paths
}

// Seed is a test's seed: the environment variable XDPMON_SEED, or a new one. A failing test prints it.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("XDPMON_SEED"); given != "" {
		value, err := strconv.ParseUint(given, 0, 64)
		if err != nil {
			tb.Fatalf("read XDPMON_SEED=%s: %v", given, err)
		}
		seed = value
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("to repeat this run: XDPMON_SEED=%d", seed)
		}
	})
	return seed
}
