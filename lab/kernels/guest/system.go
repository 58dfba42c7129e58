package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// prepare makes a system of the initramfs.
func prepare() error {
	for _, m := range []struct{ kind, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := mount(m.kind, m.dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/var", 0o755); err != nil {
		return err
	}
	if err := os.Symlink("/run", "/var/run"); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	return loopbackUp()
}

func mount(kind, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(kind, dir, kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount %s on %s: %w", kind, dir, err)
	}
	return nil
}

// loadModules loads all modules, those that need others after them: a module whose symbols are missing is tried again
// as long as any other one loads.
func loadModules() error {
	waiting, err := filepath.Glob(modules + "/*.ko")
	for err == nil && len(waiting) > 0 {
		var failed []string
		var problems error
		for _, path := range waiting {
			if err := loadModule(path); err != nil {
				failed, problems = append(failed, path), errors.Join(problems, err)
			}
		}
		if len(failed) == len(waiting) {
			return problems
		}
		waiting = failed
	}
	return err
}

func loadModule(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.FinitModule(int(file.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load module %s: %w", filepath.Base(path), err)
	}
	return nil
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	return netlink.LinkSetUp(lo)
}
