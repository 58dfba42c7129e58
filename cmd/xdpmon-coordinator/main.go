// Command xdpmon-coordinator merges the windows of many hosts, and makes the certificates with which agents and coordinators authenticate.
// Of xdpmon's programs only this one links a message server.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/cmd/internal/manual"
	"github.com/xdpmon/xdpmon/cmd/xdpmon-coordinator/internal/keyring"
	"github.com/xdpmon/xdpmon/userspace/algo"
	_ "github.com/xdpmon/xdpmon/userspace/all"
	"github.com/xdpmon/xdpmon/userspace/coordinator/config"
	"github.com/xdpmon/xdpmon/userspace/report"
)

// release and revision are set by the linker: the name of a release (-X main.release=v1.2.3), and the commit it was made from.
var release, revision string

// environment is a verb's interface to the operating system, so that tests can run verbs in-process.
type environment struct {
	args           []string
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	signals        cli.Signals
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // a write to a closed pipe then returns an error
	os.Exit(run(environment{args: os.Args[1:], stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, now: time.Now, signals: cli.OSSignals}))
}

// run executes one command line and returns its exit code.
func run(env environment) int {
	root := newCoordinator(&env)
	root.AddCommand(newManual(), newVersion(&env), keyring.New(keyring.Environment{Now: env.now, Print: env.printLines, Usage: cli.UsageError, Args: cli.NeedArgs}))
	root.SetArgs(env.args)
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	return cli.Execute(root, env.stderr, exitCode, func(error) string { return "" })
}

// newManual writes the manual pages and completions that packages install.
func newManual() *cobra.Command {
	return manual.Command(manual.About{Version: release, See: []string{"xdpmon(1)"},
		Files: [][2]string{{config.DefaultPath, "configuration"}, {config.DefaultSocket, "query socket of a running coordinator"}, {config.DefaultStore, "merged windows"}, {config.DefaultData, "state that survives a restart"}},
		Exit:  [][2]string{{"0", "done"}, {"1", "failed"}, {"2", "wrong usage"}}})
}

// exitCode is the exit code of an error.
func exitCode(err error) int {
	if errors.Is(err, cli.ErrUsage) || errors.Is(err, algo.ErrUnknown) {
		return cli.ExitUsage
	}
	return cli.ExitFailed
}

func (env *environment) printLines(lines ...string) error {
	if _, err := fmt.Fprintln(env.stdout, report.Printable(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

func newVersion(env *environment) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print version and compiler", Args: cli.NeedArgs(0, 0, "version takes none"),
		Example: "  xdpmon-coordinator version --json"}
	asJSON := cmd.Flags().Bool("json", false, "one JSON object instead of text")
	cmd.RunE = func(*cobra.Command, []string) error {
		version := cli.Version(release, revision)
		if !*asJSON {
			return env.printLines(fmt.Sprintf("xdpmon-coordinator %s, %s %s", version, runtime.Version(), runtime.GOARCH))
		}
		return json.NewEncoder(env.stdout).Encode(map[string]string{"version": version, "go": runtime.Version(), "arch": runtime.GOARCH})
	}
	return cmd
}
