package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
)

// release and revision are set by the linker: the name of a release (-X main.release=v1.2.3), and the commit it was made from, which
// `make build` asks git for.
var release, revision string

// version is the release, if this is one, and the commit, for bug reports.
func version() string { return cli.Version(release, revision) }

func newVersion(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print version, compiler and kernel", Args: cli.NeedArgs(0, 0, "version takes none"),
		Example: "  xdpmon version\n  xdpmon version --output json",
	}
	answer := addAnswer(env, cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if answer.asJSON() {
			return env.printJSON(struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				Arch    string `json:"arch"`
				Kernel  string `json:"kernel"`
			}{version(), runtime.Version(), runtime.GOARCH, env.kernel})
		}
		return env.printLines(fmt.Sprintf("xdpmon %s, %s %s, kernel %s", version(), runtime.Version(), runtime.GOARCH, env.kernel))
	}
	return cmd
}
