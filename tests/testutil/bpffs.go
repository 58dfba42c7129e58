package testutil

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// BPFFS mounts a separate bpf file system for a test and returns its folder. It is removed with the test.
func BPFFS(tb testing.TB) string {
	tb.Helper()
	NeedRoot(tb)
	dir, err := os.MkdirTemp("", "xdpmon-bpffs-")
	if err != nil {
		tb.Fatal(err)
	}
	if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
		_ = os.Remove(dir)
		Skip(tb, "mount bpf file system on %s: %v", dir, err)
	}
	tb.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			tb.Errorf("unmount %s: %v", dir, err)
		}
		if err := os.Remove(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}
