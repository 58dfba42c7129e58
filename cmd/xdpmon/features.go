package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpmon/xdpmon/cmd/internal/cli"
	"github.com/xdpmon/xdpmon/loader/features"
	"github.com/xdpmon/xdpmon/loader/kernel"
	"github.com/xdpmon/xdpmon/userspace/report/host"
)

const featuresLong = `Probes the kernel features that xdpmon uses, and for an interface the hook that --hook auto would take. Only
conclusive probes count: "unknown" means that the probe failed, and gives the reason. Nothing is attached to
your interfaces. The exit code is 3 when something is missing that xdpmon cannot run without.`

func newFeatures(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "features [IFACE]", Short: "What this kernel, this user and an interface can do", Long: featuresLong,
		Example: "  sudo xdpmon features\n  sudo xdpmon features eth0\n  sudo xdpmon features --output json | jq '.host[] | select(.state!=\"supported\")'",
		Args:    cli.NeedArgs(0, 1, "an interface"),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(given) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeInterfaces(cmd, given, typed)
		},
	}
	answer := addAnswer(env, cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return runFeatures(env, strings.Join(args, ""), answer.asJSON())
	}
	return cmd
}

func runFeatures(env *environment, iface string, asJSON bool) error {
	f, err := env.engine.probe(iface)
	if err != nil {
		return err
	}
	if asJSON {
		err = env.printJSON(f)
	} else {
		err = env.printLines(host.Features(f)...)
	}
	if err != nil {
		return err
	}
	return missingFeatures(f)
}

// missingFeatures is the error for features that xdpmon cannot run without.
func missingFeatures(f features.Features) error {
	var names []string
	for _, m := range f.Missing() {
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", kernel.ErrUnsupported, strings.Join(names, ", "))
}
