package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

// A verb that has moved starts the other program with all of its arguments and a warning; without it the package is named.
func TestMoved(t *testing.T) {
	for verb, want := range map[string][]string{
		"coordinator": {"/opt/xdpmon-coordinator", "--config", "f", "--check", "--help"},
		"keys":        {"/opt/xdpmon-coordinator", "keys", "--config", "f", "--check", "--help"},
	} {
		w := newWorld()
		var argv []string
		w.engine.program = func(name string) (string, error) { return "/opt/" + name, nil }
		w.engine.become = func(path string, args []string) error { argv = args; return errors.New("exec failed") }
		if code := w.run(verb, "--config", "f", "--check", "--help"); code != cli.ExitFailed {
			t.Errorf("%s: exit code %d", verb, code)
		}
		if !slices.Equal(argv, want) {
			t.Errorf("%s became %q, want %q", verb, argv, want)
		}
		contains(t, w.err.String(), "xdpmon "+verb+" has moved: running xdpmon-coordinator", "exec failed")

		w = newWorld()
		w.engine.program = func(string) (string, error) { return "", exec.ErrNotFound }
		if code := w.run(verb); code != cli.ExitFailed {
			t.Errorf("%s without the program: exit code %d", verb, code)
		}
		contains(t, w.err.String(), "xdpmon "+verb+" has moved to xdpmon-coordinator", "install the package xdpmon-coordinator")
	}
}

// The program next to this one has precedence over the PATH.
func TestFindProgram(t *testing.T) {
	const name = "xdpmon-test-program"
	t.Setenv("PATH", t.TempDir())
	if path, err := cli.FindProgram(name); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%q, %v", path, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{filepath.Join(os.Getenv("PATH"), name), filepath.Join(filepath.Dir(self), name)} {
		if err := os.WriteFile(at, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(at)
		if path, err := cli.FindProgram(name); err != nil || path != at {
			t.Errorf("%q, %v, want %q", path, err, at)
		}
	}
}
