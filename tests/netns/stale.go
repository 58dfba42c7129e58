package netns

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/vishvananda/netns"
)

const (
	prefix   = "xdpmon-"
	named    = "/run/netns" // where named namespaces are mounted
	lockDir  = "/run/xdpmon-netns"
	idLength = 8
)

// claim is a random part of names that belongs to this process as long as it lives: the kernel lets go of the lock on
// its file when the process ends, however it ends.
type claim struct {
	id   string
	file *os.File
}

func newClaim() (c *claim, err error) {
	err = alone(func() error {
		c, err = claimName()
		return err
	})
	return c, err
}

func claimName() (*claim, error) {
	var random [idLength / 2]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("choose a name: %w", err)
	}
	id := hex.EncodeToString(random[:])
	file, err := os.OpenFile(lockPath(id), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim name %s: %w", id, err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("claim name %s: %w", id, err), file.Close())
	}
	return &claim{id: id, file: file}, nil
}

// alone runs f while no other process makes or removes claims.
func alone(f func() error) error {
	if err := os.MkdirAll(lockDir, 0o755); err != nil {
		return fmt.Errorf("make folder for locks: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(lockDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock of network namespaces: %w", err)
	}
	defer file.Close()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock network namespaces: %w", err)
	}
	return f()
}

func lockPath(id string) string { return filepath.Join(lockDir, id) }

func (c *claim) name(part string) string { return prefix + c.id + "-" + part }

func (c *claim) release() error {
	return errors.Join(ignoreMissing(os.Remove(lockPath(c.id))), c.file.Close())
}

// RemoveStale removes the namespaces of processes that were killed, and returns their names. New calls it.
func RemoveStale() (removed []string, err error) {
	err = alone(func() error {
		removed, err = removeStale()
		return errors.Join(err, removeLocks())
	})
	return removed, err
}

func removeStale() ([]string, error) {
	mounts, err := filepath.Glob(filepath.Join(named, prefix+"*-*"))
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, mount := range mounts {
		name := filepath.Base(mount)
		id, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "-")
		if len(id) != idLength || inUse(id) {
			continue
		}
		if err := deleteNamed(name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}

// inUse says whether the process that claimed an id is alive. Without a lock file nobody is.
func inUse(id string) bool {
	file, err := os.Open(lockPath(id))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer file.Close()
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

// removeLocks removes the lock files of dead processes.
func removeLocks() error {
	files, err := os.ReadDir(lockDir)
	if err != nil {
		return fmt.Errorf("list locks: %w", err)
	}
	var errs []error
	for _, file := range files {
		if len(file.Name()) == idLength && !inUse(file.Name()) {
			errs = append(errs, ignoreMissing(os.Remove(lockPath(file.Name()))))
		}
	}
	return errors.Join(errs...)
}

// deleteNamed removes a named namespace, and the file alone where the process died before it mounted it.
func deleteNamed(name string) error {
	err := netns.DeleteNamed(name)
	if errors.Is(err, unix.EINVAL) {
		err = os.Remove(filepath.Join(named, name))
	}
	if ignoreMissing(err) != nil {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
