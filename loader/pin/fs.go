package pin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpmon/xdpmon/loader/privilege"
)

const (
	Root       = "/sys/fs/bpf"
	bpffsMagic = 0xcafe4a11
)

// OnBPFFS returns an error if a path is not on a BPF file system.
func OnBPFFS(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return fmt.Errorf("stat %s: %w", path, err)
	}
	if uint32(fs.Type) != bpffsMagic {
		return fmt.Errorf("no BPF file system at %s", path)
	}
	return nil
}

// mountBPFFS mounts a BPF file system where there is none, readable by root only, with a notice.
func mountBPFFS(path string, notify func(string, ...any)) error {
	if OnBPFFS(path) == nil {
		return nil
	}
	if err := unix.Mount("bpf", path, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("mount a BPF file system at %s: %w: %w; mount it beforehand (mount -t bpf bpf %s)", path, privilege.ErrMissing, err, path)
		}
		return fmt.Errorf("mount a BPF file system at %s: %w", path, err)
	}
	notify("mounted a BPF file system at %s, for pins; it stays mounted", path)
	return nil
}

// isPrivateMount reports whether the first process has no mount of the file system at a path: pins there end with
// the mount.
func isPrivateMount(path string) bool {
	mounts, err := os.ReadFile("/proc/1/mountinfo")
	var st unix.Stat_t
	if err != nil || unix.Stat(path, &st) != nil {
		return false
	}
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == device {
			return false
		}
	}
	return true
}

// A BPF file system refuses dots in names, and interfaces may have one (eth0.100).
var (
	pinEscape   = strings.NewReplacer("~", "~0", ".", "~1")
	pinUnescape = strings.NewReplacer("~0", "~", "~1", ".")
)

func pinName(name string) string { return pinEscape.Replace(name) }

// nameOfPin is the inverse of pinName.
func nameOfPin(pin string) string { return pinUnescape.Replace(pin) }

// swapInto exchanges a finished folder with the current one; no reader sees a half-built one. Afterwards the old
// content is at next. Kernels below 5.16 cannot exchange folders of a BPF file system: there the old one is renamed
// first, and recoverPins restores it if the process dies in between.
func swapInto(next, current string) error {
	if _, err := os.Lstat(current); errors.Is(err, os.ErrNotExist) {
		return os.Rename(next, current)
	}
	err := unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, current, unix.RENAME_EXCHANGE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	return swapByStepping(next, current)
}

func swapByStepping(next, current string) error {
	aside := current + asideSuffix
	if err := os.Rename(current, aside); err != nil {
		return err
	}
	if err := os.Rename(next, current); err != nil {
		return errors.Join(err, os.Rename(aside, current))
	}
	return os.RemoveAll(aside)
}

const asideSuffix = "_old"

// recoverPins repairs the state that a killed run left: a renamed old folder is restored if the new one was not moved into
// place, and half-built folders are removed.
func recoverPins(dir string) error {
	current, next := filepath.Join(dir, currentPins), filepath.Join(dir, nextPins)
	aside := current + asideSuffix
	if _, err := os.Lstat(current); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(aside, current); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(os.RemoveAll(aside), os.RemoveAll(next))
}

// lockFolder takes an exclusive lock on a folder, making it if need be. The lock ends with the process that holds
// it, even when that is killed. An owner removes its folder before it unlocks, so the locked folder may not be the one at
// the path any more; and a process that only tests whether a folder is in use holds the lock for a moment.
func lockFolder(path string) (*os.File, error) {
	for tries := 0; ; tries++ {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, privilege.Explain(err)
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, privilege.Explain(err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) && tries < 10 {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return nil, err
		}
		if sameFile(f, path) {
			return f, nil
		}
		f.Close()
	}
}

func sameFile(f *os.File, path string) bool {
	opened, err1 := f.Stat()
	there, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(opened, there)
}
