package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpmon/xdpmon/tests/testutil"
)

// binary is built once, with the README's command: as it is shipped.
var binary string

func TestMain(m *testing.M) { os.Exit(withBinary(m.Run)) }

// binaryEnv is the binary for a test that runs itself again.
const binaryEnv = "XDPMON_OPERATOR_BINARY"

func withBinary(run func() int) int {
	if binary = os.Getenv(binaryEnv); binary != "" {
		return run()
	}
	dir, err := os.MkdirTemp("", "xdpmon-operator-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "xdpmon")
	build := exec.Command("make", "--no-print-directory", "-C", "../..", "build", "BIN="+binary)
	build.Env = append(os.Environ(), "MAKEFLAGS=") // not those of `make test`, which may run this
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build xdpmon: %v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil { // others than root run it, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// Exit codes as they are documented.
const (
	done    = 0
	failed  = 1
	usage   = 2
	missing = 3
)

// outcome is the result of a command.
type outcome struct {
	code     int
	out, err string
}

// nobody is an account without privileges.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// patience is the timeout for events that happen soon even on a busy machine.
const patience = 5 * time.Minute

// xdpmon runs the binary to its end.
func xdpmon(t *testing.T, args ...string) outcome {
	t.Helper()
	return runAs(t, nil, args...)
}

func runAs(t *testing.T, who *syscall.Credential, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGKILL}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	return finish(t, cmd.Run(), &out, &complaint, args)
}

// finish converts the end of a process to an outcome, except a crash.
func finish(t *testing.T, err error, out, complaint *bytes.Buffer, args []string) outcome {
	t.Helper()
	o := outcome{out: out.String(), err: complaint.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		o.code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("xdpmon %s: %v", strings.Join(args, " "), err)
	}
	if o.code < 0 || strings.Contains(o.err, "goroutine ") {
		t.Fatalf("xdpmon %s: ended with %v\n%s", strings.Join(args, " "), err, o.err)
	}
	return o
}

// want checks the exit code and that standard error matches.
func (o outcome) want(t *testing.T, code int, pattern string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; standard error %q", o.code, code, o.err)
	}
	if !regexp.MustCompile(pattern).MatchString(o.err) {
		t.Errorf("error %q does not match %q", o.err, pattern)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	testutil.NeedRoot(t)
}
