package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// FindProgram looks in this program's folder, then on the PATH.
func FindProgram(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		sibling := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(sibling); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return sibling, nil
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", exec.ErrNotFound
	}
	return path, err
}

// Become replaces this process, whose process id stays: a service manager sees the same service.
func Become(path string, argv []string) error { return syscall.Exec(path, argv, os.Environ()) }
