package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker when a release is built (-ldflags "-X main.release=v1.2.3").
var release string

// version is the release, or the commit that a development build was made from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+changes"
		}
	}
	if commit == "" {
		return "development"
	}
	return "development-" + commit + modified
}

func newVersion(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print version, compiler and kernel", Args: needArgs(0, 0, "version takes none"),
		Example: "  xdpmon version\n  xdpmon version --json",
	}
	asJSON := addJSON(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if *asJSON {
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
